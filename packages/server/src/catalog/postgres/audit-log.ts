import type { ItemId } from '../../core/media-id.ts'
import type { Audited } from '../audit-log/events.ts'
import {
  type AuditAction,
  type AuditEvent,
  eventColumns,
  eventValues,
  itemEvents,
} from '../audit-log/events.ts'
import type { BucketId } from '../records.ts'
import { integer, text, textOrNull } from '../rows.ts'
import type { Session } from './session.ts'

const types = 'int8 int4 int8 text text int8 text int4 text text text text'.split(' ')

const insertion = `INSERT INTO audit_events (${eventColumns})
  SELECT * FROM unnest(${types.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})`

/** Stores events of the audit log, in the transaction of the change that they describe. Sends the statement before it returns. */
export async function recordEvents(session: Session, events: readonly AuditEvent[]): Promise<void> {
  if (events.length === 0) return
  const time = Date.now()
  await insertEvents(
    session,
    events.map((event) => eventValues(event, time)),
  )
}

/** Inserts rows of `eventColumns` in their order. */
export async function insertEvents(
  session: Session,
  rows: readonly (readonly (number | string | null)[])[],
): Promise<void> {
  await session.run(insertion, ...types.map((_, column) => rows.map((row) => row[column] ?? null)))
}

/** Removes or restores items, and records which of them have changed, if the change has an actor. */
export async function recordItems<T>(
  session: Session,
  action: AuditAction,
  { bucketId, ids, by }: Audited & { readonly bucketId: BucketId; readonly ids: readonly ItemId[] },
  change: () => Promise<T>,
  changed: (result: T) => readonly ItemId[],
): Promise<T> {
  if (by === undefined) return change()
  // Both statements are sent without waiting for results. The names are read before the change.
  const [rows, result] = await Promise.all([
    session.run('SELECT id, filename, size FROM items WHERE id = ANY ($1::text[])', ids),
    change(),
  ])
  const files = new Map(
    rows.map((row) => [text(row, 0) as ItemId, { name: textOrNull(row, 1), size: integer(row, 2) }]),
  )
  await recordEvents(session, itemEvents(action, by, bucketId, changed(result), files))
  return result
}
