import type { Item } from '../../catalog/records.ts'
import type { ItemId } from '../../core/media-id.ts'
import type { Variant, VariantKey, VariantWait } from '../../core/variant.ts'
import type { OpenBytes } from '../open-bytes.ts'
import type { OpenVariant, Variants } from '../pictures/open-variant.ts'
import type { BytesCache } from './bytes-cache.ts'

export type CachedBytesOperations = ReturnType<typeof cachedBytesOperations>

/** The bytes that are in the cache. */
export type CachedBytes = CachedBytesOperations['cachedBytes']

/**
 * Opens bytes and variants through the cache. The bytes of an id never change, so only the row can say that they must not
 * be served: pass a row that was read for this request.
 */
export function cachedBytesOperations(parts: {
  readonly cache: BytesCache
  readonly openBytes: OpenBytes
  readonly openVariant: Variants['open']
  readonly variantKeys: readonly VariantKey[]
  /** True if files on the disk are opened for a proxy that sends them. */
  readonly leavesFiles: boolean
}) {
  const { cache, openBytes, openVariant, variantKeys, leavesFiles } = parts
  return {
    cachedBytes: {
      /** Null if they are not cached. They may be sent only if the catalog's `servability` of the id is `servable` after this request. */
      open: (id: ItemId, variant: Variant | null): OpenVariant | null => cache.openCached(keyOf(id, variant)),
      /** Counts a request to which opened bytes are sent. */
      countRequest: (id: ItemId, variant: Variant | null): void => cache.countRequest(keyOf(id, variant)),
      /** Removes the bytes of an item that is not servable, and their variants. */
      remove(id: ItemId): void {
        cache.remove(keyOf(id, null))
        for (const key of variantKeys) cache.remove(`${id}.${key}`)
      },
    },
    openBytes: async (item: Item): Promise<OpenVariant> =>
      // The operation below refuses damaged bytes.
      item.isDamaged || (leavesFiles && item.contentId === null)
        ? openBytes(item)
        : cache.open(keyOf(item.id, null), { ...item, isOwn: true }, (wholeUpTo) =>
            openBytes(item, wholeUpTo),
          ),
    /** Throws as Variants.open. */
    openVariant: async (item: Item, variant: Variant, wait: VariantWait): Promise<OpenVariant> =>
      item.isDamaged
        ? openVariant(item, variant)
        : cache.open(
            keyOf(item.id, variant),
            // Requests that wait for different times do not share a read.
            {
              size: null,
              sha256: null,
              ...(wait !== null && { readKey: `${keyOf(item.id, variant)}.${wait}` }),
            },
            (wholeUpTo) => openVariant(item, variant, { wholeUpTo, wait }),
          ),
  }
}

const keyOf = (id: ItemId, variant: Variant | null): string =>
  variant === null ? id : `${id}.${variant.key}`
