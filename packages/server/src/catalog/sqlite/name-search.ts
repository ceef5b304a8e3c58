import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../core/fault.ts'
import { expiredColumn, itemColumns, readItem } from '../item-columns.ts'
import { singleReads } from '../names/candidates.ts'
import type { NameReads, NameResults } from '../names/name-reads.ts'
import { searchNames } from '../names/search-names.ts'
import { blockSize } from '../names/segments.ts'
import type { BucketId, FoundItems, ItemPlace, ItemSelection } from '../records.ts'
import { bytes, integer, textOrNull } from '../rows.ts'
import { prepareReadSegments } from './name-index.ts'
import { all, one } from './rows.ts'

/** Finds items by their names, as Catalog.items; to be called within a transaction. */
export function prepareSearchNames(
  db: DatabaseSync,
): (
  selection: ItemSelection,
  terms: readonly string[],
  after: ItemPlace | null,
  limit: number,
) => FoundItems {
  const bucket = db.prepare(`SELECT revision, next_seq, ${expiredColumn('?2')} FROM buckets WHERE id = ?1`)
  const readSegments = prepareReadSegments(db)
  const chunk = db.prepare('SELECT bytes FROM name_chunks WHERE id = ?')
  const marks = db.prepare(
    'SELECT block, removed, changed FROM name_marks WHERE bucket_id = ? AND block >= ? AND block < ?',
  )
  const item = db.prepare(`SELECT ${itemColumns} FROM media WHERE bucket_id = ? AND seq = ?`)
  const namesOf = (direction: 'ASC' | 'DESC') =>
    db.prepare(`SELECT seq, filename FROM media WHERE bucket_id = ? AND seq >= ? AND seq < ?
      ORDER BY seq ${direction} LIMIT ?`)
  const [oldest, newest] = [namesOf('ASC'), namesOf('DESC')]

  const read = (bucketId: BucketId, reads: NameReads): NameResults => ({
    chunks: new Map(
      reads.chunks.flatMap((id) => {
        const row = one(chunk, id)
        return row ? [[id, bytes(row, 0)]] : []
      }),
    ),
    marks: reads.marks
      ? all(marks, bucketId, reads.marks.from / blockSize, reads.marks.to / blockSize).map((row) => ({
          block: integer(row, 0),
          removed: bytes(row, 1),
          changed: bytes(row, 2),
        }))
      : [],
    names: reads.names
      ? all(
          reads.names.isNewest ? newest : oldest,
          bucketId,
          reads.names.from,
          reads.names.to,
          reads.names.limit,
        ).map((row) => ({ seq: integer(row, 0), filename: textOrNull(row, 1) }))
      : [],
    items: reads.items.flatMap((seq) => {
      const row = one(item, bucketId, seq)
      return row ? [{ seq, item: readItem(row) }] : []
    }),
  })

  return (selection, terms, after, limit) => {
    const { bucketId } = selection
    const now = Date.now()
    const row = one(bucket, bucketId, now)
    if (!row) throw bucketDeleted()
    const index = { segments: readSegments(bucketId), nextSeq: integer(row, 1), now }
    const search = searchNames(index, selection, terms, after, limit, singleReads)
    let step = search.next()
    while (!step.done) step = search.next(read(bucketId, step.value))
    return { revision: integer(row, 0), expired: integer(row, 2), ...step.value }
  }
}
