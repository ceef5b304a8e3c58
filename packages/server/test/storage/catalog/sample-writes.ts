import { newUploadId } from '../../../src/core/ids.ts'
import { dayOf } from '../../../src/core/times.ts'
import { service } from '../../../src/core/token-rules.ts'
import { newWebhookId } from '../../../src/core/webhook-rules.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { WebhookDelivery } from '../../../src/storage/catalog/feed/webhook-deliveries.ts'
import type { WriteKind } from '../../../src/storage/catalog/nouns.ts'
import type { BucketId, IdempotentRequest, NewItem, TokenId } from '../../../src/storage/catalog/records.ts'
import {
  hashOf,
  inBlobStore,
  newItem,
  newKey,
  newMultipart,
  newPart,
  newServiceToken,
  newToken,
  newUpload,
  withBytes,
} from './samples.ts'

const day = 86_400_000
const replacing = { mayReplace: true }
const lease = { owner: 'owner', lifetime: 30_000 }
/** The time of the sample and its changes. */
const now = 1_790_000_000_000

const labels = { album: 'a', camera: 'x' }

const bucketId = 1 as BucketId
const doomed = 2 as BucketId

/** What a sample catalog has. It can be prepared several times, with the same ids. */
export type Sample = ReturnType<typeof newSample>

export function newSample() {
  const labelled = (fields: Partial<NewItem> = {}) => newItem({ labels, ...fields })
  const upload = (fields = {}) => newUpload(bucketId, { length: 10, ...fields })
  return {
    /** In the bucket: with labels, in the catalog and in the blob store. */
    kept: [labelled(), labelled(), labelled(), newItem()] as const,
    expired: [labelled({ expiresAt: now - 1 }), labelled({ expiresAt: now - 2 })] as const,
    trashed: [labelled(), labelled()] as const,
    ofDoomed: [labelled(), labelled()] as const,
    removed: labelled(),
    ofRequest: newItem(),
    added: [labelled(), newItem(), labelled({ labels: { album: 'b' } })] as const,
    more: [labelled(), newItem()] as const,
    begun: upload(),
    ofUnknownLength: upload({ length: null }),
    received: upload(),
    webhookId: newWebhookId(),
    newWebhookId: newWebhookId(),
    newUpload: upload({ id: newUploadId() }),
    intent: newItem().id,
    multipart: newMultipart(),
    newMultipart: newMultipart(),
    part: newPart(1),
    newPart: newPart(1),
    keyed: [newItem(), newItem(), newItem()] as const,
  }
}

const requestOf = (key: string, expiresAt = now + day): IdempotentRequest => ({
  tokenId: 'camera' as TokenId,
  key,
  fingerprint: hashOf(key),
  now,
  expiresAt,
})

const limits = {
  maxItems: 100,
  maxBytes: 1_000_000,
  maxFileSize: null,
  types: null,
  itemDays: null,
  labels: null,
}

const idsOf = (items: readonly NewItem[]) => items.map(({ id }) => id)
const stored = (items: readonly NewItem[]) => items.map((item) => withBytes(item))
const receivedAt = { from: 0, to: 10, expiresAt: now + 2 * day }

const delivery: WebhookDelivery = {
  messageId: 'msg_1',
  type: 'item.added',
  time: now,
  duration: 1,
  changes: 1,
  range: null,
  status: 204,
  reason: null,
  response: '',
  isManual: false,
}

