import type { ItemId } from '../../../core/ids.ts'
import type { Actor } from '../../../core/token-rules.ts'
import type { AddedItem, BucketId, NewItem } from '../records.ts'

/** What happened, and its number in the rows. Numbers are never reused. */
export const auditActions = {
  upload: 1,
  download: 2,
  edit: 3,
  delete: 4,
  trash: 5,
  restore: 6,
  purge: 7,
  expire: 8,
  link: 9,
  'token-create': 20,
  'token-rotate': 21,
  'token-revoke': 22,
  'key-create': 23,
  'key-remove': 24,
  'webhook-create': 25,
  'webhook-set': 26,
  'webhook-rotate': 27,
  'webhook-delete': 28,
  'token-restore': 29,
  'bucket-create': 30,
  'bucket-set': 31,
  'bucket-delete': 32,
  backup: 40,
  fsck: 41,
  'downloads-lost': 42,
  'backup-restore': 43,
  migrate: 44,
} as const

export type AuditAction = keyof typeof auditActions

export const isAuditAction = (name: string): name is AuditAction => Object.hasOwn(auditActions, name)

/** Facts of an event that have no column: texts, numbers, and lists of texts. Never a secret. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

/** One event of the audit log, before it is stored. */
export interface AuditEvent {
  readonly action: AuditAction
  readonly by: Actor
  /** Null for events of the whole service. */
  readonly bucketId: BucketId | null
  /** The id of the item or the token; null for buckets and the service. */
  readonly target: string | null
  /** The name of the file, the token or the bucket. */
  readonly name?: string | null
  /** Of the file, in bytes. */
  readonly size?: number | null
  readonly detail?: AuditDetail
  /** Milliseconds since 1970; left out if the event is stored when it happens. */
  readonly time?: number
}

/** Items with the actor who adds them, for the audit log. */
export const addedBy = (items: readonly AddedItem[], by: Actor | undefined): readonly AddedItem[] =>
  by === undefined ? items : items.map((item) => ({ ...item, by }))

/** The events of items that are added to a bucket. */
export const uploadEvents = (bucketId: BucketId, added: readonly AddedItem[]): AuditEvent[] =>
  added.flatMap((item) => (item.by ? [uploadEvent(bucketId, item, item.by)] : []))

const uploadEvent = (bucketId: BucketId, { id, filename, size }: NewItem, by: Actor): AuditEvent => ({
  action: 'upload',
  by,
  bucketId,
  target: id,
  name: filename,
  size,
})

/** Of a file that is about to be removed. */
export interface RemovedFile {
  readonly name: string | null
  readonly size: number
}

/** The events of items that were removed, moved to the trash, or restored. */
export const itemEvents = (
  action: AuditAction,
  by: Actor,
  bucketId: BucketId,
  ids: readonly ItemId[],
  files: ReadonlyMap<ItemId, RemovedFile>,
): AuditEvent[] => ids.map((id) => ({ action, by, bucketId, target: id, ...files.get(id) }))

/** The data of this catalog are a copy, of a backup or of other engines. */
export const copyEvent = (
  action: 'backup-restore' | 'migrate',
  { items, faults }: { readonly items: number; readonly faults: number },
  by: Actor,
): AuditEvent => ({ action, by, bucketId: null, target: null, detail: { items, faults } })

/** The values of the columns of a row, but its number, in the order of `eventColumns`. `now` is the time of events without one. */
export const eventValues = (
  { action, by, bucketId, target, name, size, detail, time }: AuditEvent,
  now: number,
) =>
  [
    time ?? now,
    auditActions[action],
    bucketId,
    target,
    name ?? null,
    size ?? null,
    detail === undefined ? null : JSON.stringify(detail),
    actorKinds[by.kind],
    by.tokenId,
    by.subject,
    by.address,
    by.requestId,
  ] as const

export const eventColumns =
  'time, action, bucket_id, target, name, size, detail, actor, token_id, subject, address, request_id'

export const eventColumnCount = eventColumns.split(', ').length

/** The numbers of the kinds of actors in the rows. */
export const actorKinds = { client: 1, operator: 2, service: 3 } as const

export const isActorKind = (name: string): name is Actor['kind'] => Object.hasOwn(actorKinds, name)
