import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../../../core/faults.ts'
import type { Actor } from '../../../core/token-rules.ts'
import { writesOf } from '../declarations.ts'
import type { BucketId } from '../records.ts'
import { integer, integerOrNull, type Row, text, textOrNull, type Work, write } from '../statements.ts'
import {
  type AuditAction,
  type AuditDetail,
  type AuditEvent,
  actorKinds,
  auditActions,
} from './audit-events.ts'

/** An event as it was recorded. */
export interface RecordedEvent {
  /** Milliseconds since 1970. */
  readonly time: number
  /** Unique in its catalog. */
  readonly uid: string
  readonly action: AuditAction
  readonly by: Actor
  readonly bucketId: BucketId | null
  /** The id of the item or the token. */
  readonly target: string | null
  /** The name of the file, the token or the bucket, if it is known. */
  readonly name: string | null
  readonly size: number | null
  readonly detail: AuditDetail
}

/** Selects events; null selects all. */
export interface EventFilter {
  /** Milliseconds since 1970: from `since` on, before `until`. */
  readonly since: number | null
  readonly until: number | null
  /** Buckets, also deleted ones. */
  readonly buckets: readonly BucketId[] | null
  /** The id of an item or a token. Links of several items are selected by each of them. */
  readonly target: string | null
  /** The token that the client used. */
  readonly tokenId: string | null
  readonly action: AuditAction | null
}

/** Some of the selected events. */
export interface EventBatch<Event = RecordedEvent> {
  readonly events: readonly Event[]
  /** Where the next batch begins: after these events, also if there are no others yet. */
  readonly next: string
  /** Whether there were others when this batch was read. */
  readonly hasMore: boolean
}

/** Reads the audit log, also while servers write to it. Events are in the order in which they were recorded. */
export interface AuditLog {
  /**
   * The next events, at most `limit`, after an earlier batch; null begins with the first. Batch by batch, each event is returned once, also those that
   * are recorded in between. Throws Fault `cursor-malformed`.
   */
  read(filter: EventFilter, after: string | null, limit: number): Promise<EventBatch>
  /** The names of buckets, also of deleted ones. */
  bucketNames(): Promise<ReadonlyMap<BucketId, string>>
  close(): Promise<void>
}

/** The links of several items, which are one event: a condition whose only value is the id of an item. */
export const linksOfItem = `action = ${auditActions.link} AND action > 1 AND target IS NULL AND detail LIKE '%"' || ? || '"%'`

/** Events in a batch. */
const batchLength = 500

/** Milliseconds between two reads of new events. */
const followInterval = 250

/**
 * Batches of the selected events. With a signal, those that are recorded later follow, until it is aborted or no further events can be
 * selected.
 */
export async function* readEvents<Filter extends Pick<EventFilter, 'until'>, Event>(
  log: { read(filter: Filter, after: string | null, limit: number): Promise<EventBatch<Event>> },
  filter: Filter,
  until: AbortSignal | null,
): AsyncGenerator<readonly Event[]> {
  let after: string | null = null
  for (;;) {
    const { events, next, hasMore }: EventBatch<Event> = await log.read(filter, after, batchLength)
    if (events.length > 0) yield events
    after = next
    if (hasMore) continue
    if (until === null || isOver(filter)) return
    await sleep(followInterval, undefined, { signal: until }).catch(() => undefined)
    if (until.aborted) return
  }
}

export const eventCursorMalformed = (): Fault =>
  new Fault('cursor-malformed', 'This is not a cursor of the audit log.')

/** Milliseconds after which an event of a moment has been stored, unless the catalog is busy: downloads wait for a second (Y8). */
const longestDelay = 3_000

/** Whether no further events of the range of times are expected. */
const isOver = ({ until }: Pick<EventFilter, 'until'>): boolean =>
  until !== null && Date.now() > until + longestDelay

// Downloads have the name if there is one. Reading all events of their item for each of them would take quadratic time.
const fileName = `CASE WHEN event.action = ${auditActions.download} THEN event.name ELSE coalesce(event.name,
    (SELECT filename FROM items WHERE items.id = event.target),
    (SELECT tokens.name FROM tokens WHERE tokens.id = event.target),
    (SELECT upload.name FROM audit_events AS upload WHERE upload.target = event.target AND upload.action = 1 LIMIT 1)) END`

/** The columns that `readEvent` reads from a row of `audit_events AS event`. */
export const recordedColumns = `time, action, bucket_id, target, ${fileName}, size, detail, actor, event.token_id, subject,
  address, request_id`
export const recordedColumnCount = 12

const actions = new Map<number, string>(
  Object.entries(auditActions).map(([action, number]) => [number, action]),
)
const kinds = new Map<number, string>(Object.entries(actorKinds).map(([kind, number]) => [number, kind]))

/** Reads `recordedColumns`. Null for an event of a later version. */
export function readEvent(row: Row, uid: string): RecordedEvent | null {
  const action = actions.get(integer(row, 1))
  const kind = kinds.get(integer(row, 7))
  if (action === undefined || kind === undefined) return null
  const detail = textOrNull(row, 6)
  return {
    time: integer(row, 0),
    uid,
    action: action as AuditAction,
    bucketId: integerOrNull(row, 2) as BucketId | null,
    target: textOrNull(row, 3),
    name: textOrNull(row, 4),
    size: integerOrNull(row, 5),
    detail: detail === null ? {} : JSON.parse(detail),
    by: {
      kind: kind as Actor['kind'],
      tokenId: textOrNull(row, 8),
      subject: textOrNull(row, 9),
      address: textOrNull(row, 10),
      requestId: textOrNull(row, 11),
    },
  }
}

/** Buckets that exist, and those that were deleted. */
export const bucketNameRows = `SELECT bucket_id, name FROM audit_events
    WHERE action = ${auditActions['bucket-delete']} AND action > 1 AND name IS NOT NULL
  UNION ALL SELECT id, name FROM buckets WHERE id > 0`

export const readBucketNames = (rows: readonly Row[]): ReadonlyMap<BucketId, string> =>
  new Map(rows.map((row) => [integer(row, 0) as BucketId, text(row, 1)]))

/** Adds events to the audit log that describe no change of the catalog; nothing if the log is off. */
export function* recordEvents(events: readonly AuditEvent[]): Work<undefined> {
  yield (engine) => engine.record(events)
}

/** SQLite numbers events by their times: the first number of a time is its milliseconds times this. */
export const numbersPerMillisecond = 2_048

const removal = {
  // The last event stays, so that its number is not used again.
  sqlite: `DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events
    WHERE id < $1 * ${numbersPerMillisecond} AND id < (SELECT max(id) FROM audit_events) ORDER BY id LIMIT $2)`,
  postgres: `DELETE FROM audit_events WHERE (time, number) IN
    (SELECT time, number FROM audit_events WHERE time < $1 ORDER BY time, number LIMIT $2)`,
}

/** Removes up to `limit` events of the audit log that were recorded before this time, earliest first; returns how many. */
export const removeEvents = (before: number, limit: number): Work<number> => write(removal, before, limit)

export const writes = writesOf({ recordEvents, removeEvents })
