import type { BlobStore, OpenBlob } from '../../blobs/blobs.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Item, NewPreview } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import type { ItemId } from '../../core/media-id.ts'
import { toolFor } from '../../core/picture-tools.ts'
import type { Variant } from '../../core/variant.ts'
import { itemUnknown } from '../find-media.ts'
import { extractionFor, type InstalledTools } from './find-tools.ts'
import { PictureOverLimits, PictureTaskPreempted, PictureWorkersBusy } from './picture-errors.ts'
import {
  type Extraction,
  type PictureResult,
  type PictureSource,
  type RecordedPreview,
  sourceOf,
} from './picture-task.ts'
import type { PictureWorkers } from './picture-workers.ts'
import { createRenderFailures, type FailureParts } from './render-failures.ts'
import { type SourceFile, sourceFileOf } from './source-file.ts'

/** The result of a render, and its duration in seconds, including the time in the queue. */
interface RenderReport {
  readonly variant: Variant
  readonly seconds: number
  readonly outcome: 'made' | 'unreadable' | 'too-hard' | 'unsupported' | 'refused'
}

export interface Rendered {
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

export interface VariantRenderer {
  /**
   * Renders a variant in a worker, and remembers failures. Throws Fault `variant-unavailable`, `variants-busy` and `media-unknown`. With
   * `isAhead`, the render gives way to requests: then it throws PictureTaskPreempted.
   */
  render(item: Item, variant: Variant, opened: OpenBlob, options: RenderOptions): Promise<Rendered>
  /** Throws Fault `variant-unavailable` if a render of the item has failed, and is not tried again, or not for a while. */
  requireRenderable(item: Item): Promise<void>
}

export function createVariantRenderer(parts: RenderParts): VariantRenderer {
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
      // Earlier versions turned HEIC pictures twice, and recorded what they saw.
      const recorded = item.thumbhash === null || extraction?.tool === 'heif-convert' ? item : null
      const task = {
        type: 'resize',
        form: variant,
        maxPixels,
        recorded: recordedOf(recorded),
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
    throw await rememberFailure(item, 'damaged')
  }

  async function faultFor(item: Item, error: unknown): Promise<unknown> {
    if (error instanceof PictureTaskPreempted) return error
    if (error instanceof PictureWorkersBusy)
      return new Fault('variants-busy', 'Too many variants are being rendered.')
    if (!(error instanceof PictureOverLimits)) return error
    return rememberFailure(item, 'too-hard')
  }

  /** Records the failure, unless the item was deleted in the meantime. */
  async function rememberFailure(item: Item, kind: 'damaged' | 'too-hard'): Promise<Fault> {
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

const recordedOf = (item: RecordedPreview | null): RecordedPreview | null =>
  item && { thumbhash: item.thumbhash, width: item.width, height: item.height }

/** Identifies a variant of an item. */
export const keyOf = ({ id }: Item, variant: Variant): string => `${id}.${variant.key}`

export const unavailable = (detail: string) => new Fault('variant-unavailable', detail)
const unsupported = () => unavailable('This service cannot make pictures on its platform.')
