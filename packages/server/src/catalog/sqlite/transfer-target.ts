import { storeRequest } from '../keyed-requests.ts'
import { replaceKeys } from '../keys.ts'
import type { BucketId } from '../records.ts'
import { integer } from '../rows.ts'
import {
  type CatalogTarget,
  type ItemPosition,
  TransferError,
  type TransferredBucket,
  transferredBucketColumns,
  transferredBucketValues,
  transferredSettings,
} from '../transfer.ts'
import { isTrash } from '../trash.ts'
import { prepareInsertEvents } from './audit-log.ts'
import { openForTransfer } from './data-directory.ts'
import { prepareRefreshExpiry } from './item-expiry.ts'
import { prepareInsertItem } from './media-rows.ts'
import { prepareRecount } from './recount.ts'
import { one } from './rows.ts'
import { asFault } from './sqlite-errors.ts'
import { createRun } from './statements.ts'
import { runTransaction } from './transaction.ts'
import { readMeta, transferKey, unmarkTransfer } from './transfer-marks.ts'

export async function openSqliteTarget(directory: string): Promise<CatalogTarget> {
  const db = openForTransfer(directory)
  const setMeta = db.prepare(
    'INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
  )
  const hasBuckets = db.prepare('SELECT EXISTS (SELECT 1 FROM buckets)')
  const addBucket = db.prepare(`INSERT INTO buckets (${transferredBucketColumns.join(', ')})
    VALUES (${transferredBucketColumns.map(() => '?').join(', ')}) ON CONFLICT (id) DO UPDATE SET ${transferredSettings}`)
  const addToken = db.prepare(`INSERT INTO tokens
    (id, bucket_id, name, hash, scopes, created_at, expires_at, last_used_at, revoked_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, last_used_at = excluded.last_used_at,
      revoked_at = excluded.revoked_at`)
  const describe = db.prepare('UPDATE media SET alt_text = ?, caption = ? WHERE id = ?')
  const markTrashed = db.prepare('UPDATE media SET home_seq = ?, deleted_at = ?, expires_at = ? WHERE id = ?')
  const lastItem = db.prepare('SELECT bucket_id, seq FROM media ORDER BY bucket_id DESC, seq DESC LIMIT 1')
  const addDamaged = db.prepare('INSERT INTO damaged (id) VALUES (?)')
  const insertItem = prepareInsertItem(db)
  const run = createRun(db)
  const insertEvents = prepareInsertEvents(db)
  const recount = prepareRecount(db)
  const refreshExpiry = prepareRefreshExpiry(db)

  async function change<T>(action: () => T): Promise<T> {
    try {
      return runTransaction(db, action)
    } catch (error) {
      throw asFault(error)
    }
  }

  function insertBucket(bucket: TransferredBucket): void {
    addBucket.run(...transferredBucketValues(bucket))
  }

  function position(): ItemPosition | null {
    const row = one(lastItem)
    return row && { bucketId: integer(row, 0) as BucketId, seq: integer(row, 1) }
  }

  return {
    isUnfinished: async () => readMeta(db, transferKey) !== null || integer(one(hasBuckets) ?? [], 0) === 0,

    async begin(state, buckets) {
      const last = await change(() => {
        const earlier = readMeta(db, transferKey)
        if (earlier === null && integer(one(hasBuckets) ?? [], 0) === 1)
          throw new TransferError(
            'The target has data. Choose an empty one, or start the service on it if this migration was completed before.',
          )
        if (earlier !== null && earlier !== state) db.exec(removal)
        setMeta.run(transferKey, state)
        buckets.forEach(insertBucket)
        return position()
      })
      unmarkTransfer(directory)
      return last
    },

    addTokens: (tokens) =>
      change(() => {
        for (const {
          id,
          bucketId,
          name,
          hash,
          scopes,
          createdAt,
          expiresAt,
          lastUsedAt,
          revokedAt,
        } of tokens)
          addToken.run(
            id,
            bucketId,
            name,
            hash,
            scopes.join(' '),
            createdAt,
            expiresAt,
            lastUsedAt,
            revokedAt,
          )
      }),

    setKeys: (keys) => change(() => run(replaceKeys(keys))),

    addItems: (items) =>
      change(() => {
        for (const item of items) {
          insertItem(item.bucketId, item.seq, item)
          const { id, altText, caption } = item.item
          if (altText !== null || caption !== null) describe.run(altText, caption, id)
          if (item.trashed !== null)
            markTrashed.run(item.trashed.homeSeq, item.trashed.deletedAt, item.trashed.expiresAt, id)
          if (item.isDamaged) addDamaged.run(item.item.id)
        }
      }),

    addRequests: (requests) =>
      change(() => {
        for (const { request, items } of requests) run(storeRequest(request, items))
      }),

    clearEvents: () => change(() => db.exec('DELETE FROM audit_events')),

    addEvents: (events) => change(() => insertEvents(events, ([time]) => time)),

    async finish() {
      for (const id of recount.buckets())
        await change(() => {
          recount.correct(id)
          if (!isTrash(id)) refreshExpiry(id)
        })
      await change(() => {
        db.exec(retireIds)
        db.prepare('DELETE FROM meta WHERE key = ?').run(transferKey)
      })
    },

    async close() {
      if (db.isOpen) db.close()
    },
  }
}

/** The audit log has ids of deleted buckets. A new bucket with one of them would seem to have its events. */
const retireIds = `INSERT OR REPLACE INTO meta (key, value)
  SELECT 'last_bucket_id', max(bucket_id) FROM audit_events WHERE bucket_id IS NOT NULL HAVING count(*) > 0`

const removal = `
  DELETE FROM keyed_requests;
  DELETE FROM damaged;
  DELETE FROM contents;
  DELETE FROM media;
  DELETE FROM ranks;
  DELETE FROM name_segments;
  DELETE FROM name_chunks;
  DELETE FROM name_marks;
  DELETE FROM name_claims;
  DELETE FROM tokens;
  DELETE FROM buckets;`
