import { isMediaId, type MediaId, requireMediaId } from '../../core/media-id.ts'
import { isVariantKey, type VariantKey } from '../../core/variant.ts'

// The functions that make keys of ids throw MalformedId.

/** The object that identifies the catalog to which the bytes belong. */
export const identityKey = (prefix: string): string => `${prefix}identity`

export const blobKey = (prefix: string, id: MediaId): string => `${prefix}${requireMediaId(id)}`

const variantsFolder = 'variants/'

export const variantFolder = (prefix: string, id: MediaId): string =>
  `${prefix}${variantsFolder}${requireMediaId(id)}/`

export const variantObjectKey = (prefix: string, id: MediaId, key: VariantKey): string =>
  `${variantFolder(prefix, id)}${key}`

/** What an object is, by its key. */
export type KeyMeaning =
  | { readonly kind: 'stored'; readonly id: MediaId }
  | { readonly kind: 'variant'; readonly id: MediaId }
  | { readonly kind: 'identity' }
  | { readonly kind: 'foreign' }

export function meaningOf(prefix: string, key: string): KeyMeaning {
  const name = key.slice(prefix.length)
  if (key === identityKey(prefix)) return { kind: 'identity' }
  if (isMediaId(name)) return { kind: 'stored', id: name }
  const [folder, id = '', variantKey = '', ...more] = name.split('/')
  if (`${folder}/` === variantsFolder && isMediaId(id) && isVariantKey(variantKey) && more.length === 0)
    return { kind: 'variant', id }
  return { kind: 'foreign' }
}
