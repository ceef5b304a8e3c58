import { beforeKey, endOf, itemDigits, itemKeyOf, itemsPrefix } from '../../../core/object-key-rules.ts'
import { isLive } from '../items/items.ts'
import type { BucketId } from '../records.ts'
import {
  all,
  bytes,
  eachEngine,
  integer,
  itemIdOf,
  type Query,
  type Row,
  text,
  textOrNull,
} from '../statements.ts'
import { hasUnkeyed, keyedBlock, nextUnkeyedBlock } from './keyed-counts.ts'
import { etagOfItem, keyTextOf } from './object-keys.ts'

// Lists of the keys of a bucket in the order of their bytes. Items without a key are in one range of it.

/** Which keys a list has. */
export interface KeySelection {
  readonly prefix: string
  /** Keys that are equal up to a delimiter after the prefix are one entry; null for none. */
  readonly delimiter: string | null
  /** The key, or the beginning of keys that was one entry, after which the list begins; null for its start. */
  readonly after: string | null
  readonly limit: number
  /** Whether items without a key are left out. */
  readonly isKeyedOnly?: boolean
}

/** What a list has of the object with a key. */
export interface ListedKey {
  readonly key: string
  /** Bytes. */
  readonly size: number
  readonly etag: string
  /** JSON; null for an item without a key of its own. */
  readonly headers: string | null
  /** Milliseconds since 1970. */
  readonly modifiedAt: number
}

/** A key, or a text with which several begin. */
type KeyEntry = ListedKey | { readonly prefix: string }

