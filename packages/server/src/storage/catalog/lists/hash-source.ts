import type { ItemRow, ItemSelection } from '../records.ts'
import { all, integer, type Query } from '../statements.ts'
import { filtersAmong } from './item-filters.ts'
import { columnsFor, hashOf, orders, partOf, readRowFor } from './item-lists.ts'
import type { Part, Source } from './item-scan.ts'

// The index of hashes on SQLite. Hashes are random: in an index of the whole bucket, each upload would change a page of its own, which its
// commit and the next checkpoint write. So the index has blocks of numbers: a commit changes the few pages of the last block, and a search looks
// into each block. Blocks are in the order of their numbers, which is that of the list.

/** Numbers of one block, whose entries fill about ten pages. */
const numbersPerBlock = 2_048

/** The block of an item, as an expression; part of the index `items_by_hash` of SQLite. */
export const hashBlock = `seq / ${numbersPerBlock}`

const blockOf = (seq: number): number => Math.floor(seq / numbersPerBlock)

/** The blocks from $2 to $3 that have an item whose hash begins so. */
const blocksText = `WITH RECURSIVE blocks (number) AS (SELECT $2 UNION ALL SELECT number + 1 FROM blocks WHERE number < $3)
  SELECT number FROM blocks WHERE EXISTS (SELECT 1 FROM items INDEXED BY items_by_hash
    WHERE bucket_id = $1 AND ${hashBlock} = blocks.number AND substr(sha256, 1, 8) = $4)`

/** Reads the items with the bytes of a selection, in the order of their numbers. `by` says for which list, which may be in another order. */
export function createHashSource(selection: ItemSelection, by = selection.by): Source {
  const { bucketId, order } = selection
  const isOldest = order === 'oldest'
  const { after: follows, direction } = orders[order]
  const rowsText = `SELECT ${columnsFor(by)} FROM items INDEXED BY items_by_hash WHERE bucket_id = $1 AND ${hashBlock} = $2
    AND substr(sha256, 1, 8) = $3 AND sha256 = $4 AND seq ${follows} $5 ORDER BY seq ${direction} LIMIT $6`
  const readRow = readRowFor(by)
  const [hash, start] = hashOf(selection)

  /** The blocks after a place in which items may be, in the order of the list. */
  function* blocksAfter(place: number, nextSeq: number): Query<readonly number[]> {
    const [from, to] = isOldest
      ? [blockOf(place + 1), blockOf(nextSeq)]
      : [0, blockOf(Math.min(place, nextSeq))]
    const found = yield* all((row) => integer(row, 0), blocksText, bucketId, from, to, start)
    return found.toSorted((one, other) => (isOldest ? one - other : other - one))
  }

  return {
    bucketId,
    compared: filtersAmong(selection, new Set(['sha256'])),
    isSparse: false,
    open: ({ nextSeq }) =>
      function* read(after, { count }): Query<Part> {
        const place = after?.seq ?? (isOldest ? -1 : nextSeq)
        const rows: ItemRow[] = []
        for (const block of yield* blocksAfter(place, nextSeq)) {
          const left = count - rows.length
          if (left === 0) break
          rows.push(...(yield* all(readRow, rowsText, bucketId, block, start, hash, place, left)))
        }
        return partOf(rows, count)
      },
  }
}
