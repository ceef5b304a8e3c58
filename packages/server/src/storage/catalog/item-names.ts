import type { ItemId } from '../../core/ids.ts'
import { nameLine, nameSlot, namesPerRow } from '../../core/names.ts'
import type { BucketId } from './records.ts'
import { all, change, first, integer, type Query, text, textOrNull, type Work } from './statements.ts'

const writeRow = `INSERT INTO item_names (bucket_id, slot, names) VALUES ($1, $2, $3)
  ON CONFLICT (bucket_id, slot) DO UPDATE SET names = excluded.names`
const removeRow = 'DELETE FROM item_names WHERE bucket_id = $1 AND slot = $2'

const setRow = (bucketId: BucketId, slot: number, names: string | null): Work<number> =>
  names === null ? change(removeRow, bucketId, slot) : change(writeRow, bucketId, slot, names)

/** Writes the rows with the names of these items of a bucket again, in the transaction that has renamed or restored the items. */
export function* refreshNames(bucketId: BucketId, ids: readonly ItemId[]): Work<void> {
  const seqs = yield* all((row) => integer(row, 0), 'SELECT seq FROM items WHERE id = ANY ($1::text[])', ids)
  const nextSeq = yield* nextNumber(bucketId)
  for (const slot of new Set(seqs.map(nameSlot)))
    for (const [, lines] of yield* expectedLines(bucketId, nextSeq, slot, slot + 1))
      yield* setRow(bucketId, slot, lines.join('\n'))
}

/** The number of the next item; 0 for a trash, which has no names and whose id is negative. */
function* nextNumber(bucketId: BucketId): Query<number> {
  const sql = 'SELECT next_seq FROM buckets WHERE id = $1 AND id > 0'
  return (yield* first((row) => integer(row, 0), sql, bucketId)) ?? 0
}

/** The lines that the items of a bucket should have, by the slots of their rows, from one slot to before another; null where no item is. */
function* expectedLines(
  bucketId: BucketId,
  nextSeq: number,
  from: number,
  to: number,
): Query<Map<number, (string | null)[]>> {
  const items = yield* all(
    (row) => ({ seq: integer(row, 0), line: nameLine(textOrNull(row, 1)) }),
    'SELECT seq, filename FROM items WHERE bucket_id = $1 AND seq >= $2 AND seq < $3',
    ...[bucketId, from * namesPerRow, to * namesPerRow],
  )
  const rows = new Map<number, (string | null)[]>()
  for (const { seq, line } of items) {
    const slot = nameSlot(seq)
    // The line of the next item is appended, so the row ends with the line of the last number that was given.
    const lines =
      rows.get(slot) ??
      Array<null>(Math.max(0, Math.min(namesPerRow, nextSeq - slot * namesPerRow))).fill(null)
    lines[seq % namesPerRow] = line
    rows.set(slot, lines)
  }
  return rows
}

/** Rows that are compared together. */
const rowsPerStep = 1_024

/** Compares some rows of a bucket with its items. Returns those that differ, as they should be; null for those without items. */
function* wrongRows(bucketId: BucketId, nextSeq: number, from: number): Query<Map<number, string | null>> {
  const to = from + rowsPerStep
  const expected = yield* expectedLines(bucketId, nextSeq, from, to)
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
  return wrong
}

/** How many rows with names of a bucket differ from its items. To be called within a transaction with one snapshot. */
export function* wrongNames(bucketId: BucketId): Query<number> {
  const nextSeq = yield* nextNumber(bucketId)
  let wrong = 0
  for (let from = 0; from * namesPerRow < nextSeq; from += rowsPerStep)
    wrong += (yield* wrongRows(bucketId, nextSeq, from)).size
  return wrong
}

/** Corrects the rows with names of a bucket whose row the transaction has locked. Returns how many were wrong. */
export function* correctNames(bucketId: BucketId): Work<number> {
  const nextSeq = yield* nextNumber(bucketId)
  let wrong = 0
  for (let from = 0; from * namesPerRow < nextSeq; from += rowsPerStep)
    for (const [slot, names] of yield* wrongRows(bucketId, nextSeq, from)) {
      yield* setRow(bucketId, slot, names)
      wrong += 1
    }
  return wrong
}
