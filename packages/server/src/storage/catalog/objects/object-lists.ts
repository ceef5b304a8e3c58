import { itemDigits, itemsPrefix } from '../../../core/object-key-rules.ts'
import { itemRowColumns } from '../items/item-rows.ts'
import { isLive } from '../items/items.ts'
import type { BucketId } from '../records.ts'
import { all, integer, type Query } from '../statements.ts'
import { keyedBlock, nextUnkeyedBlock } from './keyed-counts.ts'
import { type KeyedItem, keyRows, keyTextOf, listedColumns, readListed } from './object-keys.ts'

// Lists of the keys of a bucket in the order of their bytes. Items without a key are in one range of it.

/** Which keys a list has. */
export interface KeySelection {
  readonly prefix: string
  /** Keys that are equal up to a delimiter after the prefix are one entry; null for none. */
  readonly delimiter: string | null
  /** The key, or the beginning of keys that was one entry, after which the list begins; null for its start. */
  readonly after: string | null
  readonly limit: number
}

/** An item, or a text with which the keys of several begin. */
type KeyEntry = KeyedItem | { readonly prefix: string }

/** No byte of UTF-8, and greater than all of them. */
const afterAll = Buffer.of(0xff)

/** All keys that begin with this text are before it, and all later ones after it. */
const endOf = (prefix: string): Buffer => Buffer.concat([Buffer.from(prefix), afterAll])

export function commonPrefixOf(key: string, prefix: string, delimiter: string | null): string | null {
  if (delimiter === null || delimiter === '' || !key.startsWith(prefix)) return null
  const at = key.indexOf(delimiter, prefix.length)
  return at === -1 ? null : key.slice(0, at + delimiter.length)
}

const isBefore = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) < 0

/** Entries of a bucket, without items that have expired at `now`. */
export function* listKeys(
  bucketId: BucketId,
  selection: KeySelection,
  now = Date.now(),
): Query<readonly KeyEntry[]> {
  const { prefix, after, limit } = selection
  const delimiter = selection.delimiter || null
  const entries: KeyEntry[] = []
  const start = startOf(selection)
  const end = endOf(prefix)
  const [itemsStart, itemsEnd] = [Buffer.from(itemsPrefix), endOf(itemsPrefix)]
  // Keys before those of items, these, and the others. An entry may end in a later one.
  const ranges = [
    { read: readKeys, from: start, end: itemsStart },
    { read: readItems, from: itemsStart, end: itemsEnd },
    { read: readKeys, from: itemsEnd, end },
  ]
  let place = start
  for (const { read, from, end: rangeEnd } of ranges) {
    if (isBefore(place, from)) place = from
    const to = isBefore(rangeEnd, end) ? rangeEnd : end
    // After an entry of many keys, another one is likely: one key is read. After keys, ever more are.
    let step = delimiter === null ? limit : 1
    if (delimiter !== null && read === readKeys && isBefore(place, to)) {
      const wanted = limit + 1 - entries.length
      const found = yield* readEntries(bucketId, { from: place, to, limit: wanted, now }, prefix, delimiter)
      for (const entry of found) if (!('prefix' in entry) || entry.prefix !== after) entries.push(entry)
      if (entries.length >= limit) return entries.slice(0, limit)
      const last = found.at(-1)
      if (last !== undefined) place = 'item' in last ? Buffer.from(last.key) : endOf(last.prefix)
    }
    while (entries.length < limit && isBefore(place, to)) {
      const wanted = Math.min(step, limit - entries.length)
      const found: readonly KeyedItem[] = yield* read(bucketId, { from: place, to, limit: wanted, now })
      let next: Buffer | null = null
      step *= 4
      for (const keyed of found) {
        const bytes = Buffer.from(keyed.key)
        if (next !== null && isBefore(bytes, next)) continue
        const common = commonPrefixOf(keyed.key, prefix, delimiter)
        // A list that goes on after an entry of several keys does not repeat it.
        if (common === null) entries.push(keyed)
        else if (common !== after) entries.push({ prefix: common })
        next = common === null ? bytes : endOf(common)
        if (common !== null) step = 1
        if (entries.length === limit) return entries
      }
      if (next !== null) place = next
      if (found.length < wanted) break
    }
  }
  return entries
}

/** The bytes after which the keys of a list are. A key that is equal to the prefix is one of them. */
function startOf({ prefix, delimiter, after }: KeySelection): Buffer {
  const first = beforeKey(prefix)
  if (after === null) return first
  const last = commonPrefixOf(after, prefix, delimiter) === after ? endOf(after) : Buffer.from(after)
  return isBefore(last, first) ? first : last
}

