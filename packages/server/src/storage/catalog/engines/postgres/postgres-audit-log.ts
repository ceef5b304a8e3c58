import { setTimeout as sleep } from 'node:timers/promises'
import { type AuditEvent, auditActions, eventColumns, eventValues } from '../../audit/audit-events.ts'
import {
  type AuditLog,
  batchLength,
  bucketNameRows,
  type EventFilter,
  followInterval,
  isOver,
  linksOfItem,
  type RecordedEvent,
  readBucketNames,
  readEvent,
  recordedColumnCount,
  recordedColumns,
} from '../../audit/audit-log.ts'
import { integer, text } from '../../statements.ts'
import { openDatabase } from './postgres-database.ts'
import { asFault, type Run, type Session } from './session.ts'

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

/** Conditions of a selection with their values, whose placeholders are `?`. */
type Condition = readonly [string, ...unknown[]]

/**
 * A reader that follows the log starts at most this long before its start: a database that was copied from another server has numbers of
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
      throw asFault(error)
    }
  }
  const snapshot = async () => text((await run('SELECT pg_current_snapshot()::text'))[0] ?? [], 0)

  async function* read(conditions: readonly Condition[]): AsyncGenerator<readonly RecordedEvent[]> {
    let [time, number] = [Number.MIN_SAFE_INTEGER, 0]
    for (;;) {
      const all: Condition[] = [['(time, number) > (?, ?)', time, number], ...conditions]
      let count = 0
      const where = all.map(([condition]) => condition.replaceAll('?', () => `$${++count}`)).join(' AND ')
      const rows = await run(
        `SELECT ${recordedColumns}, number FROM audit_events AS event
        WHERE ${where} ORDER BY time, number LIMIT ${batchLength}`,
        ...all.flatMap(([, ...values]) => values),
      )
      const events = rows.flatMap((row) => readEvent(row, String(integer(row, recordedColumnCount))) ?? [])
      if (events.length > 0) yield events
      const last = rows.at(-1)
      if (last === undefined || rows.length < batchLength) return
      time = integer(last, 0)
      number = integer(last, recordedColumnCount)
    }
  }

  return {
    events: (filter) => read(conditionsOf(filter)),

    async *follow(filter, signal) {
      const conditions = conditionsOf(filter)
      const recent: Condition = ['time >= ?', Date.now() - longestTransaction]
      let seen = await snapshot()
      yield* read([...conditions, ['pg_visible_in_snapshot(tx::text::xid8, ?::pg_snapshot)', seen]])
      while (!signal.aborted && !isOver(filter)) {
        const now = await snapshot()
        if (now !== seen)
          yield* read([
            ...conditions,
            recent,
            ['tx >= pg_snapshot_xmin(?::pg_snapshot)::text::int8', seen],
            ['NOT pg_visible_in_snapshot(tx::text::xid8, ?::pg_snapshot)', seen],
            ['pg_visible_in_snapshot(tx::text::xid8, ?::pg_snapshot)', now],
          ])
        seen = now
        await sleep(followInterval, undefined, { signal }).catch(() => undefined)
      }
    },

    bucketNames: async () => readBucketNames(await run(bucketNameRows)),
    close: connections.close,
  }
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
