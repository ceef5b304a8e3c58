import type { Media } from '../../catalog/catalog.ts'
import { variantKey } from '../../core/variant.ts'
import type { OpenBytes } from '../open-bytes.ts'
import type { OpenVariant, Variants } from '../pictures/open-variant.ts'
import type { BytesCache } from './bytes-cache.ts'

/**
 * Opens bytes and variants through the cache. The bytes of an id never change, so only the row can say that they must not
 * be served: pass a row that was read for this request.
 */
export function cachedBytesOperations(parts: {
  readonly cache: BytesCache
  readonly openBytes: OpenBytes
  readonly openVariant: Variants['open']
  /** True if files on the disk are opened for a proxy that sends them. */
  readonly leavesFiles: boolean
}): { openBytes: (media: Media) => Promise<OpenVariant>; openVariant: Variants['open'] } {
  const { cache, openBytes, openVariant, leavesFiles } = parts
  return {
    openBytes: async (media) =>
      // The operation below refuses damaged bytes.
      media.isDamaged || (leavesFiles && media.contentId === null)
        ? openBytes(media)
        : cache.open(media.id, media, (wholeUpTo) => openBytes(media, wholeUpTo)),
    openVariant: async (media, variant) =>
      media.isDamaged
        ? openVariant(media, variant)
        : cache.open(`${media.id}.${variantKey(variant)}`, { size: null, sha256: null }, (wholeUpTo) =>
            openVariant(media, variant, wholeUpTo),
          ),
  }
}
