import type { Actor } from '../core/actor.ts'
import type { MediaId } from '../core/media-id.ts'
import type { UploadId } from '../core/upload-id.ts'
import type { AddedContent, AuditEvent } from './audit-log/events.ts'
import type { SigningKey } from './key-catalog.ts'
import type { IndexedNames, NameTask } from './names/index-tasks.ts'
import type {
  BucketId,
  BucketSettings,
  DeletedChunk,
  EditedMedia,
  IdempotentRequest,
  ItemEdit,
  ItemTexts,
  NewMedia,
  NewPreview,
  RemovedMedia,
  TokenId,
  UpkeepRun,
} from './records.ts'
import type { GrantedToken, NewToken, TokenSuccessor } from './token-records.ts'
import type { NewUpload, OffsetMove, StoredParts } from './upload-records.ts'

/** Who makes a change; left out if the audit log is off. */
export interface Audited {
  readonly by?: Actor
}

/**
 * Every change of the catalog, by kind; the methods of Catalog describe them. Inputs and outputs are plain data,
 * because those of SQLite are sent to and from the writer thread.
 */
export interface Changes {
  'add-media': { input: { bucketId: BucketId; items: readonly AddedContent[] }; output: undefined }
  'add-media-once': {
    input: { bucketId: BucketId; items: readonly AddedContent[]; request: IdempotentRequest }
    output: readonly NewMedia[]
  }
  'forget-requests': { input: { now: number }; output: number }
  'remove-media': {
    input: Audited & { bucketId: BucketId; ids: readonly MediaId[]; now: number }
    output: RemovedMedia
  }
  'restore-media': {
    input: Audited & { bucketId: BucketId; ids: readonly MediaId[]; now: number }
    output: readonly MediaId[]
  }
  'expire-items': {
    input: Audited & { bucketId: BucketId; now: number; limit: number }
    output: RemovedMedia
  }
  'purge-media': { input: Audited & { bucketId: BucketId; ids: readonly MediaId[] }; output: RemovedMedia }
  'set-preview': { input: { bucketId: BucketId; id: MediaId; preview: NewPreview }; output: undefined }
  'edit-media': {
    input: Audited & { bucketId: BucketId; id: MediaId; edit: ItemEdit; expected: ItemTexts | null }
    output: EditedMedia
  }
  'add-intents': { input: { ids: readonly MediaId[]; lifetime: number }; output: undefined }
  'retire-intents': { input: { ids: readonly MediaId[] }; output: MediaId[] }
  'clear-intents': { input: { ids: readonly MediaId[] }; output: undefined }
  'clear-tombstones': { input: { ids: readonly MediaId[] }; output: undefined }
  'create-upload': { input: NewUpload; output: undefined }
  'declare-length': { input: { id: UploadId; length: number }; output: boolean }
  'move-upload': { input: { id: UploadId; from: number; to: number; expiresAt: number }; output: boolean }
  'begin-parts': { input: { id: UploadId; multipart: string }; output: string | null }
  'store-parts': { input: { id: UploadId; stored: StoredParts; move: OffsetMove }; output: boolean }
  'finish-upload': {
    input: { id: UploadId; added: AddedContent; expiresAt: number; received: number }
    output: boolean
  }
  'remove-upload': { input: { id: UploadId; onlyUnfinished: boolean }; output: boolean }
  'create-bucket': {
    input: Audited & { name: string; settings: Partial<BucketSettings>; createdAt: number }
    output: boolean
  }
  'delete-bucket-chunk': {
    input: Audited & { id: BucketId; limit: number; now: number }
    output: DeletedChunk
  }
  'set-bucket': { input: Audited & { bucket: string; settings: Partial<BucketSettings> }; output: boolean }
  'add-token': { input: Audited & NewToken; output: boolean }
  'add-user': {
    input: Audited & { user: NewToken; newBucket: Partial<BucketSettings> | null }
    output: boolean
  }
  'create-bucket-with-token': { input: Audited & NewToken; output: boolean }
  'grant-token': {
    input: Audited & { bucketId: BucketId; grantor: TokenId; token: GrantedToken }
    output: undefined
  }
  'rotate-token': {
    input: Audited & { bucketId: BucketId; grantor: TokenId; successor: TokenSuccessor }
    output: boolean
  }
  'revoke-token': { input: Audited & { id: TokenId; at: number }; output: boolean }
  'add-key': { input: Audited & { key: SigningKey; onlyFirst: boolean }; output: undefined }
  'remove-key': { input: Audited & { id: string }; output: boolean }
  'touch-token': { input: { id: TokenId; at: number }; output: undefined }
  'record-upkeep': { input: Audited & UpkeepRun; output: undefined }
  'record-events': { input: { events: readonly AuditEvent[] }; output: undefined }
  'remove-events': { input: { before: number; limit: number }; output: number }
  'claim-blobs-identity': { input: { identity: string }; output: string }
  'claim-names': { input: { bucketId: BucketId; now: number }; output: NameTask | null }
  'store-names': { input: IndexedNames; output: undefined }
  settle: { input: null; output: undefined }
  /** Changes nothing: checks that the catalog accepts changes. */
  check: { input: null; output: undefined }
}

export type ChangeKind = keyof Changes

export interface Change<K extends ChangeKind = ChangeKind> {
  readonly kind: K
  readonly input: Changes[K]['input']
}

export type Output<K extends ChangeKind = ChangeKind> = Changes[K]['output']

/** The maximum number of expired items that one change removes. */
export const expiryLimit = 500

/** Groups consecutive `add-media` changes of one bucket. Every other change is a group of its own. */
export function groupAddedMedia(changes: readonly Change[]): Change[][] {
  const groups: Change[][] = []
  let bucketId: BucketId | null = null
  for (const change of changes) {
    const next = addsMedia(change) ? change.input.bucketId : null
    if (next !== null && next === bucketId) groups.at(-1)?.push(change)
    else groups.push([change])
    bucketId = next
  }
  return groups
}

export const addsMedia = (change: Change): change is Change<'add-media'> => change.kind === 'add-media'
