import { createHash } from 'node:crypto'
import { eventColumnCount, eventColumns } from '../audit-log/events.ts'
import { itemColumns } from '../item-columns.ts'
import { findRepeated } from '../keyed-requests.ts'
import { listKeys } from '../keys.ts'
import type { TokenId } from '../records.ts'
import { bytes, integer, text } from '../rows.ts'
import {
  type CatalogSource,
  eventsPerBatch,
  readTransferredBucket,
  readTransferredEvent,
  readTransferredItem,
  readTransferredToken,
  transferredBucketColumns,
} from '../transfer.ts'
import { readTimeout } from './connection.ts'
import { openForTransfer } from './data-directory.ts'
import { all, one } from './rows.ts'
import { asFault } from './sqlite-errors.ts'
import { createRun } from './statements.ts'
import { runTransaction } from './transaction.ts'
import { movedKey, readMeta } from './transfer-marks.ts'

/** Idempotency keys in a batch. */
const requestsPerBatch = 500

export async function openSqliteSource(directory: string): Promise<CatalogSource> {
  const db = openForTransfer(directory, readTimeout)
  const epoch = db.prepare("SELECT value FROM meta WHERE key = 'epoch'")
  const buckets = db.prepare(`SELECT ${transferredBucketColumns.join(', ')} FROM buckets ORDER BY id`)
  const tokens = db.prepare(`SELECT id, '', name, scopes, created_at, expires_at, last_used_at, revoked_at,
    bucket_id, hash FROM tokens ORDER BY rowid`)
  const run = createRun(db)
  const items =
    db.prepare(`SELECT media.${itemColumns}, bucket_id, seq, EXISTS (SELECT 1 FROM damaged WHERE damaged.id = media.id), contents.bytes,
      home_seq, deleted_at, media.expires_at
    FROM media LEFT JOIN contents ON contents.id = content_id
    WHERE (bucket_id, seq) > (?, ?) ORDER BY bucket_id, seq LIMIT ?`)
  const requests = db.prepare(`SELECT token_id, key, fingerprint, expires_at FROM keyed_requests
    WHERE (token_id, key) > (?, ?) ORDER BY token_id, key LIMIT ${requestsPerBatch}`)
  const events = db.prepare(
    `SELECT ${eventColumns}, id FROM audit_events WHERE id > ? ORDER BY id LIMIT ${eventsPerBatch}`,
  )
  const count = db.prepare('SELECT count(*) FROM media WHERE (bucket_id, seq) <= (?, ?)')

  const readBuckets = () => all(buckets).map(readTransferredBucket)

  return {
    async state() {
      const revisions = readBuckets().map(({ id, revision }) => [id, revision])
      const state = JSON.stringify([text(one(epoch) ?? [], 0), revisions])
      return createHash('sha256').update(state).digest('hex')
    },
    buckets: async () => readBuckets(),
    tokens: async () => all(tokens).map(readTransferredToken),
    keys: async () => run(listKeys()),
    items: async (after, limit) =>
      all(items, after?.bucketId ?? Number.MIN_SAFE_INTEGER, after?.seq ?? -1, limit).map(
        readTransferredItem,
      ),

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
          return { request, items: run(findRepeated({ ...request, now: Number.NEGATIVE_INFINITY })) ?? [] }
        })
        const end = rows.at(-1) ?? []
        last = [text(end, 0), text(end, 1)]
      }
    },

    countItems: async (upTo) =>
      integer(one(count, upTo?.bucketId ?? Number.MAX_SAFE_INTEGER, upTo?.seq ?? 0) ?? [], 0),

    async *events() {
      let last = -1
      for (;;) {
        const rows = all(events, last)
        if (rows.length === 0) return
        yield rows.map(readTransferredEvent)
        last = integer(rows.at(-1) ?? [], eventColumnCount)
      }
    },

    movedTo: async () => readMeta(db, movedKey),
    async setMovedTo(settings) {
      const sql =
        settings === null
          ? 'DELETE FROM meta WHERE key = ?1'
          : 'INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value'
      try {
        runTransaction(db, () => db.prepare(sql).run(...[movedKey, ...(settings === null ? [] : [settings])]))
      } catch (error) {
        throw asFault(error)
      }
    },
    blobsIdentity: async () => readMeta(db, 'blobs'),

    async close() {
      if (db.isOpen) db.close()
    },
  }
}
