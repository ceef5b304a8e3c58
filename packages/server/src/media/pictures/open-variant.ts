import { LRUCache } from 'lru-cache'
import type { BlobStore, OpenBlob } from '../../blobs/blobs.ts'
import { openMemoryBlob } from '../../blobs/memory-blob.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Media, NewPreview } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import { toolFor } from '../../core/picture-tools.ts'
import { isDecoded, type Variant } from '../../core/variant.ts'
import { mediaUnknown } from '../find-media.ts'
import { extractionFor, type InstalledTools } from './find-tools.ts'
import { type Extraction, type PictureResult, type PictureSource, sourceOf } from './picture-task.ts'
import { PictureOverLimits, type PictureWorkers, PictureWorkersBusy } from './picture-workers.ts'
import { sourceFileOf } from './source-file.ts'

export type OpenVariant = Pick<OpenBlob, 'size' | 'content' | 'read' | 'stream' | 'close'>

export interface Variants {
  /**
   * The variant of an item, rendered if it is not stored. Concurrent requests for one variant share one render. Throws
   * Fault `variant-unavailable`, `variants-busy`, and the faults of opening the bytes (docs/interface.md, Variants).
   * Up to `wholeUpTo` bytes, 0 by default, may be returned in memory.
   */
  open(media: Media, variant: Variant, wholeUpTo?: number): Promise<OpenVariant>
  /** Resolves when no variant is being rendered or stored. */
  settled(): Promise<void>
}

/** The result of a render, and its duration in seconds, including the time in the queue. */
interface RenderReport {
  readonly variant: Variant
  readonly seconds: number
  readonly outcome: 'made' | 'unreadable' | 'too-hard' | 'unsupported' | 'refused'
}

interface Rendered {
  readonly bytes: Uint8Array
  readonly preview: NewPreview | null
}

/** Failed renders that are cached. They are not retried for a while, so that they cannot occupy the workers. */
const failureCacheSize = 10_000
/** Milliseconds until a retry. A damaged picture stays damaged; an exceeded limit may be due to load. */
const damagedRetryDelay = 600_000
const overLimitsRetryDelay = 60_000

