import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { numbersPerMillisecond } from '../audit-log/audit-log.ts'
import { type AuditEvent, eventColumns, eventValues } from '../audit-log/events.ts'
import { integer } from '../rows.ts'
import { one } from './rows.ts'

/** Stores events of the audit log; to be called within the transaction of the change that they describe. */
export type RecordEvents = (events: readonly AuditEvent[]) => void

export function prepareRecordEvents(db: DatabaseSync): RecordEvents {
  const insert = prepareInsertEvents(db)
  return (events) => {
    const now = Date.now()
    insert(
      events.map((event) => eventValues(event, now)),
      () => now,
    )
  }
}

/** Inserts rows of `eventColumns` in their order. `recordedAt` is when a row was recorded, at the latest. */
export function prepareInsertEvents(db: DatabaseSync) {
  const last = db.prepare('SELECT coalesce(max(id), 0) FROM audit_events')
  const insert = db.prepare(`INSERT INTO audit_events (id, ${eventColumns})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
  return <T extends readonly SQLInputValue[]>(rows: readonly T[], recordedAt: (row: T) => number): void => {
    if (rows.length === 0) return
    let number = integer(one(last) ?? [], 0)
    for (const row of rows) {
      number = Math.max(number + 1, recordedAt(row) * numbersPerMillisecond)
      insert.run(number, ...row)
    }
  }
}
