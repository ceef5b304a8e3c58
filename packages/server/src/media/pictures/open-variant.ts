import { LRUCache } from 'lru-cache'
import type { BlobStore, OpenBlob } from '../../blobs/blobs.ts'
import type { Catalog, Media } from '../../catalog/catalog.ts'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import { isPictured, type Variant, variantKey, variantSides } from '../../core/variant.ts'
import { mediaUnknown } from '../find-media.ts'
import type { PictureResult } from './picture-task.ts'
import { PictureOverLimits, type PictureWorkers, PictureWorkersBusy } from './picture-workers.ts'

export type OpenVariant = Pick<OpenBlob, 'size' | 'read' | 'close'>

export interface Variants {
  /**
   * The variant of an item, made if it does not stand yet; whoever asks for the same one meanwhile waits for the same
   * making. Throws Fault `variant-unavailable`, `variants-busy`, and what opening the bytes throws
   * (docs/interface.md, Variants).
   */
  open(media: Media, variant: Variant): Promise<OpenVariant>
  /** Resolves when nothing is being made or put in place. */
  settled(): Promise<void>
}

/** What has become of a making, and the seconds that it took, those of waiting included. */
interface VariantMade {
  readonly variant: Variant
  readonly seconds: number
  readonly outcome: 'made' | 'unreadable' | 'too-hard' | 'unsupported' | 'refused'
}

/** Variants that could not be made are not tried again for a while, so that nobody keeps the service at them. */
const remembered = 10_000
/** Milliseconds. A picture that is damaged stays so; one that exceeded a limit may have done so under load alone. */
const damagedFor = 600_000
const overLimitsFor = 60_000

export function createVariants(parts: {
  readonly catalog: Pick<Catalog, 'media'>
  readonly blobs: Pick<BlobStore, 'variants'>
  /** As for whoever asks for the bytes themselves: an item whose bytes are damaged has no variant either. */
  readonly openBytes: (media: Media) => Promise<OpenBlob>
  readonly workers: Pick<PictureWorkers, 'run'>
  readonly maxPixels: number
  /** False where the disk is too full to store variants; they are made and served all the same. */
  readonly hasRoom: () => boolean
  readonly onRendered: (made: VariantMade) => void
  /** The process that was at this item's picture ended, or had to be ended. */
  readonly onOverLimits: (id: MediaId, error: PictureOverLimits) => void
  /** A variant that was made and answered could not be kept. */
  readonly onStoreFailure: (id: MediaId, error: unknown) => void
  /** Called once, where pictures cannot be made on this machine. */
  readonly onUnsupported: (reason: string) => void
}): Variants {
  const { catalog, blobs, openBytes, workers, maxPixels } = parts
  const making = new Map<string, Promise<Uint8Array>>()
  const keeping = new Set<Promise<void>>()
  const failed = new LRUCache<string, string>({ max: remembered })
  let supported = true

  async function make(media: Media, variant: Variant, path: string): Promise<Uint8Array> {
    const begun = performance.now()
    const tell = (outcome: VariantMade['outcome']) =>
      parts.onRendered({ variant, seconds: (performance.now() - begun) / 1000, outcome })
    let answer: PictureResult
    try {
      answer = await workers.run(
        { what: 'shrink', path, side: variantSides[variant], maxPixels },
        `${media.bucketId}`,
      )
    } catch (error) {
      tell(error instanceof PictureOverLimits ? 'too-hard' : 'refused')
      if (error instanceof PictureOverLimits) parts.onOverLimits(media.id, error)
      throw await refusal(media, variant, error)
    }
    if (answer.outcome === 'shrunk') {
      tell('made')
      return answer.bytes
    }
    if (answer.outcome === 'unsupported') {
      tell('unsupported')
      if (supported) parts.onUnsupported(answer.reason)
      supported = false
      throw unavailable('This service cannot make pictures on its platform.')
    }
    tell('unreadable')
    throw await refuse(
      media,
      variant,
      damagedFor,
      'The picture is damaged, or has more pixels than the service takes on.',
    )
  }

  async function refusal(media: Media, variant: Variant, error: unknown): Promise<unknown> {
    if (error instanceof PictureWorkersBusy)
      return new Fault('variants-busy', 'Too many pictures are being made.')
    if (!(error instanceof PictureOverLimits)) return error
    return refuse(
      media,
      variant,
      overLimitsFor,
      'The picture takes more time or memory than the service allows.',
    )
  }

  /** Remembers why, unless the item went meanwhile, and its bytes with it. */
  async function refuse(media: Media, variant: Variant, ttl: number, detail: string): Promise<Fault> {
    if ((await catalog.media(media.id)) === null) return mediaUnknown()
    failed.set(keyOf(media, variant), detail, { ttl })
    return unavailable(detail)
  }

  /** A delete removes variants once its row is gone: one that is put in place later is removed here. */
  async function keep(media: Media, variant: Variant, bytes: Uint8Array): Promise<void> {
    if (!parts.hasRoom()) return
    try {
      await blobs.variants.store(media.id, variant, bytes)
      if ((await catalog.media(media.id)) === null) await blobs.variants.remove(media.id)
    } catch (error) {
      parts.onStoreFailure(media.id, error)
    }
  }

  function share(media: Media, variant: Variant, path: string): Promise<Uint8Array> {
    const key = keyOf(media, variant)
    const underWay = making.get(key)
    if (underWay) return underWay
    const made = make(media, variant, path)
    making.set(key, made)
    // It stands for whoever asks until the kept one can.
    const kept = made
      .then(
        (bytes) => keep(media, variant, bytes),
        () => undefined,
      )
      .finally(() => {
        making.delete(key)
        keeping.delete(kept)
      })
    keeping.add(kept)
    return made
  }

  return {
    async open(media, variant) {
      if (!isPictured(media.contentType))
        throw unavailable(
          `Pictures are made of JPEG, PNG, GIF, WebP, TIFF and AVIF; this item is ${media.contentType}.`,
        )
      const source = await openBytes(media)
      await source.close()
      const stored = await blobs.variants.open(media.id, variant)
      if (stored !== null) return stored
      const reason = failed.get(keyOf(media, variant))
      if (reason !== undefined) throw unavailable(reason)
      const bytes = await share(media, variant, source.path)
      if ((await catalog.media(media.id)) === null) throw mediaUnknown()
      return {
        size: bytes.byteLength,
        read: async (into, position) => into.set(bytes.subarray(position, position + into.byteLength)),
        close: async () => undefined,
      }
    },

    async settled() {
      await Promise.all(keeping)
    },
  }
}

const keyOf = ({ id }: Media, variant: Variant): string => `${id}.${variantKey(variant)}`

const unavailable = (detail: string) => new Fault('variant-unavailable', detail)
