import { type ItemId, isItemId, requireItemId } from '../../core/media-id.ts'
import { isVariantKey, type VariantKey } from '../../core/variant.ts'

// The functions that make keys of ids throw MalformedId.

/** The object that identifies the catalog to which the bytes belong. */
export const identityKey = (prefix: string): string => `${prefix}identity`

export const blobKey = (prefix: string, id: ItemId): string => `${prefix}${requireItemId(id)}`

const variantsFolder = 'variants/'

export const variantFolder = (prefix: string, id: ItemId): string =>
  `${prefix}${variantsFolder}${requireItemId(id)}/`

export const variantObjectKey = (prefix: string, id: ItemId, key: VariantKey): string =>
  `${variantFolder(prefix, id)}${key}`

/** What an object is, by its key. */
export type KeyMeaning =
  | { readonly kind: 'stored'; readonly id: ItemId }
  | { readonly kind: 'variant'; readonly id: ItemId }
  | { readonly kind: 'identity' }
  | { readonly kind: 'foreign' }

export function meaningOf(prefix: string, key: string): KeyMeaning {
  const name = key.slice(prefix.length)
  if (key === identityKey(prefix)) return { kind: 'identity' }
  if (isItemId(name)) return { kind: 'stored', id: name }
  const [folder, id = '', variantKey = '', ...more] = name.split('/')
  if (`${folder}/` === variantsFolder && isItemId(id) && isVariantKey(variantKey) && more.length === 0)
    return { kind: 'variant', id }
  return { kind: 'foreign' }
}