/** Bytes before a key and after all keys before it, as far as keys are well-formed. */
function beforeKey(key: string): Buffer {
  const bytes = Buffer.from(key)
  const last = bytes.at(-1)
  if (last === undefined) return bytes
  if (last === 0) return bytes.subarray(0, -1)
  bytes[bytes.length - 1] = last - 1
  return Buffer.concat([bytes, Buffer.alloc(1_025, 0xff)])
}

interface KeyRange {
  /** Exclusive. */
  readonly from: Buffer
  readonly to: Buffer
  readonly limit: number
  readonly now: number
}

const readKeys = (bucketId: BucketId, { from, to, limit, now }: KeyRange): Query<KeyedItem[]> =>
  all(
    readListed,
    `SELECT ${listedColumns} FROM (${keyRows} WHERE bucket_id = $1 AND key > $2 AND key < $3) AS keyed
      JOIN items ON items.id = keyed.item_id AND ${isLive('$4')} ORDER BY object_key LIMIT $5`,
    ...[bucketId, from, to, now, limit],
  )

/** Of PostgreSQL, which reads all entries in one round trip. SQLite has none: the loop of its caller reads them. */
const readEntries = (
  bucketId: BucketId,
  { from, to, limit, now }: KeyRange,
  prefix: string,
  delimiter: string,
): Query<KeyEntry[]> =>
  all(
    (row) => (integer(row, 0) === 1 ? { prefix: keyTextOf(row, 1) } : readListed(row.slice(2))),
    entryRows,
    ...[bucketId, Buffer.byteLength(prefix), Buffer.from(delimiter), from, to, limit, now],
  )

const entryRows = {
  sqlite: null,
  postgres: `SELECT is_prefix, entry, ${listedColumns}
    FROM list_entries($1, $2::int4, $3, $4, $5, $6::int4, $7) WITH ORDINALITY AS listed (entry, is_prefix, number)
    LEFT JOIN (SELECT bucket_id AS keyed_bucket, item_id, key AS object_key, etag, parts, public AS is_public, headers, modified_at FROM object_keys) AS keyed
      ON keyed_bucket = $1 AND object_key = entry AND is_prefix = 0
    LEFT JOIN items ON items.id = keyed.item_id ORDER BY number`,
}

/** Items without a key whose derived keys are in a range. */
function* readItems(bucketId: BucketId, { from, to, limit, now }: KeyRange): Query<KeyedItem[]> {
  let seq = firstNumber(from)
  const last = firstNumber(to)
  const found: KeyedItem[] = []
  while (found.length < limit) {
    const block = yield* nextUnkeyedBlock(
      bucketId,
      Math.floor(seq / keyedBlock),
      Math.floor(last / keyedBlock),
    )
    if (block === null) break
    seq = Math.max(seq, block * keyedBlock)
    const blockEnd = (block + 1) * keyedBlock - 1
    const rows = yield* all(
      (row) => ({ seq: Number(row[seqColumn]), keyed: readListed(row) }),
      `SELECT ${itemRowColumns}, NULL, NULL, NULL, NULL, NULL, NULL FROM items
        WHERE bucket_id = $1 AND seq >= $2 AND seq <= $3 AND ${isLive('$4')}
        AND NOT EXISTS (SELECT 1 FROM object_keys WHERE item_id = items.id) ORDER BY seq LIMIT $5`,
      ...[bucketId, seq, Math.min(last, blockEnd), now, limit],
    )
    for (const { keyed } of rows) {
      const key = Buffer.from(keyed.key)
      if (isBefore(from, key) && isBefore(key, to)) found.push(keyed)
    }
    const end = rows.at(-1)
    seq = end === undefined || rows.length < limit ? blockEnd + 1 : end.seq + 1
    if (seq > last) break
  }
  return found.slice(0, limit)
}

const seqColumn = itemRowColumns.split(', ').length - 1

/** The lowest number of which the derived key may follow these bytes. */
function firstNumber(place: Buffer): number {
  const text = place.toString('latin1')
  if (text < itemsPrefix) return 0
  if (!text.startsWith(itemsPrefix)) return Number.MAX_SAFE_INTEGER
  const rest = text.slice(itemsPrefix.length)
  const [digits = ''] = /^\d{0,12}/.exec(rest) ?? []
  const least = Number(digits.padEnd(itemDigits, '0'))
  const follows = rest.charAt(digits.length)
  return digits.length < itemDigits && follows > '9' ? least + 10 ** (itemDigits - digits.length) : least
}

export const reads = { listKeys }
