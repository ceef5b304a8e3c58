import { nameKey, nameLine } from '../../../core/names.ts'
import type { ItemDetails } from '../records.ts'
import { formatLabels } from '../statements.ts'
import {
  type CatalogRows,
  type CatalogSource,
  type CatalogTarget,
  createRows,
  createSource,
  createTarget,
  type TransferEngine,
  type TransferredItem,
  transferKey,
} from '../transfer.ts'
import { readMeta } from '../upkeep.ts'
import { insertEvents } from './audit-log.ts'
import { type Connections, runTransaction } from './connections.ts'
import { openDatabase, openDatabaseForTransfer } from './database.ts'
import { asFault, bytesArray, type Run, runQuery, runWork, type Session } from './session.ts'

/** Reads that are not limited in time. */
const counts = { readers: 1, writers: 1, readTimeout: 0 }

/** Throws DatabaseError and CatalogVersionError. */
export async function openPostgresSource(url: string): Promise<CatalogSource> {
  return createSource(engineOf(await openDatabaseForTransfer(url, counts)))
}

/** Calls `work` with the rows as of one moment, while servers write. It may call `work` again if the connection is lost. */
export async function readPostgresSnapshot<T>(
  url: string,
  work: (source: CatalogRows) => Promise<T>,
): Promise<T> {
  const connections = await openDatabase(url, counts)
  try {
    return await connections.read(async (session) => {
      await session.execute('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      const result = await work(createRows((query) => runQuery(session.run, query)))
      // An error is ignored: nothing was written, and the work must not be repeated after its end.
      await session.execute('COMMIT').catch(() => undefined)
      return result
    })
  } catch (error) {
    throw asFault(error)
  } finally {
    await connections.close()
  }
}

/** Marks the catalog, unless it has data or a mark. */
const mark = `INSERT INTO meta (key, value) SELECT '${transferKey}', '' WHERE NOT EXISTS (SELECT FROM buckets)
  ON CONFLICT DO NOTHING`

/** Throws DatabaseError and CatalogVersionError. */
export async function openPostgresTarget(url: string): Promise<CatalogTarget> {
  const connections = await openDatabaseForTransfer(url, { readers: 1, writers: 1 }, mark)
  const engine = engineOf(connections)

  const change = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    runTransaction(connections, work, 0)

  await change((session) => session.execute(mark)).catch(async (error: unknown) => {
    await connections.close()
    throw error
  })

  return createTarget(engine, {
    isUnfinished: async () => (await engine.query(readMeta(transferKey))) !== null,
    addItems: (items) => change((session) => insertItems(session, items)),
    addEvents: (events) => change((session) => insertEvents(session, events)),
  })
}

async function insertItems(session: Session, items: readonly TransferredItem[]): Promise<void> {
  const column = <T>(value: (item: ItemDetails) => T): T[] => items.map(({ item }) => value(item))
  await session.run(
    `WITH item AS MATERIALIZED (
      SELECT *, CASE WHEN content IS NOT NULL THEN new_content_id() END AS content_id
      FROM unnest($1::int8[], $2::int8[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int8[], $8::bytea[],
        $9::int4[], $10::int4[], $11::int8[], $12::bytea[], $13::bytea[], $14::int8[], $15::int8[], $16::text[], $17::text[],
        $18::int8[], $19::int4[], $20::text[],
        $21::int4[])
        AS item (bucket_id, seq, id, extension, filename, type, size, hash, width, height, created_at, content, thumbhash,
          duration, expiry, labels, path, taken, taken_offset, name_key, taken_read)
    ), stored AS (
      INSERT INTO contents (id, bucket_id, bytes) SELECT content_id, bucket_id, content FROM item WHERE content IS NOT NULL
    )
    INSERT INTO items
      (bucket_id, seq, id, extension, filename, content_type, size, sha256, width, height, created_at, content_id, thumbhash,
        duration, item_expires_at, labels, path, taken_at, taken_offset, name_key, taken_read)
    SELECT bucket_id, seq, id, extension, filename, type, size, hash, width, height, created_at, content_id, thumbhash,
      duration, expiry, labels, path, taken, taken_offset, name_key, taken_read
    FROM item`,
    items.map(({ bucketId }) => bucketId),
    items.map(({ seq }) => seq),
    column(({ id }) => id),
    column(({ extension }) => extension),
    column(({ filename }) => filename),
    column(({ contentType }) => contentType),
    column(({ size }) => size),
    bytesArray(column(({ sha256 }) => sha256)),
    column(({ width }) => width),
    column(({ height }) => height),
    column(({ createdAt }) => createdAt),
    bytesArray(items.map(({ bytes }) => bytes)),
    bytesArray(column(({ thumbhash }) => thumbhash)),
    column(({ duration }) => duration),
    column(({ expiresAt }) => expiresAt),
    column(({ labels }) => formatLabels(labels)),
    column(({ path }) => path ?? null),
    column(({ takenAt }) => takenAt ?? null),
    column(({ takenOffset }) => takenOffset ?? null),
    column(({ filename }) => nameKey(nameLine(filename))),
    column(({ takenRead }) => (takenRead === true ? 1 : null)),
  )
  const trashed = items.flatMap(({ item, trashed }) =>
    trashed === null ? [] : [{ id: item.id, ...trashed }],
  )
  await session.run(
    `UPDATE items SET home_seq = trashed.home_seq, deleted_at = trashed.deleted_at, expires_at = trashed.expires_at
    FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[]) AS trashed (id, home_seq, deleted_at, expires_at)
    WHERE items.id = trashed.id`,
    trashed.map(({ id }) => id),
    trashed.map(({ homeSeq }) => homeSeq),
    trashed.map(({ deletedAt }) => deletedAt),
    trashed.map(({ expiresAt }) => expiresAt),
  )
  const described = items
    .map(({ item }) => item)
    .filter((item) => item.altText !== null || item.caption !== null)
  await session.run(
    `UPDATE items SET alt_text = described.alt_text, caption = described.caption
    FROM unnest($1::text[], $2::text[], $3::text[]) AS described (id, alt_text, caption) WHERE items.id = described.id`,
    described.map(({ id }) => id),
    described.map(({ altText }) => altText),
    described.map(({ caption }) => caption),
  )
  await session.run(
    'INSERT INTO damaged (id) SELECT unnest($1::text[])',
    items.flatMap(({ item, isDamaged }) => (isDamaged ? [item.id] : [])),
  )
}

function engineOf(connections: Connections): TransferEngine {
  const run: Run = async (statement, ...values) => {
    try {
      return await connections.read((session) => session.run(statement, ...values))
    } catch (error) {
      throw asFault(error)
    }
  }
  return {
    name: 'postgres',
    query: (query) => runQuery(run, query),
    change: (work) => runTransaction(connections, (session) => runWork(session, work()), 0),
    close: connections.close,
  }
}
