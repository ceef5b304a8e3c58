import { bucketDeleted } from '../../core/fault.ts'
import { maxExpired } from '../../core/item-expiry.ts'
import type { ItemId } from '../../core/media-id.ts'
import { pageSize } from '../../core/page.ts'
import { bucketColumns, liveBucketOf } from '../buckets.ts'
import {
  expiredColumn,
  expiredOfBucket,
  isLive,
  isPrivateColumn,
  itemColumns,
  readItem,
  unlessExpired,
} from '../item-columns.ts'
import { listKeys, type SigningKey } from '../keys.ts'
import type { Bucket, BucketId, ContentId, Grant, Item, PageRows, Servability } from '../records.ts'
import { bytes, integer, type Row, text, textOrNull } from '../rows.ts'
import { grantedColumns, readGrant } from '../tokens.ts'
import { type BatchedReads, createBatchedReads } from './batched-reads.ts'
import { type Run, runQuery } from './statements.ts'
import { bytesArray } from './values.ts'

/** The reads that requests wait for. Those that are requested at the same time share a round trip. */
interface HotReads {
  readonly grants: BatchedReads<Uint8Array, Grant | null>
  readonly pages: BatchedReads<{ bucketId: BucketId; page: number }, PageRows | 'no bucket'>
  readonly items: BatchedReads<ItemId, Item | null>
  readonly buckets: BatchedReads<BucketId, Bucket | null>
  /** All keys. */
  readonly keys: BatchedReads<'all', readonly SigningKey[]>
  readonly contents: BatchedReads<ContentId, Uint8Array<ArrayBuffer> | null>
}

// Each statement returns the number of the key (from 1) in its last column.

const grantRows = `SELECT tokens.id, buckets.id, scopes, expires_at, revoked_at, last_used_at,
    ${grantedColumns('$2')}, wanted.number
  FROM unnest($1::bytea[]) WITH ORDINALITY AS wanted (hash, number)
  JOIN tokens ON tokens.hash = wanted.hash JOIN buckets ON buckets.id = tokens.bucket_id
  WHERE require_primary()`

const pageRows = `SELECT page.revision, page.total, page.items,
    (SELECT ${expiredColumn('$3')} FROM buckets WHERE id = wanted.bucket), wanted.number
  FROM unnest($1::int8[], $2::int8[]) WITH ORDINALITY AS wanted (bucket, first, number),
    read_page(wanted.bucket, wanted.first) AS page`

/**
 * A page of a bucket in which items have expired. The ranks count these: as many live items are skipped as expired ones precede the item at
 * the rank of the page.
 */
const livePageRows = `WITH start AS MATERIALIZED (
    SELECT seq FROM items WHERE id = split_part(split_part((SELECT items FROM read_page($1, $2)), ' ', 1), '.', 1)
  )
  SELECT revision, total, (SELECT string_agg(CASE WHEN extension IS NULL THEN id ELSE id || '.' || extension END, ' ' ORDER BY seq)
    FROM (SELECT id, extension, seq FROM items WHERE bucket_id = $1 AND seq >= (SELECT seq FROM start) AND ${isLive('$3')}
      ORDER BY seq LIMIT ${pageSize} OFFSET (SELECT count(*) FROM items
        WHERE bucket_id = $1 AND item_expires_at <= $3 AND seq < (SELECT seq FROM start))) AS page),
    ${expiredColumn('$3')} FROM buckets WHERE id = $1`

const itemRows = `SELECT items.${itemColumns}, bucket_id, EXISTS (SELECT FROM damaged WHERE damaged.id = items.id)::int4, content_id,
    ${isPrivateColumn}, wanted.number
  FROM unnest($1::text[]) WITH ORDINALITY AS wanted (id, number) JOIN items ON items.id = wanted.id`

const bucketRows = `SELECT ${bucketColumns}, ${expiredOfBucket('$2')}, wanted.number
  FROM unnest($1::int8[]) WITH ORDINALITY AS wanted (id, number) JOIN buckets ON buckets.id = wanted.id`

const contentRows = `SELECT bytes, wanted.number
  FROM unnest($1::int8[]) WITH ORDINALITY AS wanted (id, number) JOIN contents ON contents.id = wanted.id`

/** The most contents in one read. Each can have a million characters, so this limits the memory of a read. */
const contentLimit = 8

