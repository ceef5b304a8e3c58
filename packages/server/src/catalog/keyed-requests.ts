import { Fault } from '../core/fault.ts'
import { readNewItem } from './item-columns.ts'
import type { AddedItem, BucketId, IdempotentRequest, NewItem } from './records.ts'
import { bytes } from './rows.ts'
import { all, change, type EngineName, eachEngine, type Query, type Work } from './statements.ts'

// The items of the first request with each key. They are stored here because they may be deleted before the retry.

/** The columns of `readNewItem`, of an item in JSON. */
export const keyedItemColumns = (engine: EngineName): string => {
  const hash = "value ->> 'sha256'"
  return `value ->> 'id', value ->> 'filename', value ->> 'contentType', value ->> 'extension',
    (value ->> 'size')::int8, ${engine === 'sqlite' ? `unhex(${hash})` : `decode(${hash}, 'hex')`}, (value ->> 'width')::int4,
    (value ->> 'height')::int4, (value ->> 'createdAt')::int8, (value ->> 'expiresAt')::int8`
}
export const keyedItemColumnCount = 10

/** The items of a row of `keyed_requests`, and their order. */
export const keyedItems = {
  sqlite: { rows: 'json_each(items) AS item', order: 'item.key' },
  postgres: {
    rows: 'json_array_elements(items) WITH ORDINALITY AS item (value, number)',
    order: 'item.number',
  },
} as const

const repeated = eachEngine(
  (engine) => `SELECT ${keyedItemColumns(engine)}, fingerprint FROM keyed_requests, ${keyedItems[engine].rows}
    WHERE token_id = $1 AND keyed_requests.key = $2 AND expires_at > $3 ORDER BY ${keyedItems[engine].order}`,
)

/** The items of the first request with the key; null if the key is new or expired. Throws Fault `idempotency-key-reused`. */
export function* findRepeated({
  tokenId,
  key,
  fingerprint,
  now,
}: IdempotentRequest): Query<readonly NewItem[] | null> {
  const found = yield* all(
    (row) => ({ item: readNewItem(row), fingerprint: bytes(row, keyedItemColumnCount) }),
    repeated,
    ...[tokenId, key, now],
  )
  const [first] = found
  if (first === undefined) return null
  if (!Buffer.from(first.fingerprint).equals(fingerprint))
    throw new Fault('idempotency-key-reused', 'This Idempotency-Key was used for other files; use a new one.')
  return found.map(({ item }) => item)
}

/** Adds items once for each key, as ItemCatalog.addItemsOnce. */
export function* addItemsOnce({
  bucketId,
  items,
  request,
}: {
  readonly bucketId: BucketId
  readonly items: readonly AddedItem[]
  readonly request: IdempotentRequest
}): Work<readonly NewItem[]> {
  const first = yield* findRepeated(request)
  if (first !== null) return first
  const added = items.map(({ bytes: _bytes, by: _by, ...item }) => item)
  const size = added.reduce((sum, { size }) => sum + size, 0)
  yield (engine) => engine.requireRoom(bucketId, { items: items.length, bytes: size })
  yield (engine) => engine.append(bucketId, items)
  yield* storeRequest(request, added)
  return added
}

/** To be called within a transaction that holds the lock of the bucket. */
export function* storeRequest(
  { tokenId, key, fingerprint, expiresAt }: Omit<IdempotentRequest, 'now'>,
  items: readonly NewItem[],
): Work<void> {
  yield* change(
    `INSERT INTO keyed_requests (token_id, key, fingerprint, items, expires_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (token_id, key) DO UPDATE SET
      fingerprint = excluded.fingerprint, items = excluded.items, expires_at = excluded.expires_at`,
    ...[tokenId, key, fingerprint, serializeItems(items), expiresAt],
  )
}

/** The items of a request as JSON, with hashes in hexadecimal digits. */
const serializeItems = (items: readonly NewItem[]): string =>
  JSON.stringify(items.map((item) => ({ ...item, sha256: Buffer.from(item.sha256).toString('hex') })))

/** Removes the records that expired at `now` or before. Returns how many. */
export const forgetRequests = ({ now }: { readonly now: number }): Work<number> =>
  change('DELETE FROM keyed_requests WHERE expires_at <= $1', now)