export function createVariants(parts: {
  readonly catalog: Pick<Catalog, 'media' | 'setPreview'>
  readonly blobs: Pick<BlobStore, 'variants'>
  /** Fails for an item whose bytes are missing or damaged. */
  readonly openBytes: (media: Media) => Promise<OpenBlob>
  readonly workers: Pick<PictureWorkers, 'run'>
  /** Those that start programs, and the programs. */
  readonly toolWorkers: Pick<PictureWorkers, 'run'>
  readonly tools: InstalledTools
  readonly maxPixels: number
  /** False if the disk is too full to store variants. They are rendered and served without being stored. */
  readonly hasRoom: () => boolean
  readonly onRendered: (report: RenderReport) => void
  /** A worker ended, or was ended, while it decoded this item's picture. */
  readonly onOverLimits: (id: MediaId, error: PictureOverLimits) => void
  /** A variant was rendered and served, but it, or what the render has found, could not be stored. */
  readonly onStoreFailure: (id: MediaId, error: unknown) => void
  /** Called once if this machine cannot render pictures. */
  readonly onUnsupported: (reason: string) => void
}): Variants {
  const { catalog, blobs, openBytes, maxPixels, tools } = parts
  const renders = new Map<string, Promise<Rendered>>()
  const stores = new Set<Promise<void>>()
  const failed = new LRUCache<string, string>({ max: failureCacheSize })
  let supported = true

  async function render(
    media: Media,
    variant: Variant,
    picture: PictureSource,
    extraction: Extraction | null,
  ): Promise<Rendered> {
    const startedAt = performance.now()
    const report = (outcome: RenderReport['outcome']) =>
      parts.onRendered({ variant, seconds: (performance.now() - startedAt) / 1000, outcome })
    let result: PictureResult
    try {
      const workers = extraction === null ? parts.workers : parts.toolWorkers
      const hasPreview = media.thumbhash === null
      result = await workers.run(
        { type: 'resize', picture, form: variant, maxPixels, hasPreview, extraction },
        `${media.bucketId}`,
      )
    } catch (error) {
      report(error instanceof PictureOverLimits ? 'too-hard' : 'refused')
      if (error instanceof PictureOverLimits) parts.onOverLimits(media.id, error)
      throw await faultFor(media, variant, error)
    }
    if (result.outcome === 'resized') {
      report('made')
      return result
    }
    if (result.outcome === 'unsupported') {
      report('unsupported')
      if (supported) parts.onUnsupported(result.reason)
      supported = false
      throw unavailable('This service cannot make pictures on its platform.')
    }
    report('unreadable')
    throw await rememberFailure(
      media,
      variant,
      damagedRetryDelay,
      'The picture is damaged, or has more pixels than the service takes on.',
    )
  }

  async function faultFor(media: Media, variant: Variant, error: unknown): Promise<unknown> {
    if (error instanceof PictureWorkersBusy)
      return new Fault('variants-busy', 'Too many variants are being rendered.')
    if (!(error instanceof PictureOverLimits)) return error
    return rememberFailure(
      media,
      variant,
      overLimitsRetryDelay,
      'The picture takes more time or memory than the service allows.',
    )
  }

  /** Caches the failure, unless the item was deleted in the meantime. */
  async function rememberFailure(
    media: Media,
    variant: Variant,
    ttl: number,
    detail: string,
  ): Promise<Fault> {
    if ((await catalog.media(media.id)) === null) return mediaUnknown()
    failed.set(keyOf(media, variant), detail, { ttl })
    return unavailable(detail)
  }

  /** A delete removes variants after the row. A variant that is stored later is removed here. */
  async function store(media: Media, variant: Variant, { bytes, preview }: Rendered): Promise<void> {
    if (!parts.hasRoom()) return
    try {
      // The variant first: without it, each request would render again while the catalog cannot be written.
      await blobs.variants.store(media.id, variant.key, bytes)
      if ((await catalog.media(media.id)) === null) await blobs.variants.remove(media.id)
      else if (preview !== null) await catalog.setPreview(media.bucketId, media.id, preview)
    } catch (error) {
      parts.onStoreFailure(media.id, error)
    }
  }

  async function renderPicture(media: Media, variant: Variant, opened: OpenBlob): Promise<Rendered> {
    const picture = await opened.share()
    const file = toolFor(media.contentType) === null ? null : await sourceFileOf(picture)
    try {
      const extraction = file && extractionFor(media.contentType, tools, file)
      return await render(media, variant, file?.path ?? sourceOf(picture), extraction)
    } finally {
      await (file ?? picture).release()
    }
  }

  function renderOnce(media: Media, variant: Variant, opened: OpenBlob): Promise<Rendered> {
    const key = keyOf(media, variant)
    const running = renders.get(key)
    if (running) return running
    const rendered = renderPicture(media, variant, opened)
    renders.set(key, rendered)
    // Until the variant is stored, requests share the rendered bytes.
    const stored = rendered
      .then(
        (result) => store(media, variant, result),
        () => undefined,
      )
      .finally(() => {
        renders.delete(key)
        stores.delete(stored)
      })
    stores.add(stored)
    return rendered
  }

  /** A variant is served only while the bytes of its picture are (docs/interface.md V7). A file is checked by the same read. */
  async function openStored(media: Media, variant: Variant, wholeUpTo: number): Promise<OpenVariant | null> {
    const isFile = !media.isDamaged && media.contentId === null
    if (!isFile) await openAndClose(media)
    return blobs.variants.open(
      media.id,
      variant.key,
      isFile ? { wholeUpTo, pictureSize: media.size } : { wholeUpTo },
    )
  }

  async function openAndClose(media: Media): Promise<OpenBlob> {
    const opened = await openBytes(media)
    await opened.close()
    return opened
  }

  function requirePictured(contentType: string): void {
    const tool = toolFor(contentType)
    if (tool === null ? isDecoded(contentType) : tools.has(tool)) return
    const made = `Pictures are made of JPEG, PNG, GIF, WebP, TIFF and AVIF; this item is ${contentType}.`
    throw unavailable(tool === null ? made : `${made} Its pictures need ${tool}, which is not installed.`)
  }

  return {
    async open(media, variant, wholeUpTo = 0) {
      requirePictured(media.contentType)
      const stored = await openStored(media, variant, wholeUpTo)
      if (stored !== null) return stored
      const picture = await openAndClose(media)
      const reason = failed.get(keyOf(media, variant))
      if (reason !== undefined) throw unavailable(reason)
      const { bytes } = await renderOnce(media, variant, picture)
      if ((await catalog.media(media.id)) === null) throw mediaUnknown()
      return openMemoryBlob(bytes)
    },

    async settled() {
      await Promise.all(stores)
    },
  }
}

const keyOf = ({ id }: Media, variant: Variant): string => `${id}.${variant.key}`

const unavailable = (detail: string) => new Fault('variant-unavailable', detail)
