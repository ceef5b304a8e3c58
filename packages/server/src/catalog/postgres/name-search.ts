import { bucketDeleted } from '../../core/fault.ts'
import { expiredColumn, itemColumnCount, itemColumns, readItem } from '../item-columns.ts'
import { groupedReads } from '../names/candidates.ts'
import type { NameReads, NameResults } from '../names/name-reads.ts'
import { searchNames } from '../names/search-names.ts'
import { blockSize } from '../names/segments.ts'
import type { BucketId, FoundItems, ItemPlace, ItemSelection } from '../records.ts'
import { bytes, integer, type Row, textOrNull } from '../rows.ts'
import { readSegments } from './name-index.ts'
import type { Session } from './session.ts'

type Run = (statement: string, ...values: unknown[]) => Promise<Row[]>

/** Finds items by their names, as Catalog.items, in one snapshot. */
export async function searchItems(
  session: Session,
  selection: ItemSelection,
  terms: readonly string[],
  after: ItemPlace | null,
  limit: number,
): Promise<FoundItems> {
  try {
    const found = await searchSnapshot(session, selection, terms, after, limit)
    await session.execute('COMMIT')
    return found
  } catch (error) {
    // The connection is used again. If it is lost, the first error says so.
    await session.execute('ROLLBACK').catch(() => undefined)
    throw error
  }
}

async function searchSnapshot(
  { run, execute }: Session,
  selection: ItemSelection,
  terms: readonly string[],
  after: ItemPlace | null,
  limit: number,
): Promise<FoundItems> {
  const { bucketId } = selection
  await execute('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  const now = Date.now()
  const [bucket] = await run(
    `SELECT revision, next_seq, (EXISTS (SELECT FROM name_marks WHERE bucket_id = $1))::int4, ${expiredColumn('$2')}
    FROM buckets WHERE id = $1`,
    bucketId,
    now,
  )
  if (!bucket) throw bucketDeleted()
  const index = { segments: await readSegments(run, bucketId), nextSeq: integer(bucket, 1), now }
  const hasMarks = integer(bucket, 2) === 1
  const search = searchNames(index, selection, terms, after, limit, groupedReads)
  let step = search.next()
  while (!step.done) step = search.next(await read(run, bucketId, step.value, hasMarks))
  return { revision: integer(bucket, 0), expired: integer(bucket, 3), ...step.value }
}

async function read(run: Run, bucketId: BucketId, reads: NameReads, hasMarks: boolean): Promise<NameResults> {
  const none: Row[] = []
  const chunks =
    reads.chunks.length === 0
      ? none
      : await run('SELECT id, bytes FROM name_chunks WHERE id = ANY ($1::int8[])', reads.chunks)
  const marks =
    reads.marks === null || !hasMarks
      ? none
      : await run(
          'SELECT block, removed, changed FROM name_marks WHERE bucket_id = $1 AND block >= $2 AND block < $3',
          bucketId,
          reads.marks.from / blockSize,
          reads.marks.to / blockSize,
        )
  const names =
    reads.names === null
      ? none
      : await run(
          `SELECT seq, filename FROM media WHERE bucket_id = $1 AND seq >= $2 AND seq < $3
          ORDER BY seq ${reads.names.isNewest ? 'DESC' : 'ASC'} LIMIT $4`,
          ...[bucketId, reads.names.from, reads.names.to, reads.names.limit],
        )
  const items =
    reads.items.length === 0
      ? none
      : await run(
          `SELECT ${itemColumns}, seq FROM media WHERE bucket_id = $1 AND seq = ANY ($2::int8[])`,
          bucketId,
          reads.items,
        )
  return {
    chunks: new Map(chunks.map((row) => [integer(row, 0), bytes(row, 1)])),
    marks: marks.map((row) => ({ block: integer(row, 0), removed: bytes(row, 1), changed: bytes(row, 2) })),
    names: names.map((row) => ({ seq: integer(row, 0), filename: textOrNull(row, 1) })),
    items: items.map((row) => ({ seq: integer(row, itemColumnCount), item: readItem(row) })),
  }
}
