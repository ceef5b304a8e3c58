import type { MediaId } from '../../core/media-id.ts'
import { type AddedContent, upkeepEvent } from '../audit-log/events.ts'
import type { Change, ChangeKind, Changes, Output } from '../changes.ts'
import type { BucketId } from '../records.ts'
import { text } from '../rows.ts'
import { joinRemoved, trashOf } from '../trash.ts'
import { formatUpkeepRun, upkeepKey } from '../upkeep-runs.ts'
import { recordEvents, recordItems } from './audit-log.ts'
import { deleteBucketChunk } from './bucket-deletion.ts'
import { createBucket, findBucket, holdBucket, setBucket } from './bucket-rows.ts'
import { editMedia } from './edit-media.ts'
import { findRepeated, storeRepeatable } from './idempotency-records.ts'
import { expiredItems, refreshExpiry } from './item-expiry.ts'
import { addKey, removeKey } from './key-rows.ts'
import { appendMedia, removeByIds, type Transaction } from './media-rows.ts'
import { claimNames, storeNames } from './name-index.ts'
import { grantToken, insertToken, insertUser, revokeToken, rotateToken } from './token-rows.ts'
import { purgeMedia, removeOrTrash, restoreMedia, trashDaysOf } from './trash.ts'
import { beginParts, storeParts } from './upload-parts.ts'
import { createUpload, declareLength, finishUpload, moveUpload, removeUpload } from './upload-rows.ts'

type ChangeFunctions = {
  readonly [K in ChangeKind]: (
    transaction: Transaction,
    input: Changes[K]['input'],
  ) => Promise<Changes[K]['output']>
}

/** Applies a change in a transaction that has locked its bucket. */
export const applyChange = <K extends ChangeKind>(
  transaction: Transaction,
  { kind, input }: Change<K>,
): Promise<Output<K>> => functions[kind](transaction, input)

