import { storeRequest } from '../keyed-requests.ts'
import { replaceKeys } from '../keys.ts'
import type { BucketId, Item } from '../records.ts'
import { integer } from '../rows.ts'
import {
  type CatalogTarget,
  TransferError,
  type TransferredBucket,
  type TransferredItem,
  type TransferredToken,
  transferredBucketColumns,
  transferredBucketValues,
  transferredSettings,
} from '../transfer.ts'
import { isTrash } from '../trash.ts'
import { insertEvents } from './audit-log.ts'
import { refreshExpiry } from './item-expiry.ts'
import { openDatabaseForTransfer } from './open-database.ts'
import { bucketIds, correctBucket } from './recount.ts'
import type { Session } from './session.ts'
import { runWork } from './statements.ts'
import { runTransaction } from './transaction.ts'
import { markTransfer, readMeta, transferKey } from './transfer-marks.ts'
import { bytesArray } from './values.ts'

/** Throws DatabaseError and CatalogVersionError. */
export async function openPostgresTarget(url: string): Promise<CatalogTarget> {
  const connections = await openDatabaseForTransfer(url, { readers: 1, writers: 1 }, markTransfer)

  const change = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    runTransaction(connections, work, 0)

  await change((session) => session.execute(markTransfer)).catch(async (error: unknown) => {
    await connections.close()
    throw error
  })

  return {
    isUnfinished: () => connections.read(async (session) => (await readMeta(session, transferKey)) !== null),

    begin: (state, buckets) =>
      change(async (session) => {
        const earlier = await readMeta(session, transferKey)
        const [row = []] = await session.run('SELECT (EXISTS (SELECT FROM buckets))::int4')
        if (earlier === null && integer(row, 0) === 1)
          throw new TransferError(
            'The target has data. Choose an empty one, or start the service on it if this migration was completed before.',
          )
        if (earlier !== null && earlier !== state) await session.execute(removal)
        await session.run(
          `INSERT INTO meta (key, value) VALUES ('${transferKey}', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
          state,
        )
        await insertBuckets(session, buckets)
        const [last] = await session.run(
          'SELECT bucket_id, seq FROM media ORDER BY bucket_id DESC, seq DESC LIMIT 1',
        )
        return last ? { bucketId: integer(last, 0) as BucketId, seq: integer(last, 1) } : null
      }),

    async addTokens(tokens) {
      await change((session) => insertTokens(session, tokens))
    },

    async setKeys(keys) {
      await change((session) => runWork(session, replaceKeys(keys)))
    },

    async addItems(items) {
      await change((session) => insertItems(session, items))
    },

    async addRequests(requests) {
      await change(async (session) => {
        for (const { request, items } of requests) await runWork(session, storeRequest(request, items))
      })
    },

    async clearEvents() {
      await change((session) => session.execute('TRUNCATE audit_events'))
    },

    async addEvents(events) {
      await change((session) => insertEvents(session, events))
    },

    async finish() {
      for (const id of await connections.read(bucketIds))
        await change(async (session) => {
          await correctBucket(session, id)
          if (!isTrash(id)) await refreshExpiry(session, id)
        })
      await change(async (session) => {
        // The ids of the buckets were given, so the sequence of new ids has not moved. The audit log has ids of deleted buckets.
        await session.run(
          `SELECT setval(pg_get_serial_sequence('buckets', 'id'), greatest(1, (SELECT max(id) FROM buckets),
            (SELECT max(bucket_id) FROM audit_events)))`,
        )
        await session.run('DELETE FROM meta WHERE key = $1', transferKey)
      })
    },

    close: connections.close,
  }
}

async function insertBuckets(session: Session, buckets: readonly TransferredBucket[]): Promise<void> {
  const parameters = transferredBucketColumns.map((_, index) => `$${index + 1}`)
  for (const bucket of buckets)
    await session.run(
      `INSERT INTO buckets (${transferredBucketColumns.join(', ')}) OVERRIDING SYSTEM VALUE
      VALUES (${parameters.join(', ')}) ON CONFLICT (id) DO UPDATE SET ${transferredSettings}`,
      ...transferredBucketValues(bucket),
    )
}

/** Their numbers are generated in this order. */
async function insertTokens(session: Session, tokens: readonly TransferredToken[]): Promise<void> {
  for (const { id, bucketId, name, hash, scopes, createdAt, expiresAt, lastUsedAt, revokedAt } of tokens)
    await session.run(
      `INSERT INTO tokens (id, bucket_id, name, hash, scopes, created_at, expires_at, last_used_at, revoked_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
      ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, last_used_at = excluded.last_used_at,
        revoked_at = excluded.revoked_at`,
      ...[id, bucketId, name, hash, scopes.join(' '), createdAt, expiresAt, lastUsedAt, revokedAt],
    )
}

async function insertItems(session: Session, items: readonly TransferredItem[]): Promise<void> {
  const column = <T>(value: (item: Item) => T): T[] => items.map(({ item }) => value(item))
  await session.run(
    `WITH item AS MATERIALIZED (
      SELECT *, CASE WHEN content IS NOT NULL THEN new_content_id() END AS content_id
      FROM unnest($1::int8[], $2::int8[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int8[], $8::bytea[],
        $9::int4[], $10::int4[], $11::int8[], $12::bytea[], $13::bytea[], $14::int8[], $15::int8[])
        AS item (bucket_id, seq, id, extension, filename, type, size, hash, width, height, created_at, content, thumbhash,
          duration, expiry)
    ), stored AS (
      INSERT INTO contents (id, bucket_id, bytes) SELECT content_id, bucket_id, content FROM item WHERE content IS NOT NULL
    )
    INSERT INTO media
      (bucket_id, seq, id, extension, filename, content_type, size, sha256, width, height, created_at, content_id, thumbhash,
        duration, item_expires_at)
    SELECT bucket_id, seq, id, extension, filename, type, size, hash, width, height, created_at, content_id, thumbhash,
      duration, expiry
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
  )
  const trashed = items.flatMap(({ item, trashed }) =>
    trashed === null ? [] : [{ id: item.id, ...trashed }],
  )
  await session.run(
    `UPDATE media SET home_seq = trashed.home_seq, deleted_at = trashed.deleted_at, expires_at = trashed.expires_at
    FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[]) AS trashed (id, home_seq, deleted_at, expires_at)
    WHERE media.id = trashed.id`,
    trashed.map(({ id }) => id),
    trashed.map(({ homeSeq }) => homeSeq),
    trashed.map(({ deletedAt }) => deletedAt),
    trashed.map(({ expiresAt }) => expiresAt),
  )
  const described = items
    .map(({ item }) => item)
    .filter((item) => item.altText !== null || item.caption !== null)
  await session.run(
    `UPDATE media SET alt_text = described.alt_text, caption = described.caption
    FROM unnest($1::text[], $2::text[], $3::text[]) AS described (id, alt_text, caption) WHERE media.id = described.id`,
    described.map(({ id }) => id),
    described.map(({ altText }) => altText),
    described.map(({ caption }) => caption),
  )
  await session.run(
    'INSERT INTO damaged (id) SELECT unnest($1::text[])',
    items.flatMap(({ item, isDamaged }) => (isDamaged ? [item.id] : [])),
  )
}

const removal = `TRUNCATE keyed_requests, damaged, contents, media, ranks, tokens, uploads, upload_parts, upload_pieces,
  name_segments, name_chunks, name_marks, name_claims, buckets`
