import { type AuditEvent, auditActions, eventColumns, eventValues } from '../../audit/audit-events.ts'
import {
  type AuditLog,
  bucketNameRows,
  type EventFilter,
  eventCursorMalformed,
  linksOfItem,
  readBucketNames,
  readEvent,
  recordedColumnCount,
  recordedColumns,
} from '../../audit/audit-log.ts'
import { integer, type Row, text } from '../../statements.ts'
import { openDatabase } from './postgres-database.ts'
import { asFault, type Run, type Session, sqlState } from './session.ts'

const types = 'int8 int4 int8 text text int8 text int4 text text text text'.split(' ')

const insertion = `INSERT INTO audit_events (${eventColumns})
  SELECT * FROM unnest(${types.map((type, index) => `$${index + 1}::${type}[]`).join(', ')})`

/** Stores events of the audit log, in the transaction of the write that they describe. Sends the statement before it returns. */
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

/** Conditions of a selection with their values, whose placeholders are `?`. */
type Condition = readonly [string, ...unknown[]]

/**
 * A reader that goes on looks at most this long before the snapshot that it has seen: a database that was copied from another server has numbers of
 * transactions that this server will use again. Milliseconds.
 */
const longestTransaction = 3_600_000

/** Throws DatabaseError and CatalogVersionError. */
export async function openPostgresAuditLog(url: string): Promise<AuditLog> {
  const connections = await openDatabase(url, { readers: 1, writers: 1, readTimeout: 0 })
  const run: Run = async (statement, ...values) => {
    try {
      return await connections.read((session) => session.run(statement, ...values))
    } catch (error) {
      // A data exception (class 22): only the snapshots of a changed cursor can be such values.
      throw sqlState(error)?.startsWith('22') ? eventCursorMalformed() : asFault(error)
    }
  }
  return {
    async read(filter, after, limit) {
      const from = after === null ? beginning : parsePosition(after)
      const at = from.at ?? Date.now()
      const until = from.until ?? text((await run('SELECT pg_current_snapshot()::text'))[0] ?? [], 0)
      const all = [...conditionsOf(filter), ...windowOf({ ...from, until, at })]
      let count = 0
      const where = all.map(([condition]) => condition.replaceAll('?', () => `$${++count}`)).join(' AND ')
      const rows = await run(
        `SELECT ${recordedColumns}, number FROM audit_events AS event
        WHERE ${where} ORDER BY time, number LIMIT ${limit}`,
        ...all.flatMap(([, ...values]) => values),
      )
      const numberOf = (row: Row) => integer(row, recordedColumnCount)
      const end = rows.length === limit ? rows.at(-1) : undefined
      const next: Position =
        end === undefined
          ? { seen: until, seenAt: at, at: null, until: null, last: null }
          : { ...from, at, until, last: [integer(end, 0), numberOf(end)] }
      return {
        events: rows.flatMap((row) => readEvent(row, String(numberOf(row))) ?? []),
        next: formatPosition(next),
        hasMore: end !== undefined,
      }
    },

    bucketNames: async () => readBucketNames(await run(bucketNameRows)),
    close: () => connections.close(),
  }
}

/**
 * Events with the number of a later transaction that are older than this were copied from another server. Others have been recorded since. Clocks of
 * servers differ by less. Milliseconds.
 */
const longestSkew = 5_000

/** A snapshot, and when it was taken. */
interface Begun {
  readonly until: string
  readonly at: number
}

/** Where a reader is: in the events that are visible in the snapshot `until` and not in `seen`, after the event `last`. */
interface Position {
  /** Null for a reader that has not come to the end yet, as `seenAt`. */
  readonly seen: string | null
  /** When that snapshot was taken. Milliseconds since 1970, as `at`. */
  readonly seenAt: number | null
  /** Null at the end: the next read takes a snapshot. */
  readonly until: string | null
  readonly at: number | null
  /** Its time and its number. Null for the first of these events. */
  readonly last: readonly [number, number] | null
}

function windowOf({ seen, seenAt, until, at, last }: Omit<Position, 'until' | 'at'> & Begun): Condition[] {
  const conditions: Condition[] = [
    [
      `(pg_visible_in_snapshot(tx::text::xid8, ?::pg_snapshot)
        OR tx >= pg_snapshot_xmax(?::pg_snapshot)::text::int8 AND time < ? AND ?)`,
      ...[until, until, at - longestSkew, seen === null],
    ],
  ]
  if (seen !== null)
    conditions.push(
      ['time >= ?', (seenAt ?? 0) - longestTransaction],
      ['tx >= pg_snapshot_xmin(?::pg_snapshot)::text::int8', seen],
      ['NOT pg_visible_in_snapshot(tx::text::xid8, ?::pg_snapshot)', seen],
    )
  if (last !== null) conditions.push(['(time, number) > (?, ?)', ...last])
  return conditions
}

const beginning: Position = { seen: null, seenAt: null, until: null, at: null, last: null }

const formatPosition = ({ seen, seenAt, until, at, last }: Position): string =>
  [seen, seenAt, until, at, ...(last ?? [null, null])].map((part) => part ?? '').join('/')

const positionShape =
  /^(?<seen>\d+:\d+:[\d,]*)?\/(?<seenAt>\d{1,15})?\/(?<until>\d+:\d+:[\d,]*)?\/(?<at>\d{1,15})?\/(?:(?<time>\d{1,15})\/(?<number>\d{1,15})|\/)$/

function parsePosition(cursor: string): Position {
  const parts = positionShape.exec(cursor)?.groups
  if (parts === undefined) throw eventCursorMalformed()
  const { seen = null, seenAt, until = null, at, time, number } = parts
  const numberOrNull = (part: string | undefined) => (part === undefined ? null : Number(part))
  const last = time === undefined ? null : ([Number(time), Number(number)] as const)
  return { seen, seenAt: numberOrNull(seenAt), until, at: numberOrNull(at), last }
}

function conditionsOf({ since, until, buckets, target, tokenId, action }: EventFilter): Condition[] {
  const conditions: Condition[] = []
  if (target !== null) conditions.push([`(target = ? OR (${linksOfItem}))`, target, target])
  if (tokenId !== null) conditions.push(['event.token_id = ?', tokenId])
  // The index has only these actions, and is used only if this is evident.
  if (action !== null)
    conditions.push([`action = ?${action === 'upload' ? '' : ' AND action > 1'}`, auditActions[action]])
  if (buckets !== null) conditions.push(['bucket_id = ANY (?::int8[])', buckets])
  if (since !== null) conditions.push(['time >= ?', since])
  if (until !== null) conditions.push(['time < ?', until])
  return conditions
}
