import { claimLifetime, type IndexedNames, type NameTask, nextNameTask } from '../names/index-tasks.ts'
import { blockSize, chunksOf, chunksPerSegment, type NamedRow, type Segment } from '../names/segments.ts'
import type { BucketId } from '../records.ts'
import { bytes, integer, type Row, text, textOrNull } from '../rows.ts'
import type { Session } from './session.ts'
import { bytesArray } from './values.ts'

type Run = (statement: string, ...values: unknown[]) => Promise<Row[]>

/** The segments of a bucket, by their first numbers. */
export async function readSegments(run: Run, bucketId: BucketId): Promise<Segment[]> {
  const rows = await run(
    'SELECT id, first, size, bits, times FROM name_segments WHERE bucket_id = $1 ORDER BY first',
    bucketId,
  )
  return rows.map((row) => ({
    id: integer(row, 0),
    first: integer(row, 1),
    size: integer(row, 2),
    bits: integer(row, 3),
    times: bytes(row, 4),
  }))
}

/** The buckets with a block that has no segment. */
export async function readUnindexed(run: Run): Promise<BucketId[]> {
  const rows = await run(`SELECT id FROM buckets WHERE id > 0 AND next_seq - ${blockSize} >= coalesce(
    (SELECT sum(size) FROM name_segments WHERE bucket_id = buckets.id), 0)`)
  // The column contains only ids of buckets.
  return rows.map((row) => integer(row, 0) as BucketId)
}

/** Claims and returns the next task of a locked bucket; null if there is none. No other process can claim it at the same time. */
export async function claimNames(
  { run }: Session,
  { bucketId, now }: { readonly bucketId: BucketId; readonly now: number },
): Promise<NameTask | null> {
  const [row] = await run(
    `SELECT next_seq, coalesce((SELECT until FROM name_claims WHERE bucket_id = $1), 0)
    FROM buckets WHERE id = $1`,
    bucketId,
  )
  if (!row || integer(row, 1) > now) return null
  const task = nextNameTask(bucketId, integer(row, 0), await readSegments(run, bucketId))
  if (task)
    await run(
      `INSERT INTO name_claims (bucket_id, until) VALUES ($1, $2)
      ON CONFLICT (bucket_id) DO UPDATE SET until = excluded.until`,
      bucketId,
      now + claimLifetime,
    )
  return task
}

/** Stores the result of a task, unless another process has taken over the task and completed it. The bucket is locked. */
export async function storeNames(
  { run }: Session,
  { bucketId, segment, replaced }: IndexedNames,
): Promise<undefined> {
  const { first, size, bits, times } = segment
  await run('DELETE FROM name_claims WHERE bucket_id = $1', bucketId)
  const isReplaced = ({ id }: Segment) => replaced.includes(id)
  const present = await readSegments(run, bucketId)
  if (present.filter(isReplaced).length < replaced.length) return
  if (
    present.some(
      (other) => !isReplaced(other) && other.first < first + size && first < other.first + other.size,
    )
  )
    return
  await removeSegments(run, replaced)
  await run(
    `WITH added AS (
      INSERT INTO name_segments (bucket_id, first, size, bits, times) VALUES ($1, $2, $3, $4, $5) RETURNING id
    )
    INSERT INTO name_chunks (id, bytes)
    SELECT added.id * ${chunksPerSegment} + number - 1, chunk FROM added, unnest($6::bytea[]) WITH ORDINALITY AS chunks (chunk, number)`,
    ...[bucketId, first, size, bits, times, bytesArray(chunksOf(segment))],
  )
}

/** Removes the index of a bucket as far as it covers only numbers below `end`. */
export async function removeNamesBelow({ run }: Session, bucketId: BucketId, end: number): Promise<void> {
  const segments = await readSegments(run, bucketId)
  await removeSegments(
    run,
    segments.flatMap(({ id, first, size }) => (first + size <= end ? [id] : [])),
  )
}

/** Removes all that the index has of a bucket. */
export async function removeNames(session: Session, bucketId: BucketId): Promise<void> {
  await removeNamesBelow(session, bucketId, Number.POSITIVE_INFINITY)
  await session.run('DELETE FROM name_marks WHERE bucket_id = $1', bucketId)
  await session.run('DELETE FROM name_claims WHERE bucket_id = $1', bucketId)
}

async function removeSegments(run: Run, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return
  await run(
    `DELETE FROM name_chunks USING unnest($1::int8[]) AS segment
    WHERE name_chunks.id >= segment * ${chunksPerSegment} AND name_chunks.id < (segment + 1) * ${chunksPerSegment}`,
    ids,
  )
  await run('DELETE FROM name_segments WHERE id = ANY ($1)', ids)
}

/** The rows of one block. */
export async function readBlock(run: Run, bucketId: BucketId, first: number): Promise<NamedRow[]> {
  const rows = await run(
    `SELECT seq, filename, content_type, created_at FROM media
    WHERE bucket_id = $1 AND seq >= $2 AND seq < $3 ORDER BY seq`,
    bucketId,
    first,
    first + blockSize,
  )
  return rows.map((row) => ({
    seq: integer(row, 0),
    filename: textOrNull(row, 1),
    contentType: text(row, 2),
    createdAt: integer(row, 3),
  }))
}

/** All chunks of a segment. */
export async function readChunks(run: Run, { id }: Segment): Promise<Uint8Array<ArrayBuffer>[]> {
  const rows = await run(
    'SELECT bytes FROM name_chunks WHERE id >= $1 AND id < $2 ORDER BY id',
    id * chunksPerSegment,
    (id + 1) * chunksPerSegment,
  )
  return rows.map((row) => bytes(row, 0))
}
