import { Fault } from '../core/faults.ts'
import type { AuditLog, EventBatch, EventFilter, RecordedEvent } from '../storage/catalog/audit/audit-log.ts'
import type { BucketId } from '../storage/catalog/records.ts'

/** An event with the name of its bucket; null for an event of no bucket. */
export interface NamedEvent extends RecordedEvent {
  readonly bucket: string | null
}

/** Selects events as people do: the bucket by its name. */
export interface NamedFilter extends Omit<EventFilter, 'buckets'> {
  readonly bucket: string | null
}

/** Reads a log, which is opened when it is read for the first time, with the names of buckets. */
export class LogReader {
  readonly #open: () => Promise<AuditLog>
  #log: Promise<AuditLog> | null = null
  #names: ReadonlyMap<BucketId, string> = new Map()

  constructor(open: () => Promise<AuditLog>) {
    this.#open = open
  }

  /** As AuditLog.read. Throws Fault `bucket-unknown` for a name that no bucket has or had. */
  async read(
    { bucket, ...filter }: NamedFilter,
    after: string | null,
    limit: number,
  ): Promise<EventBatch<NamedEvent>> {
    const log = await this.#opened()
    if (bucket !== null) this.#names = await log.bucketNames()
    const buckets = bucket === null ? null : idsOf(this.#names, bucket)
    if (buckets?.length === 0) throw new Fault('bucket-unknown', 'There is and was no bucket with this name.')
    const { events, ...batch } = await log.read({ ...filter, buckets }, after, limit)
    if (events.some(({ bucketId }) => bucketId !== null && !this.#names.has(bucketId)))
      this.#names = await log.bucketNames()
    return { ...batch, events: events.map((event) => ({ ...event, bucket: this.#nameOf(event.bucketId) })) }
  }

  async close(): Promise<void> {
    await (await this.#log)?.close()
  }

  #nameOf(id: BucketId | null): string | null {
    return id === null ? null : (this.#names.get(id) ?? null)
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