/** Fills an empty catalog with rows for every kind of write. */
export async function prepareSample(catalog: Catalog, sample: Sample): Promise<void> {
  const { kept, expired, trashed, ofDoomed, removed, begun, ofUnknownLength, received, keyed } = sample
  for (const name of ['b', 'doomed']) await catalog.createBucket(name, {}, now)
  await catalog.addToken(newToken('camera', { bucket: 'b' }))
  await catalog.addToken(newToken('limited', { bucket: 'b', limits }))
  await catalog.addToken(newToken('other', { bucket: 'doomed' }))
  await catalog.addServiceToken(newServiceToken('service'))
  await catalog.addItems(bucketId, [removed].map(withBytes))
  await catalog.addItems(bucketId, stored([...kept.slice(0, 2), ...expired, ...trashed]))
  await catalog.addItems(bucketId, inBlobStore(kept.slice(2)))
  await catalog.addItems(doomed, inBlobStore(ofDoomed))
  // Its tombstone stays.
  await catalog.removeItems(bucketId, [removed.id], undefined, now)
  await catalog.setBucket('b', { trashDays: 7 })
  await catalog.removeItems(bucketId, [...idsOf(trashed), ...idsOf(expired.slice(1))], undefined, now - 1_000)
  await catalog.addItemsOnce(bucketId, stored([sample.ofRequest]), requestOf('old', now - 1))
  for (const upload of [begun, ofUnknownLength, received]) await catalog.createUpload(upload)
  await catalog.storeParts(received.id, { parts: [], piece: new Uint8Array(10) }, receivedAt)
  await catalog.addIntents([sample.intent], 0)
  await catalog.createMultipart(bucketId, sample.multipart)
  await catalog.putPart(bucketId, sample.multipart.id, sample.part, now + day)
  for (const [index, item] of keyed.entries())
    await catalog.putKey(bucketId, newKey(`key ${index}`, item), replacing, null)
  await catalog.addSigningKey({ id: 'first', secret: hashOf('first'), createdAt: now }, false)
  const webhook = { url: 'https://example.org/', kinds: [], batch: 1, secret: 'whsec_1', createdAt: now }
  await catalog.addWebhook({ id: sample.webhookId, bucketId, ...webhook })
  await catalog.claimWebhook(sample.webhookId, 'owner', 30_000)
}

type Make = (catalog: Catalog, sample: Sample) => Promise<unknown>

