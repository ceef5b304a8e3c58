import type { ChangeType } from '@mediabucket/client/rules'
import type { ItemId } from '../../../core/ids.ts'
import type { AuditAction } from '../audit/audit-events.ts'
import { raisedRevision } from '../buckets.ts'
import type { BucketId } from '../records.ts'
import { eachEngine, type Work, write } from '../statements.ts'

// How changes of items are written to the feed (feed/feed.ts). Additions are written by the engines, because they are hot.

/** What happened to an item, and its number in the rows. Numbers are never reused. */
export const itemChangeKinds = {
  added: 1,
  edited: 2,
  trashed: 3,
  restored: 4,
  removed: 5,
  expired: 6,
  previewed: 7,
} as const satisfies Readonly<Record<ChangeType, number>>

export type ItemChangeKind = keyof typeof itemChangeKinds

export const isItemChangeKind = (name: string): name is ItemChangeKind => Object.hasOwn(itemChangeKinds, name)

/** What the removal and the restoring of items are in the feed. */
export const changeKindOf = {
  delete: 'removed',
  trash: 'trashed',
  restore: 'restored',
  purge: 'removed',
  expire: 'expired',
} as const satisfies Partial<Record<AuditAction, ItemChangeKind>>

/** The revision of the bucket is the number of its last change. */
const raise = eachEngine(
  (engine) => `UPDATE buckets SET revision = ${raisedRevision[engine]} + $2 - 1 WHERE id = $1`,
)

/** Of the last change of a row that a backup may have copied before; only SQLite has this column. */
export const markEdited = {
  sqlite: ', edited = (SELECT revision + 1 FROM buckets WHERE buckets.id = bucket_id)',
  postgres: '',
} as const

const changeColumns = 'bucket_id, number, kind, item_id, time'

const insertion = {
  sqlite: `INSERT INTO changes (${changeColumns})
    SELECT buckets.id, revision - json_array_length($3) + 1 + item.key, $2, item.value, $4
    FROM buckets, json_each($3) AS item WHERE buckets.id = $1`,
  postgres: `INSERT INTO changes (${changeColumns})
    SELECT buckets.id, revision - cardinality($3::text[]) + item.number, $2::int4, item.id, $4::int8
    FROM buckets, unnest($3::text[]) WITH ORDINALITY AS item (id, number) WHERE buckets.id = $1`,
}

/** Raises the revision of a bucket and adds its changes to the feed. To be called within the transaction that makes them, with the bucket locked. */
export function* recordChanges(
  bucketId: BucketId,
  kind: ItemChangeKind,
  ids: readonly ItemId[],
): Work<undefined> {
  if (ids.length === 0) return
  yield* write(raise, bucketId, ids.length)
  yield* write(insertion, bucketId, itemChangeKinds[kind], ids, Date.now())
}
