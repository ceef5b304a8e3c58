import {
  type AuditLog,
  type EventBatch,
  type EventFilter,
  type RecordedEvent,
  readEvents,
} from '../storage/catalog/audit/audit-log.ts'
import type { BucketId } from '../storage/catalog/records.ts'

/** An event with the name of its bucket; null for an event of no bucket. */
export interface NamedEvent extends RecordedEvent {
  readonly bucket: string | null
}

/** Selects events as people do: the bucket by its name. */
export interface NamedFilter extends Omit<EventFilter, 'buckets'> {
  readonly bucket: string | null
}

/**
 * Batches of the selected events; if `until` is a signal, also those that are recorded later, until it is aborted (docs/interface.md Y5). Null for
 * the name of a bucket that there never was.
 */
export async function readNamedEvents(
  log: AuditLog,
  { bucket, ...filter }: NamedFilter,
  until: AbortSignal | null,
): Promise<AsyncIterable<readonly NamedEvent[]> | null> {
  const names = await log.bucketNames()
  const buckets = bucket === null ? null : idsOf(names, bucket)
  if (buckets?.length === 0) return null
  const selected = { ...filter, buckets }
  return withNames(log, readEvents(log, selected, until), names)
}

/** A batch of named events, as AuditLog.read. */
interface NamedBatch extends Omit<EventBatch, 'events'> {
  readonly events: readonly NamedEvent[]
}

/** Reads the log of a service, which is opened when it is read for the first time. */
export class LogReader {
  readonly #open: () => Promise<AuditLog>
  #log: Promise<AuditLog> | null = null
  #names: ReadonlyMap<BucketId, string> = new Map()

  constructor(open: () => Promise<AuditLog>) {
    this.#open = open
  }

  /** As AuditLog.read. Null for the name of a bucket that there never was. */
  async read(
    { bucket, ...filter }: NamedFilter,
    after: string | null,
    limit: number,
  ): Promise<NamedBatch | null> {
    const log = await this.#opened()
    if (bucket !== null) this.#names = await log.bucketNames()
    const buckets = bucket === null ? null : idsOf(this.#names, bucket)
    if (buckets?.length === 0) return null
    const { events, ...batch } = await log.read({ ...filter, buckets }, after, limit)
    if (hasUnknown(events, this.#names)) this.#names = await log.bucketNames()
    return { ...batch, events: named(events, this.#names) }
  }

  async close(): Promise<void> {
    await (await this.#log)?.close()
  }

  #opened(): Promise<AuditLog> {
    this.#log ??= this.#open().catch((error: unknown) => {
      this.#log = null
      throw error
    })
    return this.#log
  }
}

/** Deleted buckets had names that others may have now. */
const idsOf = (names: ReadonlyMap<BucketId, string>, name: string): BucketId[] =>
  [...names].flatMap(([id, known]) => (known === name ? [id] : []))

async function* withNames(
  log: Pick<AuditLog, 'bucketNames'>,
  batches: AsyncIterable<readonly RecordedEvent[]>,
  known: ReadonlyMap<BucketId, string>,
): AsyncGenerator<readonly NamedEvent[]> {
  let names = known
  for await (const events of batches) {
    if (hasUnknown(events, names)) names = await log.bucketNames()
    yield named(events, names)
  }
}

const hasUnknown = (events: readonly RecordedEvent[], names: ReadonlyMap<BucketId, string>): boolean =>
  events.some(({ bucketId }) => bucketId !== null && !names.has(bucketId))

const named = (events: readonly RecordedEvent[], names: ReadonlyMap<BucketId, string>): NamedEvent[] =>
  events.map((event) => ({
    ...event,
    bucket: event.bucketId === null ? null : (names.get(event.bucketId) ?? null),
  }))
