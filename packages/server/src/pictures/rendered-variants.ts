import { Fault, itemUnknown, storageCauseOf } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import { isDecoded, toolFor, type Variant, type VariantWait } from '../core/variants.ts'
import type { BlobStore, OpenBlob } from '../storage/blobs/blobs.ts'
import { openMemoryBlob } from '../storage/blobs/memory-blob.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Item, NewPreview } from '../storage/catalog/records.ts'
import {
  PictureOverLimits,
  PictureTaskPreempted,
  PictureWorkersBusy,
  VariantPending,
} from './picture-queue.ts'
import {
  type Extraction,
  type PictureResult,
  type PictureSource,
  type RecordedPreview,
  sourceOf,
} from './picture-task.ts'
import type { PictureWorkers } from './picture-workers.ts'
import { type FailureKind, type FailureParts, RenderFailures } from './render-failures.ts'
import { extractionFor, type InstalledTools, type SourceFile, sourceFileOf } from './tools.ts'

export type OpenVariant = Pick<OpenBlob, 'size' | 'content' | 'read' | 'stream' | 'close'>

interface OpenOptions {
  readonly wholeUpTo?: number
  readonly wait?: VariantWait
}

/** A request that waits for nothing has this time, in milliseconds, so that it is refused if the queue is full. */
const leastWait = 25

/** A render in progress, until its variant is stored. */
interface Render {
  readonly rendered: Promise<Rendered>
  /** Never rejects. */
  readonly stored: Promise<void>
  /** Whether its worker has replied. */
  hasResult: boolean
}

interface VariantParts extends RenderParts {
  readonly catalog: Pick<Catalog, 'item' | 'setPreview'>
  readonly blobs: Pick<BlobStore, 'variants'>
  /** Fails for an item whose bytes are missing or damaged. */
  readonly openBytes: (item: Item) => Promise<OpenBlob>
  /** False if the disk is too full to store variants. They are rendered and served without being stored. */
  readonly hasRoom: () => boolean
  /** A variant was rendered and served, but it, or what the render has found, could not be stored; or a stored one could not be read. */
  readonly onStoreFailure: (id: ItemId, error: unknown) => void
}

/** The variants of items, rendered if they are not stored. */
export class Variants {
  readonly #parts: VariantParts
  readonly #renderer: VariantRenderer
  /** The renders in progress, by `keyOf`. */
  readonly #renders = new Map<string, Render>()

  constructor(parts: VariantParts) {
    this.#parts = parts
    this.#renderer = new VariantRenderer(parts)
  }

