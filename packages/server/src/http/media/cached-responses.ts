import type { Catalog } from '../../catalog/catalog.ts'
import { type ItemId, isItemId } from '../../core/media-id.ts'
import type { Variant, VariantFormat, VariantList } from '../../core/variant.ts'
import type { CachedBytes } from '../../media/caching/cached-bytes.ts'
import type { OpenVariant } from '../../media/pictures/open-variant.ts'
import type { DownloadedItem } from './download-recorder.ts'

/** The measured memory of the headers of a response, for as long as its bytes are in memory. Bytes. */
export const headersMemory = 900

/** The headers of a response with all bytes, as alternating names and values. */
interface PreparedHead {
  readonly head: string[]
  readonly extension: string | null
  readonly item: DownloadedItem
}

/** A response that may be sent if its item is servable. */
export interface CachedResponse {
  readonly id: ItemId
  readonly item: DownloadedItem
  readonly variant: Variant | null
  readonly head: string[]
  /** They have `headRoom` in front of them. */
  readonly bytes: Uint8Array
  /** Must be closed. */
  readonly blob: OpenVariant
}

/** The responses to plain requests for cached bytes: building their headers costs more than everything else. */
export interface CachedResponses {
  /**
   * `name` is an id with or without an extension, `variantName` is as sent. Null if the bytes or their headers are not in memory, or if
   * there is no such variant or extension. `accept` chooses the format of a variant.
   */
  open(name: string, variantName: unknown, accept?: string): CachedResponse | null
  /** For each id, whether its cached response can be sent now: the response to a later request needs another call. */
  readonly servability: Catalog['servability']
  /** Counts a request to which a cached response is sent. */
  readonly countRequest: CachedBytes['countRequest']
  /** Removes the bytes of an item that is not servable. */
  readonly remove: CachedBytes['remove']
  /** The headers of these bytes in memory, which `build` creates once for each filename. */
  headOf(bytes: Uint8Array, filename: string | null, build: () => PreparedHead): PreparedHead
}

export function createCachedResponses(parts: {
  readonly cachedBytes: CachedBytes
  readonly servability: Catalog['servability']
  readonly variants: Pick<VariantList, 'find'>
  readonly formatFor: (accept: string | undefined) => VariantFormat
}): CachedResponses {
  const { cachedBytes, servability, variants, formatFor } = parts
  /** For as long as the bytes are in memory. */
  const heads = new WeakMap<Uint8Array, PreparedHead>()

  return {
    open(name, variantName, accept) {
      const dot = name.indexOf('.')
      const id = dot < 0 ? name : name.slice(0, dot)
      const variant =
        typeof variantName === 'string'
          ? variants.find(variantName, formatFor(accept))
          : variantName === undefined
            ? null
            : undefined
      if (variant === undefined || !isItemId(id)) return null
      const blob = cachedBytes.open(id, variant)
      if (blob === null) return null
      const bytes = blob.content.type === 'bytes' ? blob.content.bytes : null
      const prepared = bytes && heads.get(bytes)
      if (bytes && prepared && (dot < 0 || name.slice(dot + 1) === prepared.extension))
        return { id, item: prepared.item, variant, head: prepared.head, bytes, blob }
      void blob.close()
      return null
    },
    servability,
    countRequest: cachedBytes.countRequest,
    remove: cachedBytes.remove,
    headOf(bytes, filename, build) {
      const prepared = heads.get(bytes)
      if (prepared && prepared.item.filename === filename) return prepared
      const built = build()
      heads.set(bytes, built)
      return built
    },
  }
}
