import { ExplainedError } from '../../core/faults.ts'
import type { ItemId } from '../../core/ids.ts'
import { type Actor, service } from '../../core/token-rules.ts'
import type { Audited } from './audit-events.ts'
import { type EventCatalog, recordEvents, removeEvents } from './audit-log.ts'
import {
  type BucketCatalog,
  createBucket,
  findBucketNamed,
  hasPrivateBuckets,
  listBuckets,
  setBucket,
} from './buckets.ts'
import type { ExpiredRest } from './expired-items.ts'
import { type FeedCatalog, removeChanges } from './feed.ts'
import type { FeedBell } from './feed-bell.ts'
import { type HistoryCatalog, openHistory, renewHistory, settleHistory } from './history.ts'
import {
  addItemsOnce,
  addLimitedItems,
  editItem,
  findKeyed,
  findRepeated,
  forgetRequests,
  type ItemCatalog,
  labelItems,
  setPreview,
} from './items.ts'
import { addSigningKey, type KeyCatalog, removeSigningKey } from './keys.ts'
import { type LabelCatalog, listLabels } from './labels.ts'
import type { AddedItem, BucketId, DeletedChunk, RemovedItems } from './records.ts'
import type { Query, Work } from './statements.ts'
import { listUnreadTaken, setTaken, type TakenTimeCatalog } from './taken-times.ts'
import {
  addToken,
  addUser,
  createBucketWithToken,
  findToken,
  grantToken,
  listTokens,
  newUserGrant,
  restoreToken,
  revokeToken,
  rotateToken,
  type TokenCatalog,
  tokensAfter,
  touchToken,
} from './tokens.ts'
import {
  expiredTrash,
  expiringBuckets,
  expiringTrashes,
  findBucketWithTrash,
  listTrash,
  type TrashCatalog,
} from './trash.ts'
import {
  addIntents,
  blobsIdentity,
  checkWrites,
  claimBlobsIdentity,
  clearIntents,
  clearTombstones,
  expiredIntents,
  findUnreferenced,
  isAudited,
  isNew,
  itemsNamed,
  listIntents,
  listTombstones,
  readStatistics,
  recordUpkeep,
  removableBlobs,
  retireIntents,
  settle,
  someWithBlobs,
  storeAudit,
  type UpkeepCatalog,
} from './upkeep.ts'
import {
  beginParts,
  createUpload,
  declareLength,
  expiredUploads,
  findUpload,
  findUploadParts,
  findUploadPieces,
  finishUpload,
  moveUpload,
  removeUpload,
  storeParts,
  type UploadCatalog,
  unfinishedUploads,
  uploadOfItem,
  uploadsOf,
} from './uploads.ts'
import {
  claimWebhook,
  dueWebhooks,
  listWebhookBuckets,
  listWebhookDeliveries,
  recordAttempt,
  recordManualDelivery,
  releaseWebhooks,
  type WebhookDeliveryCatalog,
} from './webhook-deliveries.ts'
import {
  addWebhook,
  findWebhook,
  listWebhooks,
  removeWebhook,
  rotateWebhookSecret,
  setWebhook,
  type WebhookCatalog,
} from './webhooks.ts'

/**
 * Stores buckets, items, tokens, keys and uploads. A change is durable when its promise resolves. A read returns every change whose promise
 * resolved before the read began, including changes of other processes. Throws Fault `catalog-busy`, `catalog-unavailable`, `overloaded` and
 * `storage-full`; any other error is unexpected. `by` is who makes a change, for the audit log: the service itself if it is left out.
 */
export interface Catalog
  extends ItemCatalog,
    TakenTimeCatalog,
    TrashCatalog,
    BucketCatalog,
    TokenCatalog,
    KeyCatalog,
    LabelCatalog,
    UploadCatalog,
    WebhookCatalog,
    WebhookDeliveryCatalog,
    EventCatalog,
    FeedCatalog,
    HistoryCatalog,
    UpkeepCatalog {
  /** A random value that identifies this data. A restore generates a new one, so that no revision identifies two states. */
  readonly epoch: string

  close(): Promise<void>
}

