import type { ItemId } from '../core/media-id.ts'
import { recordEvents, removeEvents } from './audit-log/audit-log.ts'
import type { Audited } from './audit-log/events.ts'
import { createBucket, setBucket } from './buckets.ts'
import { editItem, setPreview } from './items.ts'
import { addItemsOnce, forgetRequests } from './keyed-requests.ts'
import { addKey, removeKey } from './keys.ts'
import type { AddedItem, BucketId, DeletedChunk, RemovedItems } from './records.ts'
import type { Work } from './statements.ts'
import {
  addToken,
  addUser,
  createBucketWithToken,
  grantToken,
  revokeToken,
  rotateToken,
  touchToken,
} from './tokens.ts'
import {
  addIntents,
  checkWrites,
  claimBlobsIdentity,
  clearIntents,
  clearTombstones,
  recordUpkeep,
  retireIntents,
  settle,
} from './upkeep.ts'
import {
  beginParts,
  createUpload,
  declareLength,
  finishUpload,
  moveUpload,
  removeUpload,
  storeParts,
} from './uploads.ts'

/** The changes that both engines make by the same statements, by kind. */
export const sharedChanges = {
  'create-bucket': createBucket,
  'set-bucket': setBucket,
  'add-token': addToken,
  'add-user': addUser,
  'create-bucket-with-token': createBucketWithToken,
  'grant-token': grantToken,
  'rotate-token': rotateToken,
  'revoke-token': revokeToken,
  'touch-token': touchToken,
  'add-key': addKey,
  'remove-key': removeKey,
  'add-items-once': addItemsOnce,
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
  'add-intents': addIntents,
  'retire-intents': retireIntents,
  'clear-intents': clearIntents,
  'clear-tombstones': clearTombstones,
  'claim-blobs-identity': claimBlobsIdentity,
  'record-upkeep': recordUpkeep,
  'set-preview': setPreview,
  'edit-item': editItem,
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
    output: RemovedItems
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

/** The maximum number of expired items that one change removes. */
export const expiryLimit = 500

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
