import { bucketDeleted } from '../../core/fault.ts'
import type { MediaId } from '../../core/media-id.ts'
import { bucketColumnCount, bucketColumns, bucketOf } from '../bucket-columns.ts'
import type { Catalog } from '../catalog.ts'
import { isPrivateColumn } from '../item-columns.ts'
import type { BucketId, CatalogStatistics } from '../records.ts'
import { integer, type Row, text } from '../rows.ts'
import { grantedColumns, readGrant, readToken } from '../token-columns.ts'
import { readTrashed, readTrashState, trashedColumns, trashOf, trashStateColumns } from '../trash.ts'
import { parseUpkeepRun, upkeepKey, upkeepKinds } from '../upkeep-runs.ts'
import { uploadColumns, uploadOf } from '../upload-columns.ts'
import { findRepeated } from './idempotency-records.ts'
import { readParts, readPieces } from './upload-parts.ts'

type Run = (statement: string, ...values: unknown[]) => Promise<Row[]>

type Reads = Pick<
  Catalog,
  | 'newUserGrant'
  | 'servability'
  | 'trashState'
  | 'trash'
  | 'expiredTrash'
  | 'expiringBuckets'
  | 'findRepeated'
  | 'findUnreferenced'
  | 'intents'
  | 'expiredIntents'
  | 'tombstones'
  | 'upload'
  | 'uploadParts'
  | 'uploadPieces'
  | 'unfinishedUploads'
  | 'expiredUploads'
  | 'bucketNamed'
  | 'uploadsOf'
  | 'buckets'
  | 'token'
  | 'tokens'
  | 'tokensAfter'
  | 'isNew'
  | 'blobsIdentity'
  | 'someWithBlobs'
> & { statistics(): Promise<Omit<CatalogStatistics, 'waitingChanges' | 'logBytes'>> }

const tokenRows = `SELECT tokens.id, buckets.name, tokens.name, scopes, tokens.created_at, expires_at,
  last_used_at, revoked_at FROM tokens JOIN buckets ON buckets.id = tokens.bucket_id`

