import { createHash } from 'node:crypto'
import { eventColumnCount, eventColumns } from '../audit-log/events.ts'
import { itemColumns } from '../item-columns.ts'
import { keyedItemColumnCount, keyedItemColumns, keyedItems, readKeyedItem } from '../keyed-requests.ts'
import { listKeys } from '../keys.ts'
import type { TokenId } from '../records.ts'
import { bytes, integer, type Row, text } from '../rows.ts'
import {
  type CatalogRows,
  type CatalogSource,
  eventsPerBatch,
  readTransferredBucket,
  readTransferredEvent,
  readTransferredItem,
  readTransferredToken,
  transferredBucketColumns,
} from '../transfer.ts'
import { openDatabase, openDatabaseForTransfer } from './open-database.ts'
import { asFault } from './postgres-errors.ts'
import { type Run, runQuery } from './statements.ts'
import { runTransaction } from './transaction.ts'
import { movedKey, readMeta } from './transfer-marks.ts'

/** Idempotency keys in a batch. */
const requestsPerBatch = 500

/** Reads that are not limited in time. */
const counts = { readers: 1, writers: 1, readTimeout: 0 }

/** Throws DatabaseError and CatalogVersionError. */
export async function openPostgresSource(url: string): Promise<CatalogSource> {
  const connections = await openDatabaseForTransfer(url, counts)
  const run: Run = async (statement, ...values) => {
    try {
      return await connections.read((session) => session.run(statement, ...values))
    } catch (error) {
      throw asFault(error)
    }
  }
  const meta = (key: string) => connections.read((session) => readMeta(session, key))
  return {
    ...createSource(run),
    movedTo: () => meta(movedKey),
    async setMovedTo(settings) {
      await runTransaction(connections, async (session) => {
        await session.run('DELETE FROM meta WHERE key = $1', movedKey)
        if (settings !== null)
          await session.run('INSERT INTO meta (key, value) VALUES ($1, $2)', movedKey, settings)
      })
    },
    blobsIdentity: () => meta('blobs'),
    close: connections.close,
  }
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
      const result = await work(createSource(session.run))
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

function createSource(run: Run): CatalogRows {
  const buckets = async () =>
    (await run(`SELECT ${transferredBucketColumns.join(', ')} FROM buckets ORDER BY id`)).map(
      readTransferredBucket,
    )

  /** The keys after this one, without their items. */
  const keysAfter = (tokenId: string, key: string) =>
    run(
      `SELECT token_id, key, fingerprint, expires_at FROM keyed_requests
      WHERE (token_id, key) > ($1, $2) ORDER BY token_id, key LIMIT ${requestsPerBatch}`,
      tokenId,
      key,
    )

  async function itemsOf(keys: readonly Row[]): Promise<Map<string, Row[]>> {
    const rows = await run(
      `SELECT ${keyedItemColumns('postgres')}, token_id, keyed_requests.key
      FROM unnest($1::text[], $2::text[]) AS wanted (token_id, key)
      JOIN keyed_requests USING (token_id, key), ${keyedItems.postgres.rows} ORDER BY ${keyedItems.postgres.order}`,
      keys.map((row) => text(row, 0)),
      keys.map((row) => text(row, 1)),
    )
    return Map.groupBy(
      rows,
      (row) => `${text(row, keyedItemColumnCount)} ${text(row, keyedItemColumnCount + 1)}`,
    )
  }

  return {
    async state() {
      const [row = []] = await run("SELECT value FROM meta WHERE key = 'epoch'")
      const revisions = (await buckets()).map(({ id, revision }) => [id, revision])
      return createHash('sha256')
        .update(JSON.stringify([text(row, 0), revisions]))
        .digest('hex')
    },

    buckets,

    tokens: async () =>
      (
        await run(`SELECT id, '', name, scopes, created_at, expires_at, last_used_at, revoked_at, bucket_id, hash
          FROM tokens ORDER BY number`)
      ).map(readTransferredToken),

    keys: () => runQuery(run, listKeys()),

    items: async (after, limit) =>
      (
        await run(
          `SELECT media.${itemColumns}, media.bucket_id, seq, (damaged.id IS NOT NULL)::int4, contents.bytes,
      home_seq, deleted_at, media.expires_at
          FROM media LEFT JOIN contents ON contents.id = content_id LEFT JOIN damaged ON damaged.id = media.id
          WHERE (media.bucket_id, seq) > ($1, $2) ORDER BY media.bucket_id, seq LIMIT $3`,
          after?.bucketId ?? Number.MIN_SAFE_INTEGER,
          after?.seq ?? -1,
          limit,
        )
      ).map(readTransferredItem),

    async *requests() {
      let keys = await keysAfter('', '')
      while (keys.length > 0) {
        const items = await itemsOf(keys)
        yield keys.map((row) => {
          const [tokenId, key] = [text(row, 0) as TokenId, text(row, 1)]
          return {
            request: { tokenId, key, fingerprint: bytes(row, 2), expiresAt: integer(row, 3) },
            items: (items.get(`${tokenId} ${key}`) ?? []).map(readKeyedItem),
          }
        })
        const last = keys.at(-1) ?? []
        keys = await keysAfter(text(last, 0), text(last, 1))
      }
    },

    async *events() {
      let last: Row = [Number.MIN_SAFE_INTEGER, 0]
      for (;;) {
        const rows = await run(
          `SELECT ${eventColumns}, number FROM audit_events WHERE (time, number) > ($1, $2)
          ORDER BY time, number LIMIT ${eventsPerBatch}`,
          ...last,
        )
        if (rows.length === 0) return
        yield rows.map(readTransferredEvent)
        const end = rows.at(-1) ?? []
        last = [integer(end, 0), integer(end, eventColumnCount)]
      }
    },

    async countItems(upTo) {
      const [row = []] =
        upTo === undefined
          ? await run('SELECT count(*) FROM media')
          : await run(
              'SELECT count(*) FROM media WHERE (bucket_id, seq) <= ($1, $2)',
              upTo.bucketId,
              upTo.seq,
            )
      return integer(row, 0)
    },
  }
}