/** Each has an effect on the sample, except the last two. */
const ofEachKind: { readonly [Kind in WriteKind]: Make } = {
  addItems: (catalog, { added }) => catalog.addItems(bucketId, stored(added)),
  addLimitedItems: (catalog, { added }) =>
    catalog.addLimitedItems(bucketId, stored(added), 'limited' as TokenId),
  addItemsOnce: (catalog, { added }) => catalog.addItemsOnce(bucketId, stored(added), requestOf('new')),
  forgetRequests: (catalog) => catalog.forgetRequests(now),
  removeItems: (catalog, { kept }) => catalog.removeItems(bucketId, idsOf(kept), undefined, now),
  removeUnchanged: (catalog, { kept: [item] }) =>
    catalog.removeUnchanged(bucketId, item.id, { ...item, altText: null, caption: null }, undefined, now),
  restoreItems: (catalog, { trashed }) => catalog.restoreItems(bucketId, idsOf(trashed), undefined, now),
  expireItems: (catalog) => catalog.expireItems(bucketId, now),
  purgeItems: (catalog, { trashed }) => catalog.purgeItems(bucketId, idsOf(trashed)),
  deleteBucketChunk: (catalog) => catalog.deleteBucketChunk(doomed, 100, now),
  deleteBucket: (catalog) => catalog.deleteBucket('doomed', true, now, lease),
  claimDeletion: async (catalog) => {
    await catalog.deleteBucketChunk(doomed, 1, now)
    await catalog.claimDeletion(doomed, lease)
  },
  createNewBucket: (catalog) =>
    catalog.createNewBucket({
      ...{
        name: 'created',
        settings: { trashDays: 1 },
        createdAt: now,
        token: newToken('first', { limits }),
      },
      creation: { key: hashOf('key'), fingerprint: hashOf('fingerprint'), nonce: hashOf('nonce') },
    }),
  createBucket: (catalog) => catalog.createBucket('new', { trashDays: 1 }, now),
  setBucket: (catalog) => catalog.setBucket('b', { isPrivate: true, maxItems: 1_000 }),
  addToken: (catalog) => catalog.addToken(newToken('new', { bucket: 'new', limits })),
  addUser: (catalog) => catalog.addUser(newToken('user', { bucket: 'users' }), { trashDays: 1 }),
  createBucketWithToken: (catalog) => catalog.createBucketWithToken(newToken('new', { bucket: 'new' })),
  grantToken: (catalog) => catalog.grantToken(bucketId, 'camera' as TokenId, newToken('granted', { limits })),
  rotateToken: (catalog) =>
    catalog.rotateToken(bucketId, 'camera' as TokenId, {
      ...newToken('successor'),
      replaces: 'limited' as TokenId,
      replacedUntil: now + day,
    }),
  addServiceToken: (catalog) => catalog.addServiceToken(newServiceToken('other service')),
  rotateServiceToken: (catalog) =>
    catalog.rotateServiceToken({
      ...newServiceToken('service successor'),
      replaces: 'service' as TokenId,
      replacedUntil: now + day,
    }),
  revokeToken: (catalog) => catalog.revokeToken('limited' as TokenId, now),
  restoreToken: (catalog) => catalog.restoreToken('limited' as TokenId),
  touchToken: (catalog) => catalog.touchToken('camera' as TokenId, now),
  addSigningKey: (catalog) =>
    catalog.addSigningKey({ id: 'second', secret: hashOf('second'), createdAt: now }, false),
  removeSigningKey: (catalog) => catalog.removeSigningKey('first'),
  createUpload: (catalog, sample) => catalog.createUpload(sample.newUpload),
  declareLength: (catalog, { ofUnknownLength }) => catalog.declareLength(ofUnknownLength.id, 10),
  moveUpload: (catalog, { ofUnknownLength }) => catalog.moveUpload(ofUnknownLength.id, 0, 5, now + day),
  beginParts: (catalog, { begun }) => catalog.beginParts(begun.id, 'multipart'),
  storeParts: (catalog, { begun }) =>
    catalog.storeParts(
      begun.id,
      { parts: [{ number: 1, size: 8, etag: 'e' }], piece: new Uint8Array(2) },
      receivedAt,
    ),
  finishUpload: (catalog, { received, added: [item] }) =>
    catalog.finishUpload(received.id, { ...withBytes(item), size: 10 }, now + day),
  removeUpload: (catalog, { received }) => catalog.removeUpload(received.id),
  createMultipart: (catalog, sample) => catalog.createMultipart(bucketId, sample.newMultipart),
  putPart: (catalog, { multipart, newPart }) =>
    catalog.putPart(bucketId, multipart.id, newPart, now + 2 * day),
  completeMultipart: (catalog, { multipart, part, added: [item] }) =>
    catalog.completeMultipart(
      bucketId,
      multipart.id,
      [part],
      {
        ...{ key: multipart.key, item: withBytes(item), etag: `${'0'.repeat(32)}-1`, parts: '[100]' },
        ...{ isPublic: false, headers: '{"metadata":{}}', modifiedAt: now },
      },
      { mayReplace: true, keptUntil: now + 2 * day },
    ),
  removeMultipart: (catalog, { multipart }) => catalog.removeMultipart(bucketId, multipart.id),
  putKey: (catalog, { added: [item] }) => catalog.putKey(bucketId, newKey('key 0', item), replacing, null),
  removeKey: (catalog) => catalog.removeKey(bucketId, 'key 0', {}),
  replaceItems: (catalog, { keyed: [replaced], kept: [successor] }) =>
    catalog.replaceItems(bucketId, [replaced.id], { [replaced.id]: successor.id }),
  removeKeys: (catalog) => catalog.removeKeys(bucketId, ['key 0', 'key 1']),
  editKey: (catalog) =>
    catalog.editKey(bucketId, 'key 0', { isPublic: true, headers: '{"metadata":{}}' }, {}),
  recordEvents: (catalog) =>
    catalog.recordEvents([{ action: 'link', by: service, bucketId, target: 'item' }]),
  removeEvents: (catalog) => catalog.removeEvents(now + 100 * day, 100),
  removeChanges: (catalog) => catalog.removeChanges(now + 100 * day, 100),
  checkHistory: (catalog) => catalog.checkHistory([{ bucketId, number: 1e15 }]),
  renewHistory: (catalog) => catalog.renewHistory(),
  addWebhook: (catalog, sample) =>
    catalog.addWebhook({
      ...{ id: sample.newWebhookId, bucketId, url: 'https://example.org/', kinds: [], batch: 1 },
      ...{ secret: 'whsec_2', createdAt: now },
    }),
  setWebhook: (catalog, { webhookId }) => catalog.setWebhook(bucketId, webhookId, { batch: 7, state: 'off' }),
  rotateWebhookSecret: (catalog, { webhookId }) =>
    catalog.rotateWebhookSecret(bucketId, webhookId, 'whsec_3', now + day),
  removeWebhook: (catalog, { webhookId }) => catalog.removeWebhook(bucketId, webhookId),
  claimWebhook: (catalog, { webhookId }) => catalog.claimWebhook(webhookId, 'owner', 1),
  releaseWebhooks: (catalog) => catalog.releaseWebhooks('owner'),
  recordAttempt: async (catalog, { webhookId }) => {
    const from = (await catalog.findWebhook(webhookId))?.position ?? null
    return catalog.recordAttempt({
      id: webhookId,
      owner: 'owner',
      from,
      outcome: { position: from ?? 0 },
      delivery,
    })
  },
  recordManualDelivery: (catalog, { webhookId }) =>
    catalog.recordManualDelivery(webhookId, { ...delivery, isManual: true }),
  addIntents: (catalog, { added }) => catalog.addIntents(idsOf(added), day),
  retireIntents: (catalog, { intent }) => catalog.retireIntents([intent]),
  clearIntents: (catalog, { intent }) => catalog.clearIntents([intent]),
  clearTombstones: (catalog, { removed }) => catalog.clearTombstones([removed.id]),
  claimBlobsIdentity: (catalog) => catalog.claimBlobsIdentity('identity'),
  claimDataIdentity: (catalog) => catalog.claimDataIdentity('0'.repeat(32)),
  storeAudit: (catalog) => catalog.storeAudit(true),
  storeSweptSizes: (catalog) => catalog.storeSweptSizes('0'.repeat(32)),
  recordUpkeep: (catalog) => catalog.recordUpkeep({ kind: 'fsck', finishedAt: now, faults: 0 }),
  setPreview: (catalog, { kept: [item] }) =>
    catalog.setPreview(bucketId, item.id, { thumbhash: hashOf('preview'), duration: 5, width: 1, height: 2 }),
  setTaken: (catalog, { kept: [item] }) => catalog.setTaken(bucketId, item.id, { time: now, offset: 60 }),
  editItem: (catalog, { kept: [item] }) =>
    catalog.editItem(bucketId, item.id, { filename: 'sea.jpg', labels: { album: 'c' } }, null),
  labelItems: (catalog, { kept }) => catalog.labelItems(bucketId, idsOf(kept), { album: 'd', camera: null }),
  addUsage: (catalog) =>
    catalog.addUsage([
      {
        ...{ bucketId, day: dayOf(now), downloadedBytes: 1 },
        ...{ listRequests: 1, downloadRequests: 1, uploadRequests: 1, otherRequests: 1 },
      },
    ]),
  removeUsage: (catalog) => catalog.removeUsage(now, 100),
  awaitEarlierWrites: (catalog) => catalog.awaitEarlierWrites(),
  checkWrites: (catalog) => catalog.checkWrites(),
}

const together: Make = (catalog, { added, more }) =>
  Promise.all([catalog.addItems(bucketId, stored(added)), catalog.addItems(bucketId, inBlobStore(more))])

/** One write of every kind, and writes that one transaction makes together. */
export const sampleChanges: Readonly<Record<string, Make>> = {
  ...ofEachKind,
  'uploads to one bucket': together,
}