/** What each engine has written for itself: the reads that requests wait for, and how statements and changes are run. */
export interface CatalogEngine
  extends Pick<
    Catalog,
    | 'epoch'
    | 'findGrant'
    | 'page'
    | 'items'
    | 'itemsAt'
    | 'item'
    | 'servability'
    | 'content'
    | 'bucket'
    | 'signingKeys'
    | 'settle'
    | 'close'
  > {
  query<T>(query: Query<T>): Promise<T>
  /** Applies a change durably. */
  apply<K extends ChangeKind>(change: Change<K>): Promise<Output<K>>
  readonly bell: FeedBell
  /** Where the catalog is, so that a copy of it can be recognized; null if it cannot be known. */
  place(): Promise<string | null>
  /** Changes that are queued or in progress. */
  pendingCount(): number
  /** Size of the write-ahead log. Bytes. */
  logBytes(): number
}

/** What is the same for all engines: who makes the changes of a process for the audit log, and who learns of a renewal. */
export interface CatalogOptions {
  /** Makes the changes for which no actor is given. Without it, nothing is recorded in the audit log. */
  readonly actor?: Actor | null
  /** The actor if the last start of the service has turned the audit log on (storeAudit). */
  readonly actorIfAudited?: Actor | null
  /** Called when this process has noticed that the data have gone back (history.ts). */
  readonly onRenewal?: () => void
}

/** As createCatalog, with the actor of the options. */
export async function createCatalogFor(
  engine: CatalogEngine,
  { actor = null, actorIfAudited = null, onRenewal = () => {} }: CatalogOptions,
): Promise<Catalog> {
  const stored = actor === null && actorIfAudited !== null && (await engine.query(isAudited()))
  return createCatalog(engine, stored ? actorIfAudited : actor, await engine.place(), onRenewal)
}