const functions: ChangeFunctions = {
  async 'add-media'(transaction, { bucketId, items }) {
    await addMedia(transaction, bucketId, items)
    return undefined
  },

  async 'add-media-once'(transaction, { bucketId, items, request }) {
    const first = await findRepeated(transaction.session.run, request)
    if (first) return first
    await addMedia(transaction, bucketId, items)
    const rows = items.map(({ item }) => item)
    await storeRepeatable(transaction.session, bucketId, request, rows)
    return rows
  },

  'forget-requests': ({ session }, { now }) =>
    session.change('DELETE FROM keyed_requests WHERE expires_at <= $1', now),

  'remove-media': (transaction, input) =>
    recordItems(
      transaction.session,
      trashDaysOf(transaction, input.bucketId) > 0 ? 'trash' : 'delete',
      input,
      () => removeOrTrash(transaction, input.bucketId, input.ids, input.now),
      ({ ids }) => ids,
    ),

  'restore-media': (transaction, input) =>
    recordItems(
      transaction.session,
      'restore',
      input,
      () => restoreMedia(transaction, input.bucketId, input.ids, input.now),
      (ids) => ids,
    ),

  async 'expire-items'(transaction, { bucketId, now, limit, ...input }) {
    const { session } = transaction
    const listed = await expiredItems(session, bucketId, now, limit)
    const trashed = await expiredItems(session, trashOf(bucketId), now, limit - listed.length)
    const removed = await recordItems(
      session,
      'expire',
      { ...input, bucketId, ids: [...listed, ...trashed] },
      async () =>
        joinRemoved(
          await removeByIds(transaction, bucketId, listed),
          await purgeMedia(transaction, bucketId, trashed),
        ),
      (result) => result.ids,
    )
    await refreshExpiry(session, bucketId)
    return removed
  },

  'purge-media': (transaction, input) =>
    recordItems(
      transaction.session,
      'purge',
      input,
      () => purgeMedia(transaction, input.bucketId, input.ids),
      ({ ids }) => ids,
    ),

  async 'set-preview'(
    { session },
    { bucketId, id, preview: { thumbhash, duration, width, height, isCorrection = false } },
  ) {
    const changes = await session.change(
      `UPDATE media SET thumbhash = $1, duration = coalesce(duration, $2), 
        width = CASE WHEN $7::boolean THEN $3 ELSE coalesce(width, $3) END,
        height = CASE WHEN $7 THEN $4 ELSE coalesce(height, $4) END
      WHERE id = $5 AND bucket_id = $6 AND (thumbhash IS NULL OR $7)`,
      ...[thumbhash, duration, width, height, id, bucketId, isCorrection],
    )
    if (changes > 0)
      await session.run('UPDATE buckets SET revision = revision + revision_step() WHERE id = $1', bucketId)
    return undefined
  },

  'edit-media': editMedia,

  'add-intents': ({ session }, { ids, lifetime }) =>
    run(
      session.run(
        `INSERT INTO intents (id, expires_at)
        SELECT id, clock_timestamp() + $2::int8 * interval '1 millisecond' FROM unnest($1::text[]) AS id ORDER BY id
        ON CONFLICT (id) DO UPDATE SET expires_at = greatest(intents.expires_at, excluded.expires_at)`,
        ids,
        lifetime,
      ),
    ),

  async 'retire-intents'({ session }, { ids }) {
    const rows = await session.run('SELECT retire_intents($1)', ids)
    return rows.map((row) => text(row, 0) as MediaId)
  },

  'clear-intents': ({ session }, { ids }) =>
    run(session.run('DELETE FROM intents WHERE id = ANY ($1::text[])', ids)),

  'clear-tombstones': ({ session }, { ids }) =>
    run(session.run('DELETE FROM tombstones WHERE id = ANY ($1::text[])', ids)),

  'create-upload': (transaction, upload) => run(createUpload(transaction, upload)),
  'declare-length': (transaction, { id, length }) => declareLength(transaction, id, length),
  'move-upload': (transaction, { id, ...move }) => moveUpload(transaction, id, move),
  'begin-parts': (transaction, { id, multipart }) => beginParts(transaction, id, multipart),
  'store-parts': (transaction, { id, stored, move }) => storeParts(transaction, id, stored, move),
  'finish-upload': (transaction, { id, added, expiresAt, received }) =>
    finishUpload(transaction, id, added, { expiresAt, received }),
  'remove-upload': (transaction, { id, onlyUnfinished }) => removeUpload(transaction, id, onlyUnfinished),

  'create-bucket': ({ session }, { name, ...bucket }) => createBucket(session, { ...bucket, bucket: name }),

  'delete-bucket-chunk': deleteBucketChunk,

  'set-bucket': ({ session }, { bucket, settings, by }) => setBucket(session, bucket, settings, by),

  async 'add-token'({ session }, token) {
    const isNew = await createBucket(session, token)
    await insertToken(session, await holdBucket(session, token.bucket), token, token.by)
    return isNew
  },

  async 'add-user'({ session }, { user, newBucket, ...audited }) {
    const { bucket, createdAt } = user
    if (newBucket !== null)
      await createBucket(session, { bucket, settings: newBucket, createdAt, ...audited })
    const bucketId = await findBucket(session, bucket)
    if (bucketId !== null) await insertUser(session, bucketId, user)
    return bucketId !== null
  },

  async 'create-bucket-with-token'({ session }, token) {
    const isNew = await createBucket(session, token)
    if (isNew) await insertToken(session, await holdBucket(session, token.bucket), token, token.by)
    return isNew
  },

  'grant-token': ({ session }, input) => grantToken(session, input),

  'rotate-token': ({ session }, input) => rotateToken(session, input),

  'add-key': ({ session }, input) => addKey(session, input),

  'remove-key': ({ session }, input) => removeKey(session, input),

  'revoke-token': ({ session }, input) => revokeToken(session, input),

  'touch-token': ({ session }, { id, at }) =>
    run(session.run('UPDATE tokens SET last_used_at = $1 WHERE id = $2', at, id)),

  async 'record-upkeep'(transaction, { by, ...upkeep }) {
    await setMeta(transaction, upkeepKey(upkeep.kind), formatUpkeepRun(upkeep))
    if (by !== undefined) await recordEvents(transaction.session, [upkeepEvent(upkeep, by)])
    return undefined
  },

  'record-events': ({ session }, { events }) => run(recordEvents(session, events)),

  'remove-events': ({ session }, { before, limit }) =>
    session.change(
      `DELETE FROM audit_events WHERE (time, number) IN
        (SELECT time, number FROM audit_events WHERE time < $1 ORDER BY time, number LIMIT $2)`,
      before,
      limit,
    ),

  async 'claim-blobs-identity'({ session }, { identity }) {
    await session.run("INSERT INTO meta (key, value) VALUES ('blobs', $1) ON CONFLICT DO NOTHING", identity)
    const [row = []] = await session.run("SELECT value FROM meta WHERE key = 'blobs'")
    return text(row, 0)
  },

  'claim-names': ({ session }, input) => claimNames(session, input),
  'store-names': ({ session }, names) => storeNames(session, names),

  // A transaction that changes these tables holds locks that exclude this one until it ends.
  settle: ({ session }) => run(session.run('LOCK TABLE media, uploads, intents IN SHARE MODE')),

  check: async () => undefined,
}

async function run(work: Promise<unknown>): Promise<undefined> {
  await work
  return undefined
}

async function addMedia(
  transaction: Transaction,
  bucketId: BucketId,
  items: readonly AddedContent[],
): Promise<void> {
  const bytes = items.reduce((sum, { item }) => sum + item.size, 0)
  transaction.buckets.requireRoom(bucketId, { items: items.length, bytes })
  await appendMedia(transaction, bucketId, items)
}

const setMeta = ({ session }: Transaction, key: string, value: string) =>
  run(
    session.run(
      'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
      key,
      value,
    ),
  )