  /**
   * The variant of an item, rendered if it is not stored. Concurrent requests for one variant share one render. Throws
   * Fault `variant-unavailable`, `variants-busy`, and the faults of opening the bytes (docs/interface.md, Variants).
   * Up to `wholeUpTo` bytes, 0 by default, may be returned in memory. Throws VariantPending if it is not rendered after `wait` seconds.
   */
  async open(
    item: Item,
    variant: Variant,
    { wholeUpTo = 0, wait = null }: OpenOptions = {},
  ): Promise<OpenVariant> {
    this.#requireTypeWithVariants(item.contentType)
    // Before the lookup: a render that ends during it may have stored the variant behind it.
    const running = this.#renders.get(keyOf(item, variant))
    const stored = await this.#openStored(item, variant, wholeUpTo)
    if (stored !== null) return stored
    const picture = await this.#openAndClose(item)
    await this.#renderer.requireRenderable(item)
    const { bytes } = await within(wait, this.#renderOnce(item, variant, picture, running))
    if ((await this.#parts.catalog.item(item.id)) === null) throw itemUnknown()
    return openMemoryBlob(bytes)
  }

  /** Renders and stores a variant that is not stored, while no request needs the workers. Throws as `open`, and PictureTaskPreempted. */
  async renderAhead(item: Item, variant: Variant): Promise<void> {
    this.#requireTypeWithVariants(item.contentType)
    const key = keyOf(item, variant)
    // Also before the variant is looked up: the render may store it in the meantime, and end.
    if (!this.#parts.hasRoom() || this.#renders.has(key)) return
    const stored = await this.#openStored(item, variant, 0)
    if (stored !== null) return stored.close()
    const picture = await this.#openAndClose(item)
    await this.#renderer.requireRenderable(item)
    if (this.#renders.has(key)) return
    const render = this.#start(item, variant, picture, true)
    await render.rendered
    await render.stored
  }

  /** Resolves when every variant whose worker has replied is stored. */
  async idle(): Promise<void> {
    // The others may still be downloading their picture.
    const finishing = () => [...this.#renders.values()].filter(({ hasResult }) => hasResult)
    while (finishing().length > 0) await Promise.all(finishing().map(({ stored }) => stored))
  }

  #requireTypeWithVariants(contentType: string): void {
    const tool = toolFor(contentType)
    if (tool === null ? isDecoded(contentType) : this.#parts.tools.has(tool)) return
    const reason =
      tool === null
        ? 'Variants exist for JPEG, PNG, GIF, WebP, TIFF and AVIF, and for videos, PDF and HEIC where their programs are installed.'
        : `Its variants need ${tool}, which is not installed.`
    throw unavailable(`This item is ${contentType}. ${reason}`)
  }

  /**
   * A variant is served only while the bytes of its picture are (docs/interface.md V7). If they are in a file, the read of the variant checks
   * that too.
   */
  async #openStored(item: Item, variant: Variant, wholeUpTo: number): Promise<OpenVariant | null> {
    const isFile = !item.isDamaged && item.contentId === null
    if (!isFile) await this.#openAndClose(item)
    try {
      const options = isFile ? { wholeUpTo, pictureSize: item.size } : { wholeUpTo }
      return await this.#parts.blobs.variants.open(item.id, variant.key, options)
    } catch (error) {
      // On a read-only disk the database of variants cannot be opened: they are rendered again.
      if (error instanceof Fault || storageCauseOf(error) === null) throw error
      this.#parts.onStoreFailure(item.id, error)
      return null
    }
  }

  async #openAndClose(item: Item): Promise<OpenBlob> {
    const opened = await this.#parts.openBytes(item)
    await opened.close()
    return opened
  }

  /** `earlier` is a render that was in progress before the variant was looked up. Its variant may be stored since. */
  async #renderOnce(item: Item, variant: Variant, opened: OpenBlob, earlier?: Render): Promise<Rendered> {
    const running = this.#renders.get(keyOf(item, variant)) ?? (earlier?.hasResult ? earlier : undefined)
    if (running === undefined) return this.#start(item, variant, opened, false).rendered
    try {
      return await running.rendered
    } catch (error) {
      if (!(error instanceof PictureTaskPreempted)) throw error
      return this.#renderOnce(item, variant, opened)
    }
  }

  #start(item: Item, variant: Variant, opened: OpenBlob, isAhead: boolean): Render {
    const key = keyOf(item, variant)
    const onResult = () => {
      render.hasResult = true
    }
    const rendered = this.#renderer
      .render(item, variant, opened, { isAhead, onResult })
      .catch((error: unknown) => {
        // Before the requests that share it receive the error: they start another render.
        this.#renders.delete(key)
        throw error
      })
    // Until the variant is stored, requests share the rendered bytes.
    const stored = rendered.then(
      async (result) => {
        await this.#store(item, variant, result)
        this.#renders.delete(key)
      },
      () => undefined,
    )
    const render: Render = { rendered, stored, hasResult: false }
    this.#renders.set(key, render)
    return render
  }

  /** A delete removes variants after the row. A variant that is stored later is removed here. */
  async #store(item: Item, variant: Variant, { bytes, preview }: Rendered): Promise<void> {
    const { catalog, blobs, hasRoom, onStoreFailure } = this.#parts
    try {
      if (!hasRoom()) return
      // The variant first: without it, each request would render again while the catalog cannot be written.
      await blobs.variants.store(item.id, variant.key, bytes)
      if ((await catalog.item(item.id)) === null) await blobs.variants.remove(item.id)
      else if (preview !== null) await catalog.setPreview(item.bucketId, item.id, preview)
    } catch (error) {
      onStoreFailure(item.id, error)
    }
  }
}

/** Throws VariantPending after the time; a later error is that of the next request. */
async function within(wait: VariantWait, rendering: Promise<Rendered>): Promise<Rendered> {
  if (wait === null) return rendering
  const { promise: expired, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new VariantPending('the variant is not rendered yet')),
    Math.max(wait * 1000, leastWait),
  )
  try {
    return await Promise.race([rendering, expired])
  } finally {
    clearTimeout(timer)
  }
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

interface RenderParts extends FailureParts {
  readonly catalog: Pick<Catalog, 'item'>
  readonly blobs: Pick<BlobStore, 'variants'>
  readonly workers: Pick<PictureWorkers, 'run' | 'runAhead'>
  /** Those that start programs, and the programs. */
  readonly toolWorkers: Pick<PictureWorkers, 'run' | 'runAhead'>
  readonly tools: InstalledTools
  readonly maxPixels: number
  /** Milliseconds for the movement of an animated picture. */
  readonly animationTime: number
  readonly onRendered: (report: RenderReport) => void
  /** A worker ended, or was ended, while it decoded this item's picture. */
  readonly onOverLimits: (id: ItemId, error: PictureOverLimits) => void
  /** Called once if this machine cannot render pictures. */
  readonly onUnsupported: (reason: string) => void
}

/** The bytes of a picture, and how a program gets the picture from its file. */
interface Source {
  readonly picture: PictureSource
  readonly file: SourceFile | null
  readonly extraction: Extraction | null
}

interface RenderOptions {
  readonly isAhead: boolean
  /** Called when the worker has replied, before the file is released. */
  readonly onResult: () => void
}

class VariantRenderer {
  readonly #parts: RenderParts
  readonly #failures: RenderFailures
  /** Whether this machine can render pictures, as far as is known. */
  #supported = true