/** What a key has up to the first delimiter after the prefix; null for an entry of its own. */
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
  const { prefix, limit, isKeyedOnly = false } = selection
  const delimiter = selection.delimiter || null
  const entries: KeyEntry[] = []
  const start = startOf(selection)
  const end = endOf(prefix)
  const [itemsStart, itemsEnd] = [Buffer.from(itemsPrefix), endOf(itemsPrefix)]
  const meetsItems =
    !isKeyedOnly && isBefore(start, itemsEnd) && isBefore(itemsStart, end) && (yield* hasUnkeyed(bucketId))
  // Keys before those of items, these, and the others.
  const ranges = meetsItems
    ? [
        { read: readKeys, from: start, end: itemsStart },
        { read: readItems, from: itemsStart, end: itemsEnd },
        { read: readKeys, from: itemsEnd, end },
      ]
    : [{ read: readKeys, from: start, end }]
  let place = start
  for (const { read, from, end: rangeEnd } of ranges) {
    if (isBefore(place, from)) place = from
    const to = isBefore(rangeEnd, end) ? rangeEnd : end
    const wanted = limit - entries.length
    if (wanted === 0) break
    if (!isBefore(place, to)) continue
    const found = yield* read(bucketId, { from: place, to, limit: wanted, now }, { prefix, delimiter })
    entries.push(...found)
    const last = found.at(-1)
    // An entry may end in a later range.
    if (last !== undefined) place = 'key' in last ? Buffer.from(last.key) : endOf(last.prefix)
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

interface KeyRange {
  /** Exclusive. */
  readonly from: Buffer
  readonly to: Buffer
  readonly limit: number
  readonly now: number
}

/** What makes one entry of several keys. */
type Grouping = Pick<KeySelection, 'prefix' | 'delimiter'>

/** The first keys of a range, which show whether its keys are entries of their own. */
const probe = 16

/**
 * Entries of keys. Keys are read in one range, which takes less time than finding each one: until the first that has others with the same
 * beginning.
 */
function* readKeys(bucketId: BucketId, range: KeyRange, { prefix, delimiter }: Grouping): Query<KeyEntry[]> {
  if (delimiter === null) return yield* readKeyRange(bucketId, range)
  const keys: ListedKey[] = []
  let { from } = range
  for (const most of [probe, range.limit]) {
    const limit = Math.min(most, range.limit - keys.length)
    const found = yield* readKeyRange(bucketId, { ...range, from, limit })
    const first = found.findIndex(({ key }) => commonPrefixOf(key, prefix, delimiter) !== null)
    keys.push(...(first === -1 ? found : found.slice(0, first)))
    const last = keys.at(-1)
    if (last !== undefined) from = Buffer.from(last.key)
    if (first !== -1) break
    if (keys.length === range.limit || found.length < limit) return keys
  }
  const others = { ...range, from, limit: range.limit - keys.length }
  return [...keys, ...(yield* readEntries(bucketId, others, prefix, delimiter))]
}

/** What lists have of an object, besides its key. */
const listedColumns = 'item_size, etag, headers, modified_at'

/** The key in rows that begin with `keyColumns`. */
const readKey = (row: Row): string => (row[0] === null ? keyTextOf(row, 1) : text(row, 0))

/**
 * A key as text, which takes less time than its bytes, and its bytes where it is null: no text of PostgreSQL has a zero byte, as keys may.
 */
const keyColumns = (key: string) => ({
  sqlite: `CAST(${key} AS TEXT), NULL`,
  postgres: `CASE WHEN position('\\x00' IN ${key}) = 0 THEN convert_from(${key}, 'UTF8') END, CASE WHEN position('\\x00' IN ${key}) > 0 THEN ${key} END`,
})

const readListed = (row: Row, key: string): ListedKey => ({
  key,
  size: integer(row, 2),
  etag: text(row, 3),
  headers: text(row, 4),
  modifiedAt: integer(row, 5),
})

/** Whether the item of a key has not expired. Rows of items are read only if the bucket has some that have expired and are not removed yet. */
const isListed = (now: string) =>
  `(NOT EXISTS (SELECT 1 FROM buckets WHERE id = $1 AND next_expiry <= ${now})
    OR (SELECT ${isLive(now)} FROM items WHERE items.id = item_id))`

const readKeyRange = (bucketId: BucketId, { from, to, limit, now }: KeyRange): Query<ListedKey[]> =>
  all((row) => readListed(row, readKey(row)), keyRows, ...[bucketId, from, to, now, limit])

const keyRows = eachEngine(
  (engine) => `SELECT ${keyColumns('key')[engine]}, ${listedColumns} FROM object_keys
    WHERE bucket_id = $1 AND key > $2 AND key < $3 AND ${isListed('$4')} ORDER BY key LIMIT $5`,
)

/**
 * Finds entries one after another, of which each needs one key of the index, however many keys it has. Then it reads the rows of those that are
 * keys.
 */
const readEntries = (
  bucketId: BucketId,
  { from, to, limit, now }: KeyRange,
  prefix: string,
  delimiter: string,
): Query<KeyEntry[]> =>
  all(
    (row) => {
      const entry = readKey(row)
      return row[2] === null ? { prefix: entry } : readListed(row, entry)
    },
    entryRows,
    ...[bucketId, Buffer.byteLength(prefix), Buffer.from(delimiter), from, to, limit, now],
  )

/** Where the delimiter begins in a key after its first bytes, from 1; 0 if it is not there. */
const delimiterAt = {
  sqlite: 'instr(substr(found.key, $2 + 1), $3)',
  postgres: 'position($3::bytea IN substr(found.key, $2::int4 + 1))',
}

/** What all keys of an entry begin with, and 0xFF. */
const afterEntry = (entry: string) => ({
  sqlite: `CAST(${entry} || x'ff' AS BLOB)`,
  postgres: `${entry} || '\\xff'`,
})

const entryRows = eachEngine((engine) => {
  const at = delimiterAt[engine]
  const entry = `substr(found.key, 1, $2::int4 + ${at} - 1 + length($3::bytea))`
  // The first row is the place after which the entries are; the last one may have a later key, or none. PostgreSQL compares all keys of a page of the
  // index with the bounds of a scan, so each has one bound.
  return `WITH RECURSIVE found (number, key) AS (
      SELECT 0, $4::bytea
      UNION ALL
      SELECT number + 1, (SELECT object_keys.key FROM object_keys WHERE bucket_id = $1
        AND object_keys.key > CASE WHEN number = 0 OR ${at} = 0 THEN found.key ELSE ${afterEntry(entry)[engine]} END
        AND ${isListed('$7')} ORDER BY object_keys.key LIMIT 1)
      FROM found WHERE found.key < $5 AND number < $6::int4
    ), entries AS MATERIALIZED (
      SELECT number, CASE WHEN ${at} > 0 THEN ${entry} ELSE found.key END AS entry, ${at} = 0 AS is_key
      FROM found WHERE number > 0 AND found.key < $5
    )
    SELECT ${keyColumns('entry')[engine]}, ${listedColumns} FROM entries
    LEFT JOIN object_keys ON bucket_id = $1 AND key = CASE WHEN is_key THEN entry END ORDER BY number`
})

/** Items without a key, of which the derived keys are in a range. */
function* readItems(bucketId: BucketId, range: KeyRange, { prefix, delimiter }: Grouping): Query<KeyEntry[]> {
  const entries: KeyEntry[] = []
  let { from } = range
  // After an entry of many keys, another one is likely: one key is read. After keys, ever more are.
  let step = delimiter === null ? range.limit : 1
  while (entries.length < range.limit && isBefore(from, range.to)) {
    const limit = Math.min(step, range.limit - entries.length)
    const found = yield* readItemRange(bucketId, { ...range, from, limit })
    step *= 4
    for (const listed of found) {
      const key = Buffer.from(listed.key)
      if (!isBefore(from, key)) continue
      const common = commonPrefixOf(listed.key, prefix, delimiter)
      entries.push(common === null ? listed : { prefix: common })
      from = common === null ? key : endOf(common)
      if (common !== null) step = 1
    }
    if (found.length < limit) break
  }
  return entries
}

const itemColumns = 'id, size, extension, sha256, created_at, seq'

const readItem = (row: Row) => {
  const [id, seq] = [itemIdOf(row, 0), integer(row, 5)]
  return {
    seq,
    listed: {
      key: itemKeyOf(seq, { id, extension: textOrNull(row, 2) }),
      size: integer(row, 1),
      etag: etagOfItem({ sha256: bytes(row, 3) }),
      headers: null,
      modifiedAt: integer(row, 4),
    },
  }
}

function* readItemRange(bucketId: BucketId, { from, to, limit, now }: KeyRange): Query<ListedKey[]> {
  let seq = firstNumber(from)
  const last = firstNumber(to)
  const found: ListedKey[] = []
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
      readItem,
      `SELECT ${itemColumns} FROM items
        WHERE bucket_id = $1 AND seq >= $2 AND seq <= $3 AND ${isLive('$4')}
        AND NOT EXISTS (SELECT 1 FROM object_keys WHERE item_id = items.id) ORDER BY seq LIMIT $5`,
      ...[bucketId, seq, Math.min(last, blockEnd), now, limit],
    )
    for (const { listed } of rows) {
      const key = Buffer.from(listed.key)
      if (isBefore(from, key) && isBefore(key, to)) found.push(listed)
    }
    const end = rows.at(-1)
    seq = end === undefined || rows.length < limit ? blockEnd + 1 : end.seq + 1
    if (seq > last) break
  }
  return found.slice(0, limit)
}

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
