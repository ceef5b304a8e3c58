import type { ItemId } from '../../../core/ids.ts'
import { defaultShape } from '../buckets.ts'
import type { BucketId } from '../records.ts'
import { all, eachEngine, first, integer, type Query, text, type Work, write } from '../statements.ts'

// The number of items with a key in each block of numbers. With the number of all items, which the ranks have, a list of items without a key passes by the
// blocks in which all items have one. Blocks are those of the second level of the ranks.

/** Numbers of one block. */
export const keyedBlock = defaultShape.leaf * defaultShape.fanOut

/** Counts the key of an item that has got one. */
export function* countKey(bucketId: BucketId, id: ItemId): Work<void> {
  yield* write(
    `INSERT INTO keyed_counts (bucket_id, slot, items) SELECT $1::int8, seq / ${keyedBlock}, 1 FROM items WHERE id = $2
    ON CONFLICT (bucket_id, slot) DO UPDATE SET items = keyed_counts.items + 1`,
    ...[bucketId, id],
  )
}

/** Takes the key of an item that keeps its place, if this is its key. */
export function* takeKey(bucketId: BucketId, key: Uint8Array): Work<void> {
  yield* write(
    `UPDATE keyed_counts SET items = items - 1 WHERE bucket_id = $1 AND slot = (SELECT seq / ${keyedBlock} FROM items
      WHERE bucket_id = $1 AND id = (SELECT item_id FROM object_keys WHERE bucket_id = $1 AND key = $2))`,
    ...[bucketId, key],
  )
  yield* write('DELETE FROM object_keys WHERE bucket_id = $1 AND key = $2', bucketId, key)
}

const counted = `SELECT items.seq / ${keyedBlock} AS slot, count(*) AS items FROM object_keys JOIN items ON items.id = item_id
  WHERE object_keys.bucket_id = $1 AND items.bucket_id = $1 GROUP BY 1`

const differences = `SELECT count(*) FROM (
  SELECT slot, items FROM (${counted}) AS found UNION ALL SELECT slot, items FROM keyed_counts WHERE bucket_id = $1 AND items <> 0
  ) AS counts GROUP BY slot, items HAVING count(*) <> 2`

/** In how many blocks of a bucket the numbers do not match the keys. */
export function* wrongKeyedCounts(bucketId: BucketId): Query<number> {
  return (yield* all((row) => integer(row, 0), differences, bucketId)).length
}

export function* correctKeyedCounts(bucketId: BucketId): Work<void> {
  yield* write('DELETE FROM keyed_counts WHERE bucket_id = $1', bucketId)
  yield* write(
    `INSERT INTO keyed_counts (bucket_id, slot, items) SELECT $1::int8, slot, items FROM (${counted}) AS found`,
    bucketId,
  )
}

/** The items of each block of the node of the second level that covers a block; each engine stores nodes in its own way. */
const node = eachEngine(
  (engine) =>
    `SELECT ${engine === 'sqlite' ? 'hex(counts)' : 'sums::text'} FROM ranks WHERE bucket_id = $1 AND level = 2 AND slot = $2`,
)

function readCounts(stored: string): readonly number[] {
  if (!stored.startsWith('{')) {
    const bytes = Buffer.from(stored, 'hex')
    return Array.from({ length: defaultShape.fanOut }, (_, index) => bytes.readUInt32LE(index * 4))
  }
  const sums = stored.slice(1, -1).split(',').map(Number)
  return sums.map((sum, index) => sum - (sums[index - 1] ?? 0))
}

/** Whether a bucket has items without a key. */
export function* hasUnkeyed(bucketId: BucketId): Query<boolean> {
  const unkeyed = yield* first(
    (row) => integer(row, 0),
    `SELECT total - coalesce((SELECT sum(items)::int8 FROM keyed_counts WHERE bucket_id = $1), 0) FROM buckets WHERE id = $1`,
    bucketId,
  )
  return unkeyed !== null && unkeyed > 0
}

/** The first block from `from` to `last` that may have items without a key; null if there is none. */
export function* nextUnkeyedBlock(bucketId: BucketId, from: number, last: number): Query<number | null> {
  const next = yield* first((row) => integer(row, 0), 'SELECT next_seq FROM buckets WHERE id = $1', bucketId)
  const end = Math.min(last, Math.floor(((next ?? 0) - 1) / keyedBlock))
  // The ranks of few items have one level.
  if (end <= 0) return from === 0 && end === 0 ? 0 : null
  for (let slot = from; slot <= end; ) {
    const parent = Math.floor(slot / defaultShape.fanOut)
    const counts = yield* first((row) => readCounts(text(row, 0)), node, bucketId, parent)
    const afterNode = (parent + 1) * defaultShape.fanOut
    const keyed = new Map(
      yield* all(
        (row) => [integer(row, 0), integer(row, 1)] as const,
        'SELECT slot, items FROM keyed_counts WHERE bucket_id = $1 AND slot >= $2 AND slot < $3',
        ...[bucketId, slot, afterNode],
      ),
    )
    for (; slot < afterNode && slot <= end; slot += 1) {
      const items = counts?.[slot % defaultShape.fanOut] ?? 0
      if (items > (keyed.get(slot) ?? 0)) return slot
    }
  }
  return null
}
