import type { Media } from '../../catalog/records.ts'
import type { MediaId } from '../../core/media-id.ts'
import type { Variant, VariantKey, VariantWait } from '../../core/variant.ts'
import type { OpenBytes } from '../open-bytes.ts'
import type { OpenVariant, Variants } from '../pictures/open-variant.ts'
import type { BytesCache } from './bytes-cache.ts'

export interface CachedBytesOperations {
  readonly openBytes: (media: Media) => Promise<OpenVariant>
  /** Throws as Variants.open. */
  readonly openVariant: (media: Media, variant: Variant, wait: VariantWait) => Promise<OpenVariant>
  readonly cachedBytes: CachedBytes
}

/** The bytes that are in the cache. */
export interface CachedBytes {
  /** Null if they are not cached. They may be sent only if the catalog's `servability` of the id is `servable` after this request. */
  open(id: MediaId, variant: Variant | null): OpenVariant | null
  /** Counts a request to which opened bytes are sent. */
  countRequest(id: MediaId, variant: Variant | null): void
  /** Removes the bytes of an item that is not servable, and their variants. */
  remove(id: MediaId): void
}

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
}): CachedBytesOperations {
  const { cache, openBytes, openVariant, variantKeys, leavesFiles } = parts
  return {
    cachedBytes: {
      open: (id, variant) => cache.openCached(keyOf(id, variant)),
      countRequest: (id, variant) => cache.countRequest(keyOf(id, variant)),
      remove(id) {
        cache.remove(keyOf(id, null))
        for (const key of variantKeys) cache.remove(`${id}.${key}`)
      },
    },
    openBytes: async (media) =>
      // The operation below refuses damaged bytes.
      media.isDamaged || (leavesFiles && media.contentId === null)
        ? openBytes(media)
        : cache.open(keyOf(media.id, null), { ...media, isOwn: true }, (wholeUpTo) =>
            openBytes(media, wholeUpTo),
          ),
    openVariant: async (media, variant, wait) =>
      media.isDamaged
        ? openVariant(media, variant)
        : cache.open(
            keyOf(media.id, variant),
            // Requests that wait for different times do not share a read.
            {
              size: null,
              sha256: null,
              ...(wait !== null && { readKey: `${keyOf(media.id, variant)}.${wait}` }),
            },
            (wholeUpTo) => openVariant(media, variant, { wholeUpTo, wait }),
          ),
  }
}

const keyOf = (id: MediaId, variant: Variant | null): string =>
  variant === null ? id : `${id}.${variant.key}`
