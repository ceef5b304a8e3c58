import { setTimeout } from 'node:timers/promises'
import { Fault, type FaultCode } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import { hasVariants, toolFor } from '../core/variants.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId, Item, NewItem } from '../storage/catalog/records.ts'
import { isTrash } from '../storage/catalog/trash.ts'
import { createPictureQueue, PictureTaskPreempted } from './picture-queue.ts'
import type { PictureWorkers } from './picture-workers.ts'
import { type InstalledTools, toolNames } from './tools.ts'

/** Renders a variant of new items before the first request for it (docs/interface.md V16). */
export interface RenderAhead {
  /** Queues a new item, if it may have variants. Returns at once. */
  add(bucketId: BucketId, item: AheadItem): void
  /** The number of items that wait. */
  readonly length: number
  /** Drops all items. */
  stop(): void
}

type AheadItem = Pick<NewItem, 'id' | 'contentType' | 'width' | 'height'>

interface QueuedItem {
  readonly bucket: string
  readonly id: ItemId
  /** Attempts so far. */
  attempts: number
}

/** Milliseconds. */
interface Clock {
  now(): number
  rest(time: number): Promise<unknown>
}

/** Items of each kind that may wait. If there are more, the earliest one of the bucket with the most is dropped. */
const maxWaiting = 10_000

/** Attempts to render one item. */
const maxAttempts = 5

/** Milliseconds after an upload in which a queue rests after a render. */
const quietTime = 100

/** Rest after a render, as a multiple of its duration. So a queue that rests uses about a tenth of a core. */
const restFactor = 9

/** Milliseconds of rest after a temporary fault, which probably concerns the other items too. */
const faultRest = 10_000

const temporaryFaults: readonly FaultCode[] = [
  'storage-unavailable',
  'overloaded',
  'catalog-busy',
  'catalog-unavailable',
  'variants-busy',
]
/** The first request for the variant reports the cause, if it remains. */
const unreportedFaults: readonly FaultCode[] = [
  'variant-unavailable',
  'media-unknown',
  'bytes-missing',
  'variants-busy',
]

const systemClock: Clock = {
  now: () => performance.now(),
  rest: (time) => setTimeout(time, undefined, { ref: false }),
}

export function createRenderAhead(
  parts: {
    readonly catalog: Pick<Catalog, 'item'>
    /** Throws PictureTaskPreempted if the render has given way to requests. */
    readonly render: (item: Item) => Promise<void>
    readonly workers: Pick<PictureWorkers, 'whenIdle'>
    readonly toolWorkers: Pick<PictureWorkers, 'whenIdle'>
    readonly tools: InstalledTools
    readonly maxPixels: number
    /** Not called for failures that requests report too. */
    readonly onFailure: (id: ItemId, error: unknown) => void
  },
  { now, rest }: Clock = systemClock,
): RenderAhead {
  const { catalog, render, workers, toolWorkers, maxPixels, onFailure } = parts
  const tools = toolNames(parts.tools)
  let isStopped = false
  let lastUploadAt = Number.NEGATIVE_INFINITY

  /** Returns why the item needs another attempt, or null. */
  async function attempt(id: ItemId): Promise<'preempted' | 'fault' | null> {
    try {
      const item = await catalog.item(id)
      if (item !== null && !isTrash(item.bucketId)) await render(item)
      return null
    } catch (error) {
      if (error instanceof PictureTaskPreempted) return 'preempted'
      const isFault = (codes: readonly FaultCode[]) => error instanceof Fault && codes.includes(error.code)
      if (!isStopped && !isFault(unreportedFaults)) onFailure(id, error)
      return isFault(temporaryFaults) ? 'fault' : null
    }
  }

  /** Resolves after this time in milliseconds, or as soon as no uploads arrive. */
  async function restWhileUploading(time: number): Promise<void> {
    const end = now() + time
    while (!isStopped && now() < end && now() - lastUploadAt < quietTime)
      await rest(Math.min(quietTime, end - now()))
  }

  /** One item at a time, and none while requests use the workers. */
  function createQueue(own: Pick<PictureWorkers, 'whenIdle'>, others: Pick<PictureWorkers, 'whenIdle'>) {
    const waiting = createPictureQueue<QueuedItem>(maxWaiting)
    let isWorking = false

    async function work(): Promise<void> {
      while (!isStopped) {
        await others.whenIdle()
        await own.whenIdle()
        const next = waiting.take(() => 0, 1)
        if (next === null || isStopped) break
        const startedAt = now()
        const reason = await attempt(next.id)
        const duration = now() - startedAt
        next.attempts += 1
        if (reason !== null && !isStopped && next.attempts < maxAttempts) waiting.add(next, true)
        if (reason === 'fault') await rest(faultRest)
        else await restWhileUploading(restFactor * duration)
      }
      isWorking = false
    }

    return {
      waiting,
      add(item: QueuedItem): void {
        // The newest first, as the gallery shows them.
        waiting.add(item, true)
        waiting.overflow(item)
        if (isWorking) return
        isWorking = true
        // After the response to the upload.
        setImmediate(() => void work())
      },
    }
  }

  const queues = { decoded: createQueue(workers, toolWorkers), extracted: createQueue(toolWorkers, workers) }

  return {
    add(bucketId, { id, contentType, width, height }) {
      lastUploadAt = now()
      if (isStopped) return
      if (!hasVariants(contentType, tools) || (width ?? 0) * (height ?? 0) > maxPixels) return
      const queue = toolFor(contentType) === null ? queues.decoded : queues.extracted
      queue.add({ bucket: `${bucketId}`, id, attempts: 0 })
    },
    get length() {
      return queues.decoded.waiting.length + queues.extracted.waiting.length
    },
    stop() {
      isStopped = true
      for (const { waiting } of Object.values(queues)) waiting.clear()
    },
  }
}