/** `actor` makes the changes for which no actor is given. If it is null, nothing is recorded in the audit log. */
function createCatalog(
  engine: CatalogEngine,
  actor: Actor | null,
  openedAt: string | null,
  onRenewal: () => void,
): Catalog {
  const { query, apply, bell, place, pendingCount, logBytes, ...reads } = engine

  const signed = <Input extends object>(input: Input, by = actor): Input & { readonly by?: Actor } =>
    actor === null || by === null ? input : { ...input, by }
  const signedItems = (items: readonly AddedItem[], by = actor): readonly AddedItem[] =>
    actor === null || by === null ? items : items.map((item) => ({ ...item, by }))

  /** Applies a change of items of the bucket. */
  async function applyTo<K extends ChangeKind>(bucketId: BucketId, change: Change<K>): Promise<Output<K>> {
    const output = await apply(change)
    bell.ring(bucketId)
    return output
  }

  const history = openHistory({
    ...{ query, place, openedAt },
    settle: (input) => apply({ kind: 'settle-history', input }),
    renew: () => apply({ kind: 'renew-history', input: { announced: [] } }),
    ...{ onNotice: onRenewal, onRenewal: bell.check },
  })

  return {
    ...reads,
    ...history,
    addItems: (bucketId, items, by) =>
      applyTo(bucketId, { kind: 'add-items', input: { bucketId, items: signedItems(items, by) } }),
    addLimitedItems: (bucketId, items, limitedBy, by) =>
      applyTo(bucketId, {
        kind: 'add-limited-items',
        input: { bucketId, items: signedItems(items, by), limitedBy },
      }),
    addItemsOnce: (bucketId, items, request, by, limitedBy = null) =>
      applyTo(bucketId, {
        kind: 'add-items-once',
        input: { bucketId, items: signedItems(items, by), request, limitedBy },
      }),
    findRepeated: (request) => query(findRepeated(request)),
    findKeyed: (key, now) => query(findKeyed(key, now)),
    forgetRequests: (now) => apply({ kind: 'forget-requests', input: { now } }),
    removeItems: (bucketId, ids, by, now = Date.now()) =>
      applyTo(bucketId, { kind: 'remove-items', input: signed({ bucketId, ids, now }, by) }),
    listUnreadTaken: (after, limit) => query(listUnreadTaken(after, limit)),
    setTaken: (bucketId, id, taken) =>
      applyTo(bucketId, { kind: 'set-taken', input: { bucketId, id, taken } }),
    setPreview: (bucketId, id, preview) =>
      applyTo(bucketId, { kind: 'set-preview', input: { bucketId, id, preview } }),
    editItem: (bucketId, id, edit, expected, by) =>
      applyTo(bucketId, { kind: 'edit-item', input: signed({ bucketId, id, edit, expected }, by) }),

    labelItems: (bucketId, ids, changes, by) =>
      applyTo(bucketId, { kind: 'label-items', input: signed({ bucketId, ids, changes }, by) }),
    listLabels: (bucketId, key, limits) => query(listLabels(bucketId, key, limits)),

    listTrash: (bucketId, after, limit, now = Date.now()) => query(listTrash(bucketId, after, limit, now)),
    restoreItems: (bucketId, ids, by, now = Date.now()) =>
      applyTo(bucketId, { kind: 'restore-items', input: signed({ bucketId, ids, now }, by) }),
    purgeItems: (bucketId, ids, by) =>
      applyTo(bucketId, { kind: 'purge-items', input: signed({ bucketId, ids }, by) }),
    expiringTrashes: (now) => query(expiringTrashes(now)),
    expiredTrash: (bucketId, now, limit) => query(expiredTrash(bucketId, now, limit)),
    expiringBuckets: (now) => query(expiringBuckets(now)),
    expireItems: (bucketId, now = Date.now()) =>
      applyTo(bucketId, {
        kind: 'expire-items',
        input: signed({ bucketId, now, limit: expiryLimit }, actor && service),
      }),

    findBucketNamed: (name) => query(findBucketNamed(name)),
    findBucketWithTrash: (id) => query(findBucketWithTrash(id)),
    listBuckets: () => query(listBuckets()),
    hasPrivateBuckets: async () => (await query(hasPrivateBuckets())) ?? false,
    createBucket: (name, settings, createdAt, by) =>
      apply({ kind: 'create-bucket', input: signed({ name, settings, createdAt }, by) }),
    setBucket: (bucket, settings, by) =>
      apply({ kind: 'set-bucket', input: signed({ bucket, settings }, by) }),
    deleteBucketChunk: (id, limit, now, by) =>
      applyTo(id, { kind: 'delete-bucket-chunk', input: signed({ id, limit, now }, by) }),

    newUserGrant: (bucket, id) => query(newUserGrant(bucket, id)),
    findToken: (id) => query(findToken(id)),
    tokensAfter: (bucketId, after, limit) => query(tokensAfter(bucketId, after, limit)),
    listTokens: (bucket) => query(listTokens(bucket)),
    addToken: (token, by) => apply({ kind: 'add-token', input: signed(token, by) }),
    addUser: (user, newBucket, by) => apply({ kind: 'add-user', input: signed({ user, newBucket }, by) }),
    createBucketWithToken: (token, by) =>
      apply({ kind: 'create-bucket-with-token', input: signed(token, by) }),
    grantToken: (bucketId, grantor, token, by) =>
      apply({ kind: 'grant-token', input: signed({ bucketId, grantor, token }, by) }),
    rotateToken: (bucketId, grantor, successor, by) =>
      apply({ kind: 'rotate-token', input: signed({ bucketId, grantor, successor }, by) }),
    revokeToken: (id, at, by) => apply({ kind: 'revoke-token', input: signed({ id, at }, by) }),
    restoreToken: (id, by) => apply({ kind: 'restore-token', input: signed({ id }, by) }),
    touchToken: (id, at) => apply({ kind: 'touch-token', input: { id, at } }),
    addSigningKey: (key, onlyFirst) => apply({ kind: 'add-key', input: signed({ key, onlyFirst }) }),
    removeSigningKey: (id) => apply({ kind: 'remove-key', input: signed({ id }) }),

    findUpload: (id) => query(findUpload(id)),
    uploadOfItem: (id) => query(uploadOfItem(id)),
    findUploadParts: (id) => query(findUploadParts(id)),
    findUploadPieces: (id) => query(findUploadPieces(id)),
    unfinishedUploads: () => query(unfinishedUploads()),
    expiredUploads: (now, limit, after = null) => query(expiredUploads(now, limit, after)),
    uploadsOf: (bucketId) => query(uploadsOf(bucketId)),
    createUpload: (upload) => apply({ kind: 'create-upload', input: upload }),
    declareLength: (id, length) => apply({ kind: 'declare-length', input: { id, length } }),
    moveUpload: (id, from, to, expiresAt) =>
      apply({ kind: 'move-upload', input: { id, from, to, expiresAt } }),
    beginParts: (id, multipart) => apply({ kind: 'begin-parts', input: { id, multipart } }),
    storeParts: (id, stored, move) => apply({ kind: 'store-parts', input: { id, stored, move } }),
    async finishUpload(id, added, expiresAt, by, received = added.size) {
      const input = { id, added: signed(added, by), expiresAt, received }
      const isFinished = await apply({ kind: 'finish-upload', input })
      bell.check()
      return isFinished
    },
    removeUpload: (id, onlyUnfinished = false) =>
      apply({ kind: 'remove-upload', input: { id, onlyUnfinished } }),

    async recordEvents(events) {
      if (actor !== null) await apply({ kind: 'record-events', input: { events } })
    },
    removeEvents: (before, limit) => apply({ kind: 'remove-events', input: { before, limit } }),

    watchChanges: bell.watch,
    removeChanges: (before, limit) => apply({ kind: 'remove-changes', input: { before, limit } }),

    listWebhooks: (bucketId) => query(listWebhooks(bucketId ?? null)),
    findWebhook: (id) => query(findWebhook(id, Date.now())),
    addWebhook: (webhook, by) => apply({ kind: 'add-webhook', input: signed({ webhook }, by) }),
    setWebhook: (ofBucket, id, settings, by) =>
      apply({ kind: 'set-webhook', input: signed({ ofBucket, id, settings }, by) }),
    rotateWebhookSecret: (ofBucket, id, secret, replacedUntil, by) =>
      apply({ kind: 'rotate-webhook-secret', input: signed({ ofBucket, id, secret, replacedUntil }, by) }),
    removeWebhook: (ofBucket, id, by) =>
      apply({ kind: 'remove-webhook', input: signed({ ofBucket, id }, by) }),
    listWebhookDeliveries: (id) => query(listWebhookDeliveries(id)),
    listWebhookBuckets: () => query(listWebhookBuckets()),
    dueWebhooks: (owner, now, limit, except = []) => query(dueWebhooks(owner, now, limit, except)),
    claimWebhook: (id, owner, lifetime) => apply({ kind: 'claim-webhook', input: { id, owner, lifetime } }),
    releaseWebhooks: (owner) => apply({ kind: 'release-webhooks', input: { owner } }),
    recordAttempt: (attempt) => apply({ kind: 'record-attempt', input: signed(attempt, actor && service) }),
    recordManualDelivery: (id, delivery) =>
      apply({ kind: 'record-manual-delivery', input: { id, delivery } }),

    addIntents: (ids, lifetime) => apply({ kind: 'add-intents', input: { ids, lifetime } }),
    listIntents: () => query(listIntents()),
    expiredIntents: () => query(expiredIntents()),
    retireIntents: (ids) => apply({ kind: 'retire-intents', input: { ids } }),
    clearIntents: (ids) => apply({ kind: 'clear-intents', input: { ids } }),
    findUnreferenced: (ids) => query(findUnreferenced(ids)),
    itemsNamed: (ids) => query(itemsNamed(ids)),
    listTombstones: () => query(listTombstones()),
    removableBlobs: (ids) => query(removableBlobs(ids)),
    clearTombstones: (ids) => apply({ kind: 'clear-tombstones', input: { ids } }),
    blobsIdentity: () => query(blobsIdentity()),
    storeAudit: (isOn) => apply({ kind: 'store-audit', input: { isOn } }),
    claimBlobsIdentity: (identity) => apply({ kind: 'claim-blobs-identity', input: { identity } }),
    someWithBlobs: () => query(someWithBlobs()),
    statistics: async () => ({
      ...(await query(readStatistics())),
      waitingChanges: pendingCount(),
      logBytes: logBytes(),
    }),
    recordUpkeep: (run, by) => apply({ kind: 'record-upkeep', input: signed(run, by) }),
    isNew: () => query(isNew()),
    checkReads: async () => void (await query(isNew())),
    checkWrites: () => apply({ kind: 'check', input: null }),
  }
}

