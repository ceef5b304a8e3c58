import { bucketDeleted } from '../../core/fault.ts'
import { type Amount, requireWithinQuota } from '../../core/quota.ts'
import { bucketColumnCount, bucketColumns, bucketOf } from '../buckets.ts'
import type { Change } from '../changes.ts'
import type { Bucket, BucketId } from '../records.ts'
import { integer, text } from '../rows.ts'
import type { Session } from './session.ts'

type Amounts = Pick<Bucket, 'items' | 'bytes' | 'reservedItems' | 'reservedBytes'>

/**
 * The rows of the buckets that a transaction changes, locked until it ends. Because of the lock, the state here is the state in
 * the database, and quotas need no further reads.
 */
export interface LockedBuckets {
  has(id: BucketId): boolean
  /** Throws Fault `token-revoked` if there is no such bucket. */
  get(id: BucketId): Bucket
  /** Requires that the items, all reservations and `more` fit. Throws Fault `quota-exceeded`. */
  requireRoom(id: BucketId, more: Amount): void
  /** Records a change that the transaction makes. */
  add(id: BucketId, change: Partial<Amounts>): void
  remove(id: BucketId): void
  /** Returns a function that restores the state at this call, after a rollback to a savepoint. */
  save(): () => void
}

/** Buckets by id, by the id of one of their uploads, or by name. */
interface BucketKeys {
  readonly ids: readonly number[]
  readonly uploads: readonly string[]
  readonly names: readonly string[]
}

/** Locks the buckets in the order of their ids, so that two transactions never wait for each other. */
export async function lockBuckets(
  session: Session,
  { ids, uploads, names }: BucketKeys,
): Promise<LockedBuckets> {
  const rows = await session.run(
    `SELECT ${bucketColumns}, id FROM buckets WHERE id = ANY ($1::int8[]
      || ARRAY(SELECT bucket_id FROM uploads WHERE id = ANY ($2::text[]))
      || ARRAY(SELECT id FROM buckets WHERE name = ANY ($3::text[])))
    ORDER BY id FOR UPDATE`,
    ids,
    uploads,
    names,
  )
  let states = new Map(rows.map((row) => [integer(row, bucketColumnCount) as BucketId, bucketOf(row)]))

  const get = (id: BucketId): Bucket => {
    const bucket = states.get(id)
    if (!bucket) throw bucketDeleted()
    return bucket
  }
  return {
    has: (id) => states.has(id),
    get,
    requireRoom(id, more) {
      const bucket = get(id)
      const { items, bytes, reservedItems, reservedBytes } = bucket
      requireWithinQuota(bucket, { items: items + reservedItems, bytes: bytes + reservedBytes }, more)
    },
    add(id, { items = 0, bytes = 0, reservedItems = 0, reservedBytes = 0 }) {
      const bucket = get(id)
      states.set(id, {
        ...bucket,
        items: bucket.items + items,
        bytes: bucket.bytes + bytes,
        reservedItems: bucket.reservedItems + reservedItems,
        reservedBytes: bucket.reservedBytes + reservedBytes,
      })
    },
    remove: (id) => void states.delete(id),
    save() {
      const saved = new Map(states)
      return () => {
        states = saved
      }
    },
  }
}

/** The keys of the buckets that the changes need. */
export function bucketKeysOf(changes: readonly Change[]): BucketKeys {
  const ids = new Set<number>()
  const uploads = new Set<string>()
  const names = new Set<string>()
  for (const change of changes) {
    if (isKind(change, 'delete-bucket-chunk')) ids.add(change.input.id)
    else if (change.input !== null && 'bucketId' in change.input) ids.add(change.input.bucketId)
    else if (isKind(change, 'set-bucket') || isKind(change, 'add-token')) names.add(change.input.bucket)
    else if (
      isKind(change, 'declare-length') ||
      isKind(change, 'move-upload') ||
      isKind(change, 'store-parts') ||
      isKind(change, 'finish-upload') ||
      isKind(change, 'remove-upload')
    )
      uploads.add(change.input.id)
  }
  return { ids: [...ids], uploads: [...uploads], names: [...names] }
}

/** The changes of each bucket. */
export async function groupByBucket(session: Session, changes: readonly Change[]): Promise<Change[][]> {
  const rows = await session.run(
    'SELECT id, bucket_id FROM uploads WHERE id = ANY ($1::text[])',
    bucketKeysOf(changes).uploads,
  )
  const bucketOfUpload = new Map(rows.map((row) => [text(row, 0), integer(row, 1)]))
  const keyOf = (change: Change) => {
    const { ids, uploads, names } = bucketKeysOf([change])
    const [key = null] = [...ids, ...uploads.map((id) => bucketOfUpload.get(id) ?? id), ...names]
    return key
  }
  return [...Map.groupBy(changes, keyOf).values()]
}

const isKind = <K extends Change['kind']>(change: Change, kind: K): change is Change<K> =>
  change.kind === kind
