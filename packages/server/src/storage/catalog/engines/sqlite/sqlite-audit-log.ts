import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { setImmediate as nextTick } from 'node:timers/promises'
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
      const select = prepareSelection(db, filter)
      const rows: Row[] = []
      let next = after === null ? firstNumberOf(filter.since ?? 0) - 1 : parseNumber(after)
      for (let isEnd = false; !isEnd && rows.length < limit; ) {
        const step = select(next, limit - rows.length)
        rows.push(...step.rows)
        next = step.next
        isEnd = step.isEnd
        await nextTick()
      }
      return {
        events: rows.flatMap((row) => readEvent(row, String(numberOf(row))) ?? []),
        next: String(next),
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

const numberOf = (row: Row): number => integer(row, recordedColumnCount)

/** The events that one step looks at: some milliseconds, in which a service handles no other request. */
const eventsPerStep = 1_000

/** Some events of a selection. */
interface Step {
  readonly rows: readonly Row[]
  /** The number after which the selection continues. */
  readonly next: number
  /** Whether all events were looked at. */
  readonly isEnd: boolean
}

type Condition = readonly [string, ...SQLInputValue[]]

/** Where a selection looks for events, in the order of their numbers. */
interface Source {
  readonly index: string
  /** What the index finds. */
  readonly range: Condition
  /** What events of the range must fulfil; null for nothing. */
  readonly more: Condition | null
}

/** Buckets of one name that are searched by the index: a step looks at this many times its events. Of more, all events are looked at. */
const maxSearches = 10

/** A statement has one index for a table, and finds events of several buckets in the order of their numbers only by a sort of all. */
function sourcesOf({ buckets, target, tokenId, action }: EventFilter): readonly Source[] {
  const byAction = (number: number, more: Condition | null): Source => ({
    index: 'INDEXED BY audit_by_action',
    // The index has only these actions, and is used only if this is evident.
    range: [`action = ${number} AND action > 1`],
    more,
  })
  if (target !== null)
    return [
      { index: 'INDEXED BY audit_by_target', range: ['target = ?', target], more: null },
      byAction(auditActions.link, [linksOfItem, target]),
    ]
  if (tokenId !== null)
    return [{ index: 'INDEXED BY audit_by_token', range: ['token_id = ?', tokenId], more: null }]
  if (action !== null && action !== 'upload') return [byAction(auditActions[action], null)]
  if (buckets !== null && buckets.length <= maxSearches)
    return buckets.map((id) => ({
      index: 'INDEXED BY audit_by_bucket',
      range: ['bucket_id = ?', id],
      more: null,
    }))
  return [{ index: 'NOT INDEXED', range: ['true'], more: null }]
}

/** Returns a function that reads the selected events after a number, up to `limit` of those that one step looks at. */
function prepareSelection(db: DatabaseSync, filter: EventFilter): (after: number, limit: number) => Step {
  const { since, until, buckets, tokenId, action } = filter
  const sources = sourcesOf(filter)
  if (buckets?.length === 0) return (after) => ({ rows: [], next: after, isEnd: true })
  const lastNumber = until === null ? Number.MAX_SAFE_INTEGER : numberBefore(db, until) - 1
  const conditions: Condition[] = []
  if (tokenId !== null) conditions.push(['event.token_id = ?', tokenId])
  if (action !== null) conditions.push(['action = ?', auditActions[action]])
  if (buckets !== null) conditions.push([`bucket_id IN (${buckets.map(() => '?').join(', ')})`, ...buckets])
  if (since !== null) conditions.push(['time >= ?', since])
  if (until !== null) conditions.push(['time < ?', until])

  const numbers = sources.map(
    ({ index, range: [range] }) => `SELECT id FROM (SELECT id FROM audit_events ${index}
      WHERE ${range} AND id > ? AND id <= ? ORDER BY id LIMIT ${eventsPerStep})`,
  )
  const endOfStep = db.prepare(
    `${numbers.join(' UNION ALL ')} ORDER BY id LIMIT 1 OFFSET ${eventsPerStep - 1}`,
  )
  const wheres = sources.map(({ range, more }) => [range, ...(more === null ? [] : [more]), ...conditions])
  const selections = sources.map(
    ({ index }, at) => `SELECT ${recordedColumns}, event.id FROM audit_events AS event ${index}
      WHERE event.id > ? AND event.id <= ? AND ${wheres[at]?.map(([condition]) => condition).join(' AND ')}`,
  )
  const events = db.prepare(`${selections.join(' UNION ALL ')} ORDER BY ${recordedColumnCount + 1} LIMIT ?`)

  return (after, limit) => {
    const ranges = sources.flatMap(({ range: [, ...values] }) => [...values, after, lastNumber])
    const end = one(endOfStep, ...ranges)
    const to = end === null ? lastNumber : integer(end, 0)
    const values = wheres.flatMap((all) => [after, to, ...all.flatMap(([, ...some]) => some)])
    const rows = all(events, ...values, limit)
    const last = rows.at(-1)
    if (last !== undefined && (rows.length === limit || end === null))
      return { rows, next: numberOf(last), isEnd: end === null }
    return { rows, next: end === null ? after : to, isEnd: end === null }
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