/** The changes that both engines make by the same statements, by kind. */
export const sharedChanges = {
  'create-bucket': createBucket,
  'set-bucket': setBucket,
  'add-token': addToken,
  'add-user': addUser,
  'create-bucket-with-token': createBucketWithToken,
  'grant-token': grantToken,
  'rotate-token': rotateToken,
  'restore-token': restoreToken,
  'revoke-token': revokeToken,
  'touch-token': touchToken,
  'add-key': addSigningKey,
  'remove-key': removeSigningKey,
  'add-items-once': addItemsOnce,
  'add-limited-items': addLimitedItems,
  'forget-requests': forgetRequests,
  'create-upload': createUpload,
  'declare-length': declareLength,
  'move-upload': moveUpload,
  'begin-parts': beginParts,
  'store-parts': storeParts,
  'finish-upload': finishUpload,
  'remove-upload': removeUpload,
  'record-events': recordEvents,
  'remove-events': removeEvents,
  'remove-changes': removeChanges,
  'settle-history': settleHistory,
  'renew-history': renewHistory,
  'add-webhook': addWebhook,
  'set-webhook': setWebhook,
  'rotate-webhook-secret': rotateWebhookSecret,
  'remove-webhook': removeWebhook,
  'claim-webhook': claimWebhook,
  'release-webhooks': releaseWebhooks,
  'record-attempt': recordAttempt,
  'record-manual-delivery': recordManualDelivery,
  'add-intents': addIntents,
  'retire-intents': retireIntents,
  'clear-intents': clearIntents,
  'clear-tombstones': clearTombstones,
  'claim-blobs-identity': claimBlobsIdentity,
  'store-audit': storeAudit,
  'record-upkeep': recordUpkeep,
  'set-preview': setPreview,
  'set-taken': setTaken,
  'edit-item': editItem,
  'label-items': labelItems,
  settle,
  /** Changes nothing: checks that the catalog accepts changes. */
  check: checkWrites,
}

