import { nameKey } from '@mediabucket/client/rules'
import type { ItemId } from '../../../core/ids.ts'
import { nameLine, nameSlot, namesPerRow } from '../../../core/names.ts'
import type { BucketId } from '../records.ts'
import {
  all,
  eachEngine,
  first,
  integer,
  type Query,
  text,
  textOrNull,
  type Work,
  write,
} from '../statements.ts'
import { markEdited } from './item-changes.ts'

const writeRow = `INSERT INTO item_names (bucket_id, slot, names) VALUES ($1, $2, $3)
  ON CONFLICT (bucket_id, slot) DO UPDATE SET names = excluded.names`
const removeRow = 'DELETE FROM item_names WHERE bucket_id = $1 AND slot = $2'

const setRow = (bucketId: BucketId, slot: number, names: string | null): Work<number> =>
  names === null ? write(removeRow, bucketId, slot) : write(writeRow, bucketId, slot, names)

/** Writes the rows with the names of these items of a bucket again, in the transaction that has renamed or restored the items. */
export function* refreshNames(bucketId: BucketId, ids: readonly ItemId[]): Work<void> {
  const seqs = yield* all((row) => integer(row, 0), 'SELECT seq FROM items WHERE id = ANY ($1::text[])', ids)
  const nextSeq = yield* nextNumber(bucketId)
  for (const slot of new Set(seqs.map(nameSlot)))
    for (const [, lines] of (yield* expectedNames(bucketId, nextSeq, slot, slot + 1)).rows)
      yield* setRow(bucketId, slot, lines.join('\n'))
}

/** The number of the next item; 0 for a trash, which has no names and whose id is negative. */
function* nextNumber(bucketId: BucketId): Query<number> {
  const sql = 'SELECT next_seq FROM buckets WHERE id = $1 AND id > 0'
  return (yield* first((row) => integer(row, 0), sql, bucketId)) ?? 0
}

/** What the items of a bucket should have, from one slot to before another. */
interface ExpectedNames {
  /** Lines by the slots of their rows; null where no item is. */
  readonly rows: ReadonlyMap<number, readonly (string | null)[]>
  /** The keys of items whose stored ones differ, by their numbers. */
  readonly keys: ReadonlyMap<number, string>
}

function* expectedNames(bucketId: BucketId, nextSeq: number, from: number, to: number): Query<ExpectedNames> {
  const items = yield* all(
    (row) => ({ seq: integer(row, 0), line: nameLine(textOrNull(row, 1)), storedKey: text(row, 2) }),
    'SELECT seq, filename, name_key FROM items WHERE bucket_id = $1 AND seq >= $2 AND seq < $3',
    ...[bucketId, from * namesPerRow, to * namesPerRow],
  )
  const rows = new Map<number, (string | null)[]>()
  const keys = new Map<number, string>()
  for (const { seq, line, storedKey } of items) {
    const key = nameKey(line)
    if (key !== storedKey) keys.set(seq, key)
    const slot = nameSlot(seq)
    // The line of the next item is appended, so the row ends with the line of the last number that was given.
    const lines =
      rows.get(slot) ??
      Array<null>(Math.max(0, Math.min(namesPerRow, nextSeq - slot * namesPerRow))).fill(null)
    lines[seq % namesPerRow] = line
    rows.set(slot, lines)
  }
  return { rows, keys }
}

/** Rows that are compared together. */
const rowsPerStep = 1_024

/** The names of a bucket that differ from its items, as they should be. */
interface WrongNames {
  /** Rows of `item_names` by their slots; null for those without items. */
  readonly rows: ReadonlyMap<number, string | null>
  /** Keys by the numbers of their items. */
  readonly keys: ReadonlyMap<number, string>
}

/** Compares the names of some slots of a bucket with its items. */
function* findWrong(bucketId: BucketId, nextSeq: number, from: number): Query<WrongNames> {
  const to = from + rowsPerStep
  const { rows: expected, keys } = yield* expectedNames(bucketId, nextSeq, from, to)
  const stored = new Map(
    yield* all(
      (row) => [integer(row, 0), text(row, 1).split('\n')] as const,
      'SELECT slot, names FROM item_names WHERE bucket_id = $1 AND slot >= $2 AND slot < $3',
      ...[bucketId, from, to],
    ),
  )
  const wrong = new Map<number, string | null>()
  for (const slot of stored.keys()) if (!expected.has(slot)) wrong.set(slot, null)
  for (const [slot, lines] of expected) {
    const present = stored.get(slot)
    const isSame =
      present?.length === lines.length &&
      lines.every((line, index) => line === null || line === present[index])
    if (!isSame) wrong.set(slot, lines.join('\n'))
  }
  return { rows: wrong, keys }
}

/** How many rows with names, and with keys of names, of a bucket differ from its items. To be called within a transaction with one snapshot. */
export function* wrongNames(bucketId: BucketId): Query<number> {
  const nextSeq = yield* nextNumber(bucketId)
  let wrong = 0
  for (let from = 0; from * namesPerRow < nextSeq; from += rowsPerStep) {
    const { rows, keys } = yield* findWrong(bucketId, nextSeq, from)
    wrong += rows.size + keys.size
  }
  return wrong
}

const writeKey = eachEngine(
  (engine) => `UPDATE items SET name_key = $3${markEdited[engine]} WHERE bucket_id = $1 AND seq = $2`,
)

/** Corrects the rows with names, and the keys of names, of a bucket whose row the transaction has locked. Returns how many were wrong. */
export function* correctNames(bucketId: BucketId): Work<number> {
  const nextSeq = yield* nextNumber(bucketId)
  let wrong = 0
  for (let from = 0; from * namesPerRow < nextSeq; from += rowsPerStep) {
    const { rows, keys } = yield* findWrong(bucketId, nextSeq, from)
    for (const [slot, names] of rows) yield* setRow(bucketId, slot, names)
    for (const [seq, key] of keys) yield* write(writeKey, bucketId, seq, key)
    wrong += rows.size + keys.size
  }
  return wrong
}
