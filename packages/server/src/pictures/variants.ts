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
import { createRenderFailures, type FailureKind, type FailureParts } from './render-failures.ts'
import { extractionFor, type InstalledTools, type SourceFile, sourceFileOf } from './tools.ts'

export type OpenVariant = Pick<OpenBlob, 'size' | 'content' | 'read' | 'stream' | 'close'>

interface OpenOptions {
  readonly wholeUpTo?: number
  readonly wait?: VariantWait
}

/** A request that waits for nothing has this time, in milliseconds, so that it is refused if the queue is full. */
const leastWait = 25

export interface Variants {
  /**
   * The variant of an item, rendered if it is not stored. Concurrent requests for one variant share one render. Throws
   * Fault `variant-unavailable`, `variants-busy`, and the faults of opening the bytes (docs/interface.md, Variants).
   * Up to `wholeUpTo` bytes, 0 by default, may be returned in memory. Throws VariantPending if it is not rendered after `wait` seconds.
   */
  open(item: Item, variant: Variant, options?: OpenOptions): Promise<OpenVariant>
  /** Renders and stores a variant that is not stored, while no request needs the workers. Throws as `open`, and PictureTaskPreempted. */
  renderAhead(item: Item, variant: Variant): Promise<void>
  /** Resolves when every variant whose worker has replied is stored. */
  settled(): Promise<void>
}

/** A render in progress, until its variant is stored. */
interface Render {
  readonly rendered: Promise<Rendered>
  /** Never rejects. */
  readonly stored: Promise<void>
  /** Whether its worker has replied. */
  hasResult: boolean
}