  constructor(parts: RenderParts) {
    this.#parts = parts
    this.#failures = new RenderFailures(parts)
  }

  /** Throws Fault `variant-unavailable` if a render of the item has failed, and is not tried again, or not for a while. */
  async requireRenderable(item: Item): Promise<void> {
    const reason = await this.#failures.reasonOf(item)
    if (reason !== null) throw unavailable(reason)
  }

  /**
   * Renders a variant in a worker, and remembers failures. Throws Fault `variant-unavailable`, `variants-busy` and `media-unknown`. With
   * `isAhead`, the render gives way to requests: then it throws PictureTaskPreempted.
   */
  async render(item: Item, variant: Variant, opened: OpenBlob, options: RenderOptions): Promise<Rendered> {
    const picture = await opened.share()
    const file = toolFor(item.contentType) === null ? null : await sourceFileOf(picture)
    try {
      const extraction = file && extractionFor(item.contentType, this.#parts.tools, file)
      const source = { picture: file?.path ?? sourceOf(picture), file, extraction }
      return await this.#renderSource(item, variant, source, options)
    } finally {
      await (file ?? picture).release()
    }
  }

  async #renderSource(
    item: Item,
    variant: Variant,
    source: Source,
    { isAhead, onResult }: RenderOptions,
  ): Promise<Rendered> {
    const { onRendered, onOverLimits, onUnsupported } = this.#parts
    if (isAhead && !this.#supported) throw unsupported()
    const startedAt = performance.now()
    const report = (outcome: RenderReport['outcome']) =>
      onRendered({ variant, seconds: (performance.now() - startedAt) / 1000, outcome })
    // A worker renders, or has none of its limits left.
    let result: PictureResult
    try {
      result = await this.#runTasks(item, variant, source, isAhead)
    } catch (error) {
      if (error instanceof PictureOverLimits) {
        report('too-hard')
        onOverLimits(item.id, error)
      } else if (!isAhead) report('refused')
      throw await this.#faultFor(item, error)
    }
    onResult()
    if (result.outcome === 'resized') {
      report('made')
      return result
    }
    // What a worker could not render now, it cannot render later.
    if (result.outcome === 'unsupported') {
      report('unsupported')
      if (this.#supported) onUnsupported(result.reason)
      this.#supported = false
      throw unsupported()
    }
    report('unreadable')
    const kind = result.outcome === 'unknown-form' ? 'unknown-form' : 'damaged'
    throw await this.#rememberFailure(item, kind)
  }

  /** A file with several pictures has a second task, which hides all but one. */
  async #runTasks(
    item: Item,
    variant: Variant,
    { picture, file, extraction }: Source,
    isAhead: boolean,
  ): Promise<PictureResult> {
    const { maxPixels, animationTime } = this.#parts
    const workers = extraction === null ? this.#parts.workers : this.#parts.toolWorkers
    const recorded = recordedOf(item)
    const task = { type: 'resize', form: variant, maxPixels, animationTime, recorded, extraction } as const
    const runTask = (path: PictureSource) =>
      isAhead
        ? workers.runAhead({ ...task, picture: path })
        : workers.run({ ...task, picture: path }, `${item.bucketId}`)
    const result = await runTask(picture)
    return result.outcome === 'several' && file ? runTask(await file.copyWith(result.hiding)) : result
  }

  async #faultFor(item: Item, error: unknown): Promise<unknown> {
    if (error instanceof PictureTaskPreempted) return error
    if (error instanceof PictureWorkersBusy)
      return new Fault('variants-busy', 'Too many variants are being rendered.', { cause: error.cause })
    if (!(error instanceof PictureOverLimits)) return error
    return this.#rememberFailure(item, 'too-hard')
  }

  /** Records the failure, unless the item was deleted in the meantime. */
  async #rememberFailure(item: Item, kind: FailureKind): Promise<Fault> {
    const { catalog, blobs } = this.#parts
    const reason = await this.#failures.add(item, kind)
    if ((await catalog.item(item.id)) !== null) return unavailable(reason)
    await blobs.variants.remove(item.id)
    return itemUnknown()
  }
}

const recordedOf = ({ thumbhash, width, height }: RecordedPreview): RecordedPreview => ({
  thumbhash,
  width,
  height,
})

/** Identifies a variant of an item. */
const keyOf = ({ id }: Item, variant: Variant): string => `${id}.${variant.key}`

const unavailable = (detail: string) => new Fault('variant-unavailable', detail)
const unsupported = () => unavailable('This service cannot make pictures on its platform.')
