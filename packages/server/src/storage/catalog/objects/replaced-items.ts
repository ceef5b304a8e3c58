import type { ItemId } from '../../../core/ids.ts'
import { isObject, parseJson } from '../../../core/json.ts'
import { isPath } from '../../../core/names.ts'
import type { Actor } from '../../../core/token-rules.ts'
import { auditedWritesOf, ofBucket } from '../declarations.ts'
import { itemRowColumns, readItemRow } from '../items/item-rows.ts'
import { isLive } from '../items/items.ts'
import { removeItems } from '../items/trash.ts'
import type { BucketId, RemovedItems } from '../records.ts'
import {
  all,
  bytes,
  first,
  integer,
  itemIdOf,
  type Row,
  record,
  text,
  type Work,
  write,
} from '../statements.ts'
import { countKey } from './keyed-counts.ts'
import { etagOfItem, keyTextOf } from './object-keys.ts'

// Items that are replaced by others of their bucket, as a synchronization does it: their keys pass to these.

/** The item that replaces another one, by the id of that one. */
type Successors = Readonly<Record<string, ItemId>>

/** What passes to another item with a key. */
interface PassedKey {
  readonly key: Uint8Array
  readonly path: string
  readonly itemId: ItemId
  readonly isPublic: boolean
  /** JSON. */
  readonly headers: string
  readonly contentType: string
}

const readPassed = (row: Row): PassedKey => ({
  key: bytes(row, 0),
  path: keyTextOf(row, 0),
  itemId: itemIdOf(row, 1),
  isPublic: integer(row, 2) === 1,
  headers: text(row, 3),
  contentType: text(row, 4),
})

const keysOfRemoved = `SELECT key, item_id, public, headers, content_type FROM object_keys JOIN items ON items.id = item_id
  WHERE object_keys.bucket_id = $1 AND item_id = ANY ($2::text[])`

/**
 * Removes items as removeItems. The key of one that has a successor passes to it in the same transaction, if the successor is in the bucket, has no key,
 * and has the key as its path (docs/interface.md OK10).
 */
export function* replaceItems(
  bucketId: BucketId,
  ids: readonly ItemId[],
  successors: Successors,
  by?: Actor,
  now = Date.now(),
): Work<RemovedItems> {
  const keys = yield* all(readPassed, keysOfRemoved, bucketId, Object.keys(successors))
  const removed = yield* removeItems(bucketId, ids, by, now)
  const gone = new Set(removed.ids)
  for (const passed of keys) {
    const successor = successors[passed.itemId]
    // Other keys are no paths.
    if (successor !== undefined && gone.has(passed.itemId) && isPath(passed.path))
      yield* passKey(bucketId, passed, successor, by, now)
  }
  return removed
}

const successorRow = `SELECT ${itemRowColumns} FROM items WHERE bucket_id = $1 AND id = $2 AND path = $3 AND ${isLive('$4')}
  AND NOT EXISTS (SELECT 1 FROM object_keys WHERE item_id = items.id)`

function* passKey(
  bucketId: BucketId,
  { key, path, isPublic, headers, contentType }: PassedKey,
  successor: ItemId,
  by: Actor | undefined,
  now: number,
): Work<void> {
  const found = yield* first(readItemRow, successorRow, bucketId, successor, path, now)
  if (found === null) return
  const { item } = found
  const kept = headersFor(headers, item.contentType === contentType)
  yield* write(
    `INSERT INTO object_keys (bucket_id, key, item_id, item_size, etag, parts, public, headers, modified_at)
    VALUES ($1, $2, $3, $4, $5, NULL, $6, $7, $8)`,
    ...[bucketId, key, item.id, item.size, etagOfItem(item), isPublic ? 1 : 0, kept, now],
  )
  yield* countKey(bucketId, item.id)
  yield* record(by, (by) => ({ action: 'edit', by, bucketId, target: item.id, detail: { changed: ['key'] } }))
}

/** Headers that say how an object is delivered, and not what its bytes are. */
const passedHeaders = ['cacheControl', 'contentDisposition', 'contentLanguage', 'expires']

/**
 * The headers of a key for other bytes, as JSON. The checksum, the encoding and the metadata are those of the earlier bytes: programs store times and hashes
 * of the file as metadata.
 */
function headersFor(stored: string, hasSameType: boolean): string {
  const headers = parseJson(stored)
  const names = new Set([...passedHeaders, ...(hasSameType ? ['contentType'] : [])])
  const kept = isObject(headers) ? Object.entries(headers).filter(([name]) => names.has(name)) : []
  return JSON.stringify({ ...Object.fromEntries(kept), metadata: {} })
}

export const writes = auditedWritesOf({ replaceItems }, { locks: ofBucket, changesItems: true })