export function createHotReads(run: Run): HotReads {
  async function readEach<Value, Missing>(
    count: number,
    missing: Missing,
    read: (row: Row) => Value,
    rows: Promise<readonly Row[]>,
  ): Promise<(Value | Missing)[]> {
    const values: (Value | Missing)[] = Array.from({ length: count }, () => missing)
    for (const row of await rows) values[integer(row, row.length - 1) - 1] = read(row)
    return values
  }
  return {
    grants: createBatchedReads({
      concurrency: 2,
      limit: 256,
      identify: (hash) => Buffer.from(hash.buffer, hash.byteOffset, hash.byteLength).toString('latin1'),
      readAll: (hashes) =>
        readEach(hashes.length, null, readGrant, run(grantRows, bytesArray(hashes), Date.now())),
    }),
    pages: createBatchedReads({
      concurrency: 2,
      limit: 16,
      identify: ({ bucketId, page }) => `${bucketId} ${page}`,
      async readAll(keys) {
        const now = Date.now()
        const buckets = keys.map(({ bucketId }) => bucketId)
        const firsts = keys.map(({ page }) => (page - 1) * pageSize)
        const read = run(pageRows, buckets, firsts, now)
        const pages = await readEach(keys.length, 'no bucket' as const, pageOf, read)
        const readLive = async (index: number) => {
          const [row] = await run(livePageRows, buckets[index], firsts[index], now)
          return row ? pageOf(row) : ('no bucket' as const)
        }
        return Promise.all(
          pages.map((page, index) =>
            page !== 'no bucket' && page.expired > 0 && page.expired <= maxExpired ? readLive(index) : page,
          ),
        )
      },
    }),
    items: createBatchedReads({
      concurrency: 2,
      limit: 64,
      identify: (id) => id,
      readAll: (ids) => readEach(ids.length, null, (row) => unlessExpired(readItem(row)), run(itemRows, ids)),
    }),
    buckets: createBatchedReads({
      concurrency: 1,
      limit: 256,
      identify: (id) => id,
      readAll: (ids) => readEach(ids.length, null, liveBucketOf, run(bucketRows, ids, Date.now())),
    }),
    keys: createBatchedReads({
      concurrency: 2,
      limit: 1,
      identify: (all) => all,
      readAll: async () => [await runQuery(run, listKeys())],
    }),
    contents: createBatchedReads({
      concurrency: 2,
      limit: contentLimit,
      identify: (id) => id,
      readAll: (ids) => readEach(ids.length, null, (row) => bytes(row, 0), run(contentRows, ids)),
    }),
  }
}

/** As ItemCatalog.servability. */
export async function readServability(run: Run, ids: readonly ItemId[]): Promise<readonly Servability[]> {
  if (ids.length === 0) return []
  const rows = await run(
    `SELECT items.id, renamed, ${isPrivateColumn} FROM items WHERE id = ANY ($1::text[]) AND bucket_id > 0
    AND coalesce(item_expires_at > $2, true) AND NOT EXISTS (SELECT FROM damaged WHERE damaged.id = items.id)`,
    ...[ids, Date.now()],
  )
  const stateOf = (row: Row) => (integer(row, 2) === 1 ? 'private' : row[1] === null ? 'servable' : 'renamed')
  const found = new Map(rows.map((row) => [text(row, 0), stateOf(row)] as const))
  return ids.map((id) => found.get(id) ?? 'not')
}

/** Returns the page. Throws Fault `token-revoked` if its bucket was deleted. */
export function requirePage(found: PageRows | 'no bucket'): PageRows {
  if (found === 'no bucket') throw bucketDeleted()
  return found
}

const pageOf = (row: Row): PageRows => ({
  revision: integer(row, 0),
  expired: integer(row, 3),
  total: integer(row, 1) - integer(row, 3),
  rows: itemsOf(textOrNull(row, 2)),
})

/** Parses the items of read_page: ids, and after a dot the extension if there is one, separated by spaces. */
function itemsOf(items: string | null): PageRows['rows'] {
  if (items === null) return []
  return items.split(' ').map((item) => {
    const dot = item.indexOf('.')
    return dot < 0
      ? { id: item as ItemId, extension: null }
      : { id: item.slice(0, dot) as ItemId, extension: item.slice(dot + 1) }
  })
}
