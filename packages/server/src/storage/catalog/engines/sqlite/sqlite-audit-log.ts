import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { type AuditEvent, auditActions, eventColumns, eventValues } from '../../audit/audit-events.ts'
import {
  type AuditLog,
  bucketNameRows,
  type EventFilter,
  eventCursorMalformed,
  linksOfItem,
  numbersPerMillisecond,
  readBucketNames,
  readEvent,
  recordedColumnCount,
  recordedColumns,
} from '../../audit/audit-log.ts'
import { integer, type Row } from '../../statements.ts'
import { readMeta } from '../../upkeep.ts'
import { openDataDirectory } from './data-directory.ts'
import { all, createRun, one, readTimeout } from './sqlite-database.ts'

/**
 * After the clock was set back, numbers follow the earlier time until the clock has reached it again. `meta` has the last number that is ahead of
 * its time by more than this. Milliseconds.
 */
const longestStep = 7 * 86_400_000
const aheadKey = 'audit_ahead'

/** Numbers follow times up to here, for a clock that is more than 80 years ahead: greater numbers are not exact in JavaScript. */
const lastOfTimes = Number.MAX_SAFE_INTEGER - 2 ** 40

/** The first number of the events of a time. */
const firstNumberOf = (time: number): number => Math.min(time * numbersPerMillisecond, lastOfTimes)

/** The number below which the events before a time are. */
function numberBefore(db: DatabaseSync, time: number): number {
  const ahead = Number(createRun(db)(readMeta(aheadKey)) ?? 0)
  return Math.max((time + longestStep) * numbersPerMillisecond, ahead + 1)
}

/** Throws DataDirectoryError and CatalogVersionError. */
export async function openSqliteAuditLog(directory: string): Promise<AuditLog> {
  const db = openDataDirectory(directory, readTimeout)
  const names = db.prepare(bucketNameRows)

  return {
    async read(filter, after, limit) {
      const last = after === null ? firstNumberOf(filter.since ?? 0) - 1 : parseNumber(after)
      const { statement, values } = prepareSelection(db, filter, limit)
      const rows = all(statement, last, ...values)
      const numberOf = (row: Row) => integer(row, recordedColumnCount)
      const end = rows.at(-1)
      return {
        events: rows.flatMap((row) => readEvent(row, String(numberOf(row))) ?? []),
        next: String(end === undefined ? last : numberOf(end)),
        hasMore: rows.length === limit,
      }
    },
    bucketNames: async () => readBucketNames(all(names)),
    async close() {
      if (db.isOpen) db.close()
    },
  }
}

/** The number of an event, after which a selection continues. */
function parseNumber(text: string): number {
  const number = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(number)) return number
  throw eventCursorMalformed()
}

/** A statement whose first parameter is the number after which it continues. */
function prepareSelection(
  db: DatabaseSync,
  { since, until, buckets, target, tokenId, action }: EventFilter,
  limit: number,
): { readonly statement: StatementSync; readonly values: SQLInputValue[] } {
  const conditions: [string, ...SQLInputValue[]][] = []
  if (tokenId !== null) conditions.push(['event.token_id = ?', tokenId])
  // The index has only these actions, and is used only if this is evident.
  if (action !== null)
    conditions.push([`action = ?${action === 'upload' ? '' : ' AND action > 1'}`, auditActions[action]])
  if (buckets?.length === 0) conditions.push(['false'])
  else if (buckets !== null)
    conditions.push([`bucket_id IN (${buckets.map(() => '?').join(', ')})`, ...buckets])
  if (since !== null) conditions.push(['time >= ?', since])
  if (until !== null) conditions.push(['time < ? AND event.id < ?', until, numberBefore(db, until)])
  const index =
    tokenId !== null
      ? 'INDEXED BY audit_by_token'
      : action !== null && action !== 'upload'
        ? 'INDEXED BY audit_by_action'
        : buckets?.length
          ? 'INDEXED BY audit_by_bucket'
          : 'NOT INDEXED'
  // ?1 is the number after which the selection continues, ?2 the target if there is one. Both searches use the same values.
  let count = target === null ? 1 : 2
  const numbered = conditions.map(([condition]) => condition.replaceAll('?', () => `?${++count}`))
  const where = ['event.id > ?1', ...numbered].join(' AND ')
  const select = (from: string, more = '') =>
    `SELECT ${recordedColumns}, event.id FROM audit_events AS event ${from} WHERE ${more}${where}`
  // Two searches, because a statement uses one index for a table.
  const selection =
    target === null
      ? select(index)
      : `${select('INDEXED BY audit_by_target', 'target = ?2 AND ')}
        UNION ALL ${select('INDEXED BY audit_by_action', `${linksOfItem.replace('?', '?2')} AND `)}`
  return {
    statement: db.prepare(`${selection} ORDER BY ${recordedColumnCount + 1} LIMIT ${limit}`),
    values: [...(target === null ? [] : [target]), ...conditions.flatMap(([, ...values]) => values)],
  }
}

/** Stores events of the audit log; to be called within the transaction of the write that they describe. */
type RecordEvents = (events: readonly AuditEvent[]) => void

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
  const storeAhead = db.prepare('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)')
  return <T extends readonly SQLInputValue[]>(rows: readonly T[], recordedAt: (row: T) => number): void => {
    if (rows.length === 0) return
    let number = integer(one(last) ?? [], 0)
    let isAhead = false
    for (const row of rows) {
      const time = recordedAt(row)
      number = Math.max(number + 1, firstNumberOf(time))
      isAhead ||= number > (time + longestStep) * numbersPerMillisecond
      insert.run(number, ...row)
    }
    if (isAhead) storeAhead.run(aheadKey, `${number}`)
  }
}
