import { createHash } from 'node:crypto'
import { readItem } from '../item-columns.ts'
import type { BucketId, TokenId } from '../records.ts'
import { bytes, integer, integerOrNull, type Row, text } from '../rows.ts'
import { readToken } from '../token-columns.ts'
import type { CatalogSource, TransferredBucket, TransferredItem, TransferredToken } from '../transfer.ts'
import { openDataDirectory } from './data-directory.ts'
import { prepareIdempotencyRecords } from './idempotency-records.ts'
import { all, one } from './rows.ts'

/** Milliseconds that a read waits, as in catalog.ts. */
const readTimeout = 5_000
/** Idempotency keys in a batch. */
const requestsPerBatch = 500

export async function openSqliteSource(directory: string): Promise<CatalogSource> {
  const db = openDataDirectory(directory, readTimeout)
  const epoch = db.prepare("SELECT value FROM meta WHERE key = 'epoch'")
  const buckets = db.prepare(`SELECT id, name, created_at, revision, next_seq, max_items, max_bytes
    FROM buckets ORDER BY id`)
  const tokens = db.prepare(`SELECT id, '', name, scopes, created_at, expires_at, last_used_at, revoked_at,
    bucket_id, hash FROM tokens ORDER BY rowid`)
  const items = db.prepare(`SELECT media.id, filename, content_type, extension, size, sha256, width, height,
    created_at, bucket_id, seq, EXISTS (SELECT 1 FROM damaged WHERE damaged.id = media.id), contents.bytes
    FROM media LEFT JOIN contents ON contents.id = content_id
    WHERE (bucket_id, seq) > (?, ?) ORDER BY bucket_id, seq LIMIT ?`)
  const requests = db.prepare(`SELECT token_id, key, fingerprint, expires_at FROM keyed_requests
    WHERE (token_id, key) > (?, ?) ORDER BY token_id, key LIMIT ${requestsPerBatch}`)
  const count = db.prepare('SELECT count(*) FROM media WHERE (bucket_id, seq) <= (?, ?)')
  const idempotency = prepareIdempotencyRecords(db)

  const readBuckets = () => all(buckets).map(bucketOf)

  return {
    async state() {
      const revisions = readBuckets().map(({ id, revision }) => [id, revision])
      const state = JSON.stringify([text(one(epoch) ?? [], 0), revisions])
      return createHash('sha256').update(state).digest('hex')
    },
    buckets: async () => readBuckets(),
    tokens: async () => all(tokens).map(tokenOf),
    items: async (after, limit) => all(items, after?.bucketId ?? -1, after?.seq ?? -1, limit).map(itemOf),

    async *requests() {
      let last: [string, string] = ['', '']
      for (;;) {
        const rows = all(requests, ...last)
        if (rows.length === 0) return
        yield rows.map((row) => {
          const request = {
            tokenId: text(row, 0) as TokenId,
            key: text(row, 1),
            fingerprint: bytes(row, 2),
            expiresAt: integer(row, 3),
          }
          // Also records that have expired.
          return { request, items: idempotency.find({ ...request, now: Number.NEGATIVE_INFINITY }) ?? [] }
        })
        const end = rows.at(-1) ?? []
        last = [text(end, 0), text(end, 1)]
      }
    },

    countItems: async (upTo) =>
      integer(one(count, upTo?.bucketId ?? Number.MAX_SAFE_INTEGER, upTo?.seq ?? 0) ?? [], 0),

    async close() {
      if (db.isOpen) db.close()
    },
  }
}

const bucketOf = (row: Row): TransferredBucket => ({
  id: integer(row, 0) as BucketId,
  name: text(row, 1),
  createdAt: integer(row, 2),
  revision: integer(row, 3),
  nextSeq: integer(row, 4),
  maxItems: integerOrNull(row, 5),
  maxBytes: integerOrNull(row, 6),
})

function tokenOf(row: Row): TransferredToken {
  const { bucket: _bucket, ...token } = readToken(row)
  return { ...token, bucketId: integer(row, 8) as BucketId, hash: bytes(row, 9) }
}

const itemOf = (row: Row): TransferredItem => ({
  bucketId: integer(row, 9) as BucketId,
  seq: integer(row, 10),
  item: readItem(row),
  isDamaged: integer(row, 11) === 1,
  bytes: row[12] === null ? null : bytes(row, 12),
})