/** The reads that are not in hot-reads.ts. Each is one statement, and so of one snapshot. */
export function createReads(run: Run): Reads {
  const mediaIds = async (statement: string, ...values: unknown[]) =>
    (await run(statement, ...values)).map((row) => text(row, 0) as MediaId)
  const uploads = async (condition: string, ...values: unknown[]) =>
    (await run(`SELECT ${uploadColumns} FROM uploads WHERE ${condition}`, ...values)).map(uploadOf)

  return {
    async newUserGrant(bucket, id) {
      const [row] = await run(
        `SELECT $3::text, id, '', NULL, NULL, NULL, ${grantedColumns('$2')} FROM buckets WHERE name = $1 AND id > 0`,
        ...[bucket, Date.now(), id],
      )
      return row ? readGrant(row) : null
    },

    async servability(ids) {
      if (ids.length === 0) return []
      const rows = await run(
        `SELECT media.id, renamed, ${isPrivateColumn} FROM media WHERE id = ANY ($1::text[]) AND bucket_id > 0
        AND coalesce(item_expires_at > $2, true) AND NOT EXISTS (SELECT FROM damaged WHERE damaged.id = media.id)`,
        ids,
        Date.now(),
      )
      const stateOf = (row: Row) =>
        integer(row, 2) === 1 ? 'private' : row[1] === null ? 'servable' : 'renamed'
      const found = new Map(rows.map((row) => [text(row, 0), stateOf(row)] as const))
      return ids.map((id) => found.get(id) ?? 'not')
    },

    async expiringBuckets(now) {
      const rows = await run('SELECT id FROM buckets WHERE next_expiry <= $1 AND id > 0', now)
      return rows.map((row) => integer(row, 0) as BucketId)
    },

    async trashState(bucketId) {
      const [row] = await run(`SELECT ${trashStateColumns('$2')} WHERE buckets.id = $1`, bucketId, Date.now())
      if (!row) throw bucketDeleted()
      return readTrashState(row)
    },
    async trash(bucketId, after, limit, now = Date.now()) {
      const rows = await run(
        `SELECT ${trashedColumns} FROM media WHERE bucket_id = $1 AND seq < $2 AND expires_at > $3
        ORDER BY seq DESC LIMIT $4`,
        ...[trashOf(bucketId), after ?? Number.MAX_SAFE_INTEGER, now, limit],
      )
      return rows.map(readTrashed)
    },
    async expiredTrash(now, limit) {
      const rows = await run(
        'SELECT -bucket_id, id FROM media WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2',
        now,
        limit,
      )
      return rows.map((row) => ({ bucketId: integer(row, 0) as BucketId, id: text(row, 1) as MediaId }))
    },

    findRepeated: (request) => findRepeated(run, request),

    findUnreferenced: (ids) => mediaIds('SELECT unreferenced_ids($1)', ids),
    intents: () => mediaIds('SELECT id FROM intents'),
    expiredIntents: () => mediaIds('SELECT id FROM intents WHERE expires_at <= clock_timestamp()'),
    tombstones: () => mediaIds('SELECT id FROM tombstones'),

    upload: async (id) => (await uploads('id = $1', id))[0] ?? null,
    uploadParts: (id) => readParts(run, id),
    uploadPieces: (id) => readPieces(run, id),
    unfinishedUploads: () => uploads('finished = 0'),
    expiredUploads: (now) => uploads('expires_at <= $1 ORDER BY expires_at', now),
    uploadsOf: (bucketId) => uploads('bucket_id = $1', bucketId),

    async bucketNamed(name) {
      const [row] = await run(`SELECT ${bucketColumns}, id FROM buckets WHERE name = $1 AND id > 0`, name)
      return row ? { ...bucketOf(row), id: integer(row, bucketColumnCount) as BucketId } : null
    },
    buckets: async () =>
      (await run(`SELECT ${bucketColumns} FROM buckets WHERE id > 0 ORDER BY name`)).map(bucketOf),

    async token(id) {
      const [row] = await run(`${tokenRows} WHERE tokens.id = $1`, id)
      return row ? readToken(row) : null
    },
    async tokensAfter(bucketId, after, limit) {
      const rows = await run(
        `${tokenRows} WHERE tokens.bucket_id = $1
        AND tokens.number > coalesce((SELECT number FROM tokens WHERE id = $2), 0)
        ORDER BY tokens.number LIMIT $3`,
        ...[bucketId, after, limit],
      )
      return rows.map(readToken)
    },
    async tokens(bucket) {
      const order = 'ORDER BY tokens.created_at, tokens.number'
      const rows =
        bucket === undefined
          ? await run(`${tokenRows} ${order}`)
          : await run(`${tokenRows} WHERE buckets.name = $1 ${order}`, bucket)
      return rows.map(readToken)
    },

    async isNew() {
      const [row = []] = await run('SELECT (NOT EXISTS (SELECT FROM buckets))::int4')
      return integer(row, 0) === 1
    },

    async blobsIdentity() {
      const [row] = await run("SELECT value FROM meta WHERE key = 'blobs'")
      return row ? text(row, 0) : null
    },

    async someWithBlobs() {
      const some = (order: 'ASC' | 'DESC') =>
        mediaIds(`SELECT id FROM media WHERE sha256 IS NOT NULL AND content_id IS NULL
          ORDER BY bucket_id ${order}, seq ${order} LIMIT 20`)
      return [...(await some('ASC')), ...(await some('DESC'))]
    },

    async statistics() {
      const [sums = []] = await run(`SELECT coalesce(sum(total), 0)::int8, coalesce(sum(bytes), 0)::int8,
        coalesce(sum(reserved_items), 0)::int8, coalesce(sum(reserved_bytes), 0)::int8 FROM buckets WHERE id > 0`)
      const runs = await run('SELECT key, value FROM meta WHERE key = ANY ($1)', upkeepKinds.map(upkeepKey))
      return {
        items: integer(sums, 0),
        bytes: integer(sums, 1),
        unfinishedUploads: integer(sums, 2),
        unfinishedBytes: integer(sums, 3),
        upkeep: upkeepKinds.flatMap((kind) => {
          const row = runs.find((run) => text(run, 0) === upkeepKey(kind))
          return row ? [parseUpkeepRun(kind, text(row, 1))] : []
        }),
      }
    },
  }
}
