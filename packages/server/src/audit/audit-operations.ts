import {
  type AuditLog,
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

/** Deleted buckets had names that others may have now. */
const idsOf = (names: ReadonlyMap<BucketId, string>, name: string): BucketId[] =>
  [...names].flatMap(([id, known]) => (known === name ? [id] : []))

async function* withNames(
  log: Pick<AuditLog, 'bucketNames'>,
  batches: AsyncIterable<readonly RecordedEvent[]>,
  known: ReadonlyMap<BucketId, string>,
): AsyncGenerator<readonly NamedEvent[]> {
  let names = known
  const nameOf = (id: BucketId | null) => (id === null ? null : (names.get(id) ?? null))
  for await (const events of batches) {
    if (events.some(({ bucketId }) => bucketId !== null && !names.has(bucketId)))
      names = await log.bucketNames()
    yield events.map((event) => ({ ...event, bucket: nameOf(event.bucketId) }))
  }
}
