import type { Catalog } from '../../catalog/catalog.ts'
import { isMediaId, type MediaId } from '../../core/media-id.ts'
import { type Variant, variants } from '../../core/variant.ts'
import type { OpenVariant } from '../../media/pictures/open-variant.ts'

/** Longer bodies are sent faster as bytes. */
const maxText = 4_096

/** The headers of a response with whole bytes, as alternating names and values. */
interface WholeHead {
  readonly head: string[]
  /** The extension of the item. */
  readonly extension: string | null
}

/** A response that may be sent if its item is servable. */
export interface CachedResponse {
  readonly id: MediaId
  readonly head: string[]
  readonly bytes: Uint8Array
  /** The same as a string of latin1 if they are few: Node then sends head and body in one write. */
  readonly text: string | null
  /** Must be closed. */
  readonly blob: OpenVariant
}

/** The responses to plain requests for cached bytes: building their headers costs more than everything else. */
export interface CachedResponses {
  /**
   * `name` is an id with or without an extension. Null if the bytes or their headers are not in memory, or if there is
   * no such variant or extension.
   */
  open(name: string, variant: string | undefined): CachedResponse | null
  /** For each id, whether the item can be served now: the response to a later request needs another call. */
  readonly areServable: Catalog['areServable']
  /** The headers of these bytes in memory, which `build` creates once. */
  headOf(bytes: Uint8Array, build: () => WholeHead): WholeHead
}

export function createCachedResponses(parts: {
  readonly openCached: (id: MediaId, variant: Variant | null) => OpenVariant | null
  readonly areServable: Catalog['areServable']
}): CachedResponses {
  const { openCached, areServable } = parts
  /** For as long as the bytes are in memory. */
  const heads = new WeakMap<Uint8Array, WholeHead & Pick<CachedResponse, 'text'>>()

  return {
    open(name, variantName) {
      const dot = name.indexOf('.')
      const id = dot < 0 ? name : name.slice(0, dot)
      const variant = variantName === undefined ? null : variants.find((known) => known === variantName)
      if (variant === undefined || !isMediaId(id)) return null
      const blob = openCached(id, variant)
      if (blob === null) return null
      const { content: bytes } = blob
      const whole = typeof bytes === 'string' ? undefined : heads.get(bytes)
      if (typeof bytes !== 'string' && whole && (dot < 0 || name.slice(dot + 1) === whole.extension))
        return { id, head: whole.head, text: whole.text, bytes, blob }
      void blob.close()
      return null
    },
    areServable,
    headOf(bytes, build) {
      const known = heads.get(bytes)
      if (known) return known
      const text = bytes.length <= maxText ? Buffer.from(bytes).toString('latin1') : null
      const built = { ...build(), text }
      heads.set(bytes, built)
      return built
    },
  }
}
