import { setTimeout } from 'node:timers/promises'
import type { Catalog } from '../../catalog/catalog.ts'
import type { BucketId, Media, NewMedia } from '../../catalog/records.ts'
import { isTrash } from '../../catalog/trash.ts'
import { Fault } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import { toolFor } from '../../core/picture-tools.ts'
import { hasVariants } from '../../core/variant.ts'
import { type InstalledTools, toolNames } from './find-tools.ts'
import { PictureTaskPreempted } from './picture-errors.ts'
import { createPictureQueue } from './picture-queue.ts'
import type { PictureWorkers } from './picture-workers.ts'

/** Renders a variant of new items before the first request for it (docs/interface.md V16). */
export interface RenderAhead {
  /** Queues a new item, if it may have variants. Returns at once. */
  add(bucketId: BucketId, item: NewItem): void
  /** The number of items that wait. */
  readonly length: number
  /** Drops all items. */
  stop(): void
}

type NewItem = Pick<NewMedia, 'id' | 'contentType' | 'width' | 'height'>

interface QueuedItem {
  readonly bucket: string
  readonly id: MediaId
  /** How often its render has given way to requests. */
  attempts: number
}

/** Items of each kind that wait; the earliest ones of the bucket with the most are dropped. */
const maxWaiting = 10_000

/** An item whose render has given way to requests so often is dropped. */
const maxAttempts = 5

/** Milliseconds without an upload after which the processors are free for renders. */
const quietTime = 100

/** While uploads arrive, a queue rests so many times as long as its last render took: it uses a tenth of a core. */
const restFactor = 9

export function createRenderAhead(parts: {
  readonly catalog: Pick<Catalog, 'media'>
  /** Throws PictureTaskPreempted if the render has given way to requests. */
  readonly render: (media: Media) => Promise<void>
  readonly workers: Pick<PictureWorkers, 'whenIdle'>
  readonly toolWorkers: Pick<PictureWorkers, 'whenIdle'>
  readonly tools: InstalledTools
  readonly maxPixels: number
  readonly onFailure: (id: MediaId, error: unknown) => void
}): RenderAhead {
  const { catalog, workers, toolWorkers, maxPixels, onFailure } = parts
  const tools = toolNames(parts.tools)
  let isStopped = false
  let lastUploadAt = Number.NEGATIVE_INFINITY

  /** Returns false if the render has given way to requests. */
  async function render(id: MediaId): Promise<boolean> {
    try {
      const media = await catalog.media(id)
      if (media !== null && !isTrash(media.bucketId)) await parts.render(media)
      return true
    } catch (error) {
      if (error instanceof PictureTaskPreempted) return false
      if (error instanceof Fault) return true
      if (!isStopped) onFailure(id, error)
      return true
    }
  }

  /** Resolves after this time in milliseconds, or as soon as no uploads arrive. */
  async function restFor(time: number): Promise<void> {
    const until = performance.now() + time
    while (!isStopped && performance.now() < until && performance.now() - lastUploadAt < quietTime)
      await setTimeout(quietTime, undefined, { ref: false })
  }

  /** One item at a time, and none while requests use the workers. */
  function createLane(own: Pick<PictureWorkers, 'whenIdle'>, others: Pick<PictureWorkers, 'whenIdle'>) {
    const queue = createPictureQueue<QueuedItem>(maxWaiting)
    let isWorking = false

    async function work(): Promise<void> {
      while (!isStopped) {
        await others.whenIdle()
        await own.whenIdle()
        const next = queue.take(() => 0, 1)
        if (next === null || isStopped) break
        const startedAt = performance.now()
        const isDone = await render(next.id)
        next.attempts += 1
        if (!isDone && !isStopped && next.attempts < maxAttempts) queue.add(next, true)
        await restFor(restFactor * (performance.now() - startedAt))
      }
      isWorking = false
    }

    return {
      queue,
      add(item: QueuedItem): void {
        // The newest first, as the gallery shows them.
        queue.add(item, true)
        queue.overflow(item)
        if (isWorking) return
        isWorking = true
        // After the response to the upload.
        setImmediate(() => void work())
      },
    }
  }

  const lanes = { decoded: createLane(workers, toolWorkers), extracted: createLane(toolWorkers, workers) }

  return {
    add(bucketId, { id, contentType, width, height }) {
      lastUploadAt = performance.now()
      if (isStopped) return
      if (!hasVariants(contentType, tools) || (width ?? 0) * (height ?? 0) > maxPixels) return
      const lane = toolFor(contentType) === null ? lanes.decoded : lanes.extracted
      lane.add({ bucket: `${bucketId}`, id, attempts: 0 })
    },
    get length() {
      return lanes.decoded.queue.length + lanes.extracted.queue.length
    },
    stop() {
      isStopped = true
      for (const { queue } of Object.values(lanes)) queue.clear()
    },
  }
}
