import type { DatabaseSync } from 'node:sqlite'
import { type AddedContent, upkeepEvent } from '../audit-log/events.ts'
import type { Change, ChangeKind, Changes, Output } from '../changes.ts'
import type { BucketId } from '../records.ts'
import { text } from '../rows.ts'
import { prepareRecordEvents, prepareRemoveEvents } from './audit-log.ts'
import { prepareDeleteBucketChunk } from './bucket-deletion.ts'
import { prepareBucketRows, prepareQuotas } from './buckets.ts'
import { prepareEditMedia } from './edit-media.ts'
import { prepareIdempotencyRecords } from './idempotency-records.ts'
import { prepareIntentRows } from './intent-rows.ts'
import { prepareItemChanges } from './item-changes.ts'
import { prepareKeyRows } from './key-rows.ts'
import { prepareMediaRows } from './media-rows.ts'
import { prepareNameIndex } from './name-index.ts'
import { prepareRanks } from './ranks.ts'
import { one } from './rows.ts'
import { prepareRecordUpkeep } from './statistics.ts'
import { prepareTokenRows } from './token-rows.ts'
import { prepareTrash } from './trash.ts'
import { prepareUploadRows } from './upload-rows.ts'

/** One function for each kind, to be called within a transaction of the caller. */
export type ChangeFunctions = { readonly [K in ChangeKind]: (input: Changes[K]['input']) => Output<K> }

export const applyChange = <K extends ChangeKind>(functions: ChangeFunctions, change: Change<K>): Output<K> =>
  functions[change.kind](change.input)

export function prepareChanges(db: DatabaseSync): ChangeFunctions {
  const ranks = prepareRanks(db)
  const media = prepareMediaRows(db, ranks)
  const buckets = prepareBucketRows(db)
  const deleteBucketChunk = prepareDeleteBucketChunk(db, media, prepareNameIndex(db))
  const quotas = prepareQuotas(db)
  const trash = prepareTrash(db, media, ranks, quotas)
  const uploads = prepareUploadRows(db, quotas, media)
  const idempotency = prepareIdempotencyRecords(db)
  const setPreview = db.prepare(`UPDATE media SET thumbhash = ?1, duration = coalesce(duration, ?2),
    width = iif(?7, ?3, coalesce(width, ?3)), height = iif(?7, ?4, coalesce(height, ?4)),
    edited = (SELECT revision + 1 FROM buckets WHERE buckets.id = bucket_id)
    WHERE id = ?5 AND bucket_id = ?6 AND (thumbhash IS NULL OR ?7)`)
  const incrementRevision = db.prepare('UPDATE buckets SET revision = revision + 1 WHERE id = ?')
  const intents = prepareIntentRows(db)
  const clearTombstone = db.prepare('DELETE FROM tombstones WHERE id = ?')
  const tokens = prepareTokenRows(db)
  const keys = prepareKeyRows(db)
  const names = prepareNameIndex(db)
  const recordUpkeep = prepareRecordUpkeep(db)
  const claimIdentity = db.prepare("INSERT INTO meta (key, value) VALUES ('blobs', ?) ON CONFLICT DO NOTHING")
  const readIdentity = db.prepare("SELECT value FROM meta WHERE key = 'blobs'")

  const recordCheck = db.prepare(
    "INSERT OR REPLACE INTO meta (key, value) VALUES ('write_check', CAST(? AS TEXT))",
  )

  const record = prepareRecordEvents(db)
  const removeEvents = prepareRemoveEvents(db)

  const addMedia = (bucketId: BucketId, items: readonly AddedContent[]): void => {
    quotas.requireRoom(bucketId, {
      items: items.length,
      bytes: items.reduce((sum, { item }) => sum + item.size, 0),
    })
    media.append(bucketId, items)
  }

  return {
    'add-media'({ bucketId, items }) {
      addMedia(bucketId, items)
    },

    'add-media-once'({ bucketId, items, request }) {
      const first = idempotency.find(request)
      if (first) return first
      addMedia(bucketId, items)
      const rows = items.map(({ item }) => item)
      idempotency.store(request, rows)
      return rows
    },

    'forget-requests': ({ now }) => idempotency.deleteExpired(now),

    ...prepareItemChanges(db, media, trash),

    'set-preview'({ bucketId, id, preview: { thumbhash, duration, width, height, isCorrection } }) {
      const replaces = isCorrection ? 1 : 0
      const { changes } = setPreview.run(thumbhash, duration, width, height, id, bucketId, replaces)
      if (Number(changes) > 0) incrementRevision.run(bucketId)
      return undefined
    },

    'edit-media': prepareEditMedia(db),

    'add-intents'({ ids, lifetime }) {
      intents.add(ids, lifetime)
    },

    'clear-intents'({ ids }) {
      intents.clear(ids)
    },

    'retire-intents': ({ ids }) => intents.retire(ids),

    'clear-tombstones'({ ids }) {
      for (const id of ids) clearTombstone.run(id)
    },

    'create-upload'(upload) {
      uploads.create(upload)
    },

    'declare-length': ({ id, length }) => uploads.declareLength(id, length),

    'move-upload': ({ id, from, to, expiresAt }) => uploads.move(id, from, to, expiresAt),

    'begin-parts': ({ id, multipart }) => uploads.beginParts(id, multipart),

    'store-parts': ({ id, stored, move }) => uploads.storeParts(id, stored, move),

    'finish-upload': ({ id, added, expiresAt, received }) =>
      uploads.finish(id, added, { expiresAt, received }),

    'remove-upload': ({ id, onlyUnfinished }) => uploads.remove(id, onlyUnfinished),

    'create-bucket': ({ name, settings, createdAt, by }) => buckets.create(name, settings, createdAt, by),

    'delete-bucket-chunk': deleteBucketChunk,

    'set-bucket': ({ bucket, settings, by }) => buckets.set(bucket, settings, by),

    'add-token'(token) {
      const { bucket, createdAt, by } = token
      const isNew = buckets.create(bucket, {}, createdAt, by)
      tokens.insert(buckets.ensure(bucket, createdAt), token, by)
      return isNew
    },

    'add-user'({ user, newBucket, by }) {
      if (newBucket !== null) buckets.create(user.bucket, newBucket, user.createdAt, by)
      const bucketId = buckets.find(user.bucket)
      if (bucketId !== null) tokens.insertOnce(bucketId, user)
      return bucketId !== null
    },

    'create-bucket-with-token'(token) {
      const { bucket, createdAt, by } = token
      const isNew = buckets.create(bucket, {}, createdAt, by)
      if (isNew) tokens.insert(buckets.ensure(bucket, createdAt), token, by)
      return isNew
    },

    'grant-token': tokens.grant,

    'rotate-token': tokens.rotate,

    'add-key': keys.add,

    'remove-key': keys.remove,

    'revoke-token': tokens.revoke,

    'touch-token'({ id, at }) {
      tokens.touch(id, at)
    },

    'record-upkeep'({ by, ...run }) {
      recordUpkeep(run)
      if (by !== undefined) record([upkeepEvent(run, by)])
    },

    'record-events'({ events }) {
      record(events)
    },

    'remove-events': ({ before, limit }) => removeEvents(before, limit),

    'claim-blobs-identity'({ identity }) {
      claimIdentity.run(identity)
      return text(one(readIdentity) ?? [], 0)
    },

    'claim-names': ({ bucketId, now }) => names.claim(bucketId, now),

    'store-names'(indexed) {
      names.store(indexed)
    },

    settle() {},

    check() {
      recordCheck.run(Date.now())
    },
  }
}