type SharedFunctions = typeof sharedChanges
type SharedChanges = {
  [K in keyof SharedFunctions]: {
    input: Parameters<SharedFunctions[K]>[0]
    output: ReturnType<SharedFunctions[K]> extends Work<infer Result> ? Result : never
  }
}

/**
 * Every change of the catalog, by kind; the methods of Catalog describe them. Inputs and outputs are plain data,
 * because those of SQLite are sent to and from the writer thread.
 */
export interface Changes extends SharedChanges {
  'add-items': { input: { bucketId: BucketId; items: readonly AddedItem[] }; output: undefined }
  'remove-items': {
    input: Audited & { bucketId: BucketId; ids: readonly ItemId[]; now: number }
    output: RemovedItems
  }
  'restore-items': {
    input: Audited & { bucketId: BucketId; ids: readonly ItemId[]; now: number }
    output: readonly ItemId[]
  }
  'expire-items': {
    input: Audited & { bucketId: BucketId; now: number; limit: number }
    output: RemovedItems & ExpiredRest
  }
  'purge-items': { input: Audited & { bucketId: BucketId; ids: readonly ItemId[] }; output: RemovedItems }
  'delete-bucket-chunk': {
    input: Audited & { id: BucketId; limit: number; now: number }
    output: DeletedChunk
  }
}

export type ChangeKind = keyof Changes

export interface Change<K extends ChangeKind = ChangeKind> {
  readonly kind: K
  readonly input: Changes[K]['input']
}

export type Output<K extends ChangeKind = ChangeKind> = Changes[K]['output']

/** Whether a change is made by statements that an engine has yet to run. Other changes have been made by its own functions. */
export const isWork = <Result, Made>(made: Made | Work<Result>): made is Work<Result> =>
  typeof made === 'object' && made !== null && 'next' in made

/** The maximum number of expired items that one change removes. Other changes wait for it. */
export const expiryLimit = 100

/** Groups consecutive `add-items` changes of one bucket. Every other change is a group of its own. */
export function groupAddedItems(changes: readonly Change[]): Change[][] {
  const groups: Change[][] = []
  let bucketId: BucketId | null = null
  for (const change of changes) {
    const next = addsItems(change) ? change.input.bucketId : null
    if (next !== null && next === bucketId) groups.at(-1)?.push(change)
    else groups.push([change])
    bucketId = next
  }
  return groups
}

export const addsItems = (change: Change): change is Change<'add-items'> => change.kind === 'add-items'

/** This program cannot open the catalog; the message contains the reason and what to do. */
export class CatalogVersionError extends ExplainedError {
  override readonly name = 'CatalogVersionError'
}

/** The database of the catalog cannot be used; the message contains the reason and what to do. */
export class DatabaseError extends ExplainedError {
  override readonly name = 'DatabaseError'
}

/**
 * Why the data of a development version are refused, and how to move them. `commit` opens them, and its backups are restored
 * (storage/catalog/sqlite/transfer.ts).
 */
export const developmentText = (place: string, commit: '7ac0c5b8' | '661e7aee'): string =>
  `${place} was written by a development version: make a backup of it with mediabucket of commit ${commit}, and restore that with this version (docs/operations/upgrade.md).`
