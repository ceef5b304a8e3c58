import { isMediaId, type MediaId } from '../../core/media-id.ts'
import { type Variant, variantKey, variants } from '../../core/variant.ts'

/** The object that identifies the catalog to which the bytes belong. */
export const identityKey = (prefix: string): string => `${prefix}identity`

export const blobKey = (prefix: string, id: MediaId): string => `${prefix}${id}`

const variantsFolder = 'variants/'

export const variantObjectKey = (prefix: string, id: MediaId, variant: Variant): string =>
  `${prefix}${variantsFolder}${id}/${variantKey(variant)}`

/** What an object is, by its key. */
export type KeyMeaning =
  | { readonly kind: 'stored'; readonly id: MediaId }
  | { readonly kind: 'variant'; readonly id: MediaId }
  | { readonly kind: 'identity' }
  | { readonly kind: 'foreign' }

const names: ReadonlySet<string> = new Set(variants.map(variantKey))

export function meaningOf(prefix: string, key: string): KeyMeaning {
  const name = key.slice(prefix.length)
  if (key === identityKey(prefix)) return { kind: 'identity' }
  if (isMediaId(name)) return { kind: 'stored', id: name }
  const [folder, id = '', variant = '', ...more] = name.split('/')
  if (`${folder}/` === variantsFolder && isMediaId(id) && names.has(variant) && more.length === 0)
    return { kind: 'variant', id }
  return { kind: 'foreign' }
}
