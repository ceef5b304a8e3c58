import { setTimeout } from 'node:timers/promises'
import { Fault, type FaultCode } from '../core/faults.ts'
import type { ItemId } from '../core/ids.ts'
import { hasVariants, toolFor } from '../core/variants.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import { isTrash } from '../storage/catalog/items/trash.ts'
import type { BucketId, Item, NewItem } from '../storage/catalog/records.ts'
import { PictureQueue, PictureTaskPreempted } from './picture-queue.ts'
import type { PictureWorkers } from './picture-workers.ts'
import { type InstalledTools, toolNames } from './tools.ts'

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

interface AheadParts {
  readonly catalog: Pick<Catalog, 'item'>
  /** Throws PictureTaskPreempted if the render has given way to requests. */
  readonly render: (item: Item) => Promise<void>
  readonly workers: Pick<PictureWorkers, 'whenIdle'>
  readonly toolWorkers: Pick<PictureWorkers, 'whenIdle'>
  readonly tools: InstalledTools
  readonly maxPixels: number
  /** Not called for failures that requests report too. */
  readonly onFailure: (id: ItemId, error: unknown) => void
}

/** Renders a variant of new items before the first request for it (docs/interface.md V16). */
export class RenderAhead {
  readonly #parts: AheadParts
  readonly #clock: Clock
  readonly #tools: ReturnType<typeof toolNames>
  readonly #decoded: AheadQueue
  readonly #extracted: AheadQueue
  #isStopped = false
  #lastUploadAt = Number.NEGATIVE_INFINITY

  constructor(parts: AheadParts, clock: Clock = systemClock) {
    const { workers, toolWorkers, tools } = parts
    this.#parts = parts
    this.#clock = clock
    this.#tools = toolNames(tools)
    const renderOne: RenderOne = (item, repeat) => this.#renderOne(item, repeat)
    this.#decoded = new AheadQueue({ own: workers, others: toolWorkers }, renderOne)
    this.#extracted = new AheadQueue({ own: toolWorkers, others: workers }, renderOne)
  }

  /** Queues a new item, if it may have variants. Returns at once. */
  add(bucketId: BucketId, { id, contentType, width, height }: AheadItem): void {
    this.#lastUploadAt = this.#clock.now()
    if (this.#isStopped) return
    const pixels = (width ?? 0) * (height ?? 0)
    if (!hasVariants(contentType, this.#tools) || pixels > this.#parts.maxPixels) return
    const queue = toolFor(contentType) === null ? this.#decoded : this.#extracted
    queue.add({ bucket: `${bucketId}`, id, attempts: 0 })
  }

  /** The number of items that wait. */
  get length(): number {
    return this.#decoded.length + this.#extracted.length
  }

  /** Drops all items. */
  stop(): void {
    this.#isStopped = true
    this.#decoded.stop()
    this.#extracted.stop()
  }

  /** Returns why the item needs another attempt, or null. */
  async #attempt(id: ItemId): Promise<'preempted' | 'fault' | null> {
    const { catalog, render, onFailure } = this.#parts
    try {
      const item = await catalog.item(id)
      if (item !== null && !isTrash(item.bucketId)) await render(item)
      return null
    } catch (error) {
      if (error instanceof PictureTaskPreempted) return 'preempted'
      if (!this.#isStopped && !isFaultOf(error, unreportedFaults)) onFailure(id, error)
      return isFaultOf(error, temporaryFaults) ? 'fault' : null
    }
  }

  async #renderOne(item: QueuedItem, repeat: (item: QueuedItem) => void): Promise<void> {
    const { now, rest } = this.#clock
    const startedAt = now()
    const reason = await this.#attempt(item.id)
    const duration = now() - startedAt
    item.attempts += 1
    if (reason !== null && !this.#isStopped && item.attempts < maxAttempts) repeat(item)
    if (reason === 'fault') await rest(faultRest)
    else await this.#restWhileUploading(restFactor * duration)
  }

  /** Resolves after this time in milliseconds, or as soon as no uploads arrive. */
  async #restWhileUploading(time: number): Promise<void> {
    const { now, rest } = this.#clock
    const end = now() + time
    while (!this.#isStopped && now() < end && now() - this.#lastUploadAt < quietTime)
      await rest(Math.min(quietTime, end - now()))
  }
}

const isFaultOf = (error: unknown, codes: readonly FaultCode[]): boolean =>
  error instanceof Fault && codes.includes(error.code)

/** The workers that render the items of a queue, and the others, whose requests go first too. */
interface QueueWorkers {
  readonly own: Pick<PictureWorkers, 'whenIdle'>
  readonly others: Pick<PictureWorkers, 'whenIdle'>
}

/** Renders an item, and rests. `repeat` is called before the rest if it needs another attempt. */
type RenderOne = (item: QueuedItem, repeat: (item: QueuedItem) => void) => Promise<void>

/** Renders one item at a time, and none while requests use the workers. */
class AheadQueue {
  readonly #workers: QueueWorkers
  readonly #renderOne: RenderOne
  readonly #waiting = new PictureQueue<QueuedItem>(maxWaiting)
  #isWorking = false
  #isStopped = false

  constructor(workers: QueueWorkers, renderOne: RenderOne) {
    this.#workers = workers
    this.#renderOne = renderOne
  }

  get length(): number {
    return this.#waiting.length
  }

  add(item: QueuedItem): void {
    // The newest first, as the gallery shows them.
    this.#waiting.add(item, true)
    this.#waiting.overflow(item)
    if (this.#isWorking) return
    this.#isWorking = true
    // After the response to the upload.
    setImmediate(() => void this.#work())
  }

  stop(): void {
    this.#isStopped = true
    this.#waiting.clear()
  }

  async #work(): Promise<void> {
    const { own, others } = this.#workers
    while (!this.#isStopped) {
      await others.whenIdle()
      await own.whenIdle()
      const next = this.#waiting.take(() => 0, 1)
      if (next === null || this.#isStopped) break
      await this.#renderOne(next, (item) => this.#waiting.add(item, true))
    }
    this.#isWorking = false
  }
}