export function createVariants(
  parts: RenderParts & {
    readonly catalog: Pick<Catalog, 'item' | 'setPreview'>
    readonly blobs: Pick<BlobStore, 'variants'>
    /** Fails for an item whose bytes are missing or damaged. */
    readonly openBytes: (item: Item) => Promise<OpenBlob>
    /** False if the disk is too full to store variants. They are rendered and served without being stored. */
    readonly hasRoom: () => boolean
    /** A variant was rendered and served, but it, or what the render has found, could not be stored; or a stored one could not be read. */
    readonly onStoreFailure: (id: ItemId, error: unknown) => void
  },
): Variants {
  const { catalog, blobs, openBytes, tools, hasRoom } = parts
  const renderer = createVariantRenderer(parts)
  const renders = new Map<string, Render>()

  /** A delete removes variants after the row. A variant that is stored later is removed here. */
  async function store(item: Item, variant: Variant, { bytes, preview }: Rendered): Promise<void> {
    try {
      if (!hasRoom()) return
      // The variant first: without it, each request would render again while the catalog cannot be written.
      await blobs.variants.store(item.id, variant.key, bytes)
      if ((await catalog.item(item.id)) === null) await blobs.variants.remove(item.id)
      else if (preview !== null) await catalog.setPreview(item.bucketId, item.id, preview)
    } catch (error) {
      parts.onStoreFailure(item.id, error)
    }
  }

  function start(item: Item, variant: Variant, opened: OpenBlob, isAhead: boolean): Render {
    const key = keyOf(item, variant)
    const onResult = () => {
      render.hasResult = true
    }
    const rendered = renderer.render(item, variant, opened, { isAhead, onResult }).catch((error: unknown) => {
      // Before the requests that share it receive the error: they start another render.
      renders.delete(key)
      throw error
    })
    // Until the variant is stored, requests share the rendered bytes.
    const stored = rendered.then(
      async (result) => {
        await store(item, variant, result)
        renders.delete(key)
      },
      () => undefined,
    )
    const render: Render = { rendered, stored, hasResult: false }
    renders.set(key, render)
    return render
  }

  /** `earlier` is a render that was in progress before the variant was looked up. Its variant may be stored since. */
  async function renderOnce(
    item: Item,
    variant: Variant,
    opened: OpenBlob,
    earlier?: Render,
  ): Promise<Rendered> {
    const running = renders.get(keyOf(item, variant)) ?? (earlier?.hasResult ? earlier : undefined)
    if (running === undefined) return start(item, variant, opened, false).rendered
    try {
      return await running.rendered
    } catch (error) {
      if (!(error instanceof PictureTaskPreempted)) throw error
      return renderOnce(item, variant, opened)
    }
  }

  /**
   * A variant is served only while the bytes of its picture are (docs/interface.md V7). If they are in a file, the read of the variant checks
   * that too.
   */
  async function openStored(item: Item, variant: Variant, wholeUpTo: number): Promise<OpenVariant | null> {
    const isFile = !item.isDamaged && item.contentId === null
    if (!isFile) await openAndClose(item)
    try {
      return await blobs.variants.open(
        item.id,
        variant.key,
        isFile ? { wholeUpTo, pictureSize: item.size } : { wholeUpTo },
      )
    } catch (error) {
      // On a read-only disk the database of variants cannot be opened: they are rendered again.
      if (error instanceof Fault || storageCauseOf(error) === null) throw error
      parts.onStoreFailure(item.id, error)
      return null
    }
  }

  async function openAndClose(item: Item): Promise<OpenBlob> {
    const opened = await openBytes(item)
    await opened.close()
    return opened
  }

  function requireTypeWithVariants(contentType: string): void {
    const tool = toolFor(contentType)
    if (tool === null ? isDecoded(contentType) : tools.has(tool)) return
    const reason =
      tool === null
        ? 'Variants exist for JPEG, PNG, GIF, WebP, TIFF and AVIF, and for videos, PDF and HEIC where their programs are installed.'
        : `Its variants need ${tool}, which is not installed.`
    throw unavailable(`This item is ${contentType}. ${reason}`)
  }

  return {
    async open(item, variant, { wholeUpTo = 0, wait = null } = {}) {
      requireTypeWithVariants(item.contentType)
      const running = renders.get(keyOf(item, variant))
      const stored = await openStored(item, variant, wholeUpTo)
      if (stored !== null) return stored
      const picture = await openAndClose(item)
      await renderer.requireRenderable(item)
      const { bytes } = await within(wait, renderOnce(item, variant, picture, running))
      if ((await catalog.item(item.id)) === null) throw itemUnknown()
      return openMemoryBlob(bytes)
    },

    async renderAhead(item, variant) {
      requireTypeWithVariants(item.contentType)
      // Also before the variant is looked up: the render may store it in the meantime, and end.
      const isRendered = () => renders.has(keyOf(item, variant))
      if (!hasRoom() || isRendered()) return
      const stored = await openStored(item, variant, 0)
      if (stored !== null) return stored.close()
      const picture = await openAndClose(item)
      await renderer.requireRenderable(item)
      if (isRendered()) return
      const render = start(item, variant, picture, true)
      await render.rendered
      await render.stored
    },

    async settled() {
      // The others may still be downloading their picture.
      const finishing = () => [...renders.values()].filter(({ hasResult }) => hasResult)
      while (finishing().length > 0) await Promise.all(finishing().map(({ stored }) => stored))
    },
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

export interface RenderParts extends FailureParts {
  readonly catalog: Pick<Catalog, 'item'>
  readonly blobs: Pick<BlobStore, 'variants'>
  readonly workers: Pick<PictureWorkers, 'run' | 'runAhead'>
  /** Those that start programs, and the programs. */
  readonly toolWorkers: Pick<PictureWorkers, 'run' | 'runAhead'>
  readonly tools: InstalledTools
  readonly maxPixels: number
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

interface VariantRenderer {
  /**
   * Renders a variant in a worker, and remembers failures. Throws Fault `variant-unavailable`, `variants-busy` and `media-unknown`. With
   * `isAhead`, the render gives way to requests: then it throws PictureTaskPreempted.
   */
  render(item: Item, variant: Variant, opened: OpenBlob, options: RenderOptions): Promise<Rendered>
  /** Throws Fault `variant-unavailable` if a render of the item has failed, and is not tried again, or not for a while. */
  requireRenderable(item: Item): Promise<void>
}

function createVariantRenderer(parts: RenderParts): VariantRenderer {
  const { catalog, maxPixels, tools } = parts
  const failures = createRenderFailures(parts)
  let supported = true

  async function run(
    item: Item,
    variant: Variant,
    { picture, file, extraction }: Source,
    { isAhead, onResult }: RenderOptions,
  ): Promise<Rendered> {
    if (isAhead && !supported) throw unsupported()
    const startedAt = performance.now()
    const report = (outcome: RenderReport['outcome']) =>
      parts.onRendered({ variant, seconds: (performance.now() - startedAt) / 1000, outcome })
    let result: PictureResult
    try {
      const workers = extraction === null ? parts.workers : parts.toolWorkers
      const task = {
        type: 'resize',
        form: variant,
        maxPixels,
        recorded: recordedOf(item),
        extraction,
      } as const
      const runTask = (path: PictureSource) =>
        isAhead
          ? workers.runAhead({ ...task, picture: path })
          : workers.run({ ...task, picture: path }, `${item.bucketId}`)
      result = await runTask(picture)
      if (result.outcome === 'several' && file) result = await runTask(await file.copyWith(result.hiding))
    } catch (error) {
      if (error instanceof PictureOverLimits) {
        report('too-hard')
        parts.onOverLimits(item.id, error)
      } else if (!isAhead) report('refused')
      throw await faultFor(item, error)
    }
    onResult()
    if (result.outcome === 'resized') {
      report('made')
      return result
    }
    if (result.outcome === 'unsupported') {
      report('unsupported')
      if (supported) parts.onUnsupported(result.reason)
      supported = false
      throw unsupported()
    }
    report('unreadable')
    throw await rememberFailure(item, result.outcome === 'unknown-form' ? 'unknown-form' : 'damaged')
  }

  async function faultFor(item: Item, error: unknown): Promise<unknown> {
    if (error instanceof PictureTaskPreempted) return error
    if (error instanceof PictureWorkersBusy)
      return new Fault('variants-busy', 'Too many variants are being rendered.', { cause: error.cause })
    if (!(error instanceof PictureOverLimits)) return error
    return rememberFailure(item, 'too-hard')
  }

  /** Records the failure, unless the item was deleted in the meantime. */
  async function rememberFailure(item: Item, kind: FailureKind): Promise<Fault> {
    const reason = await failures.add(item, kind)
    if ((await catalog.item(item.id)) !== null) return unavailable(reason)
    await parts.blobs.variants.remove(item.id)
    return itemUnknown()
  }

  return {
    async render(item, variant, opened, options) {
      const picture = await opened.share()
      const file = toolFor(item.contentType) === null ? null : await sourceFileOf(picture)
      try {
        const extraction = file && extractionFor(item.contentType, tools, file)
        return await run(
          item,
          variant,
          { picture: file?.path ?? sourceOf(picture), file, extraction },
          options,
        )
      } finally {
        await (file ?? picture).release()
      }
    },

    async requireRenderable(item) {
      const reason = await failures.reasonOf(item)
      if (reason !== null) throw unavailable(reason)
    },
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
