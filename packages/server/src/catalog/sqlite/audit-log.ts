import type { DatabaseSync } from 'node:sqlite'
import { type AuditEvent, eventColumns, eventValues } from '../audit-log/events.ts'
import { integer } from '../rows.ts'
import { one } from './rows.ts'

/** Numbers for each millisecond: the first number of a time is its milliseconds times this. */
export const numbersPerMillisecond = 2_048

/** Stores events of the audit log; to be called within the transaction of the change that they describe. */
export type RecordEvents = (events: readonly AuditEvent[]) => void

/** Removes up to `limit` events from before this time, earliest first. The last event stays, so that its number is not used again. */
export function prepareRemoveEvents(db: DatabaseSync): (before: number, limit: number) => number {
  const remove = db.prepare(`DELETE FROM audit_events WHERE id IN (SELECT id FROM audit_events
    WHERE id < ? AND id < (SELECT max(id) FROM audit_events) ORDER BY id LIMIT ?)`)
  return (before, limit) => Number(remove.run(before * numbersPerMillisecond, limit).changes)
}

export function prepareRecordEvents(db: DatabaseSync): RecordEvents {
  const last = db.prepare('SELECT coalesce(max(id), 0) FROM audit_events')
  const insert = db.prepare(`INSERT INTO audit_events (id, ${eventColumns})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  return (events) => {
    if (events.length === 0) return
    const time = Date.now()
    let number = Math.max(integer(one(last) ?? [], 0) + 1, time * numbersPerMillisecond)
    for (const event of events) insert.run(number++, ...eventValues(event, time))
  }
}
