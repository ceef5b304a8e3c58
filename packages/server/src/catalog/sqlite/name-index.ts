import type { DatabaseSync } from 'node:sqlite'
import { claimLifetime, type IndexedNames, type NameTask, nextNameTask } from '../names/index-tasks.ts'
import { blockSize, chunksOf, chunksPerSegment, type Segment } from '../names/segments.ts'
import type { BucketId } from '../records.ts'
import { bytes, integer } from '../rows.ts'
import { all, one } from './rows.ts'

/** Writes the index of names; to be called within a transaction. */
export interface NameIndexRows {
  /** Claims and returns the next task of a bucket; null if there is none. No other process can claim it at the same time. */
  claim(bucketId: BucketId, now: number): NameTask | null
  store(names: IndexedNames): void
  /** Removes the index of a bucket as far as it covers only numbers below `end`. */
  removeBelow(bucketId: BucketId, end: number): void
  /** Removes all that the index has of a bucket. */
  removeAll(bucketId: BucketId): void
}

/** The segments of a bucket, by their first numbers. */
export function prepareReadSegments(db: DatabaseSync): (bucketId: BucketId) => Segment[] {
  const select = db.prepare(
    'SELECT id, first, size, bits, times FROM name_segments WHERE bucket_id = ? ORDER BY first',
  )
  return (bucketId) =>
    all(select, bucketId).map((row) => ({
      id: integer(row, 0),
      first: integer(row, 1),
      size: integer(row, 2),
      bits: integer(row, 3),
      times: bytes(row, 4),
    }))
}

/** The buckets with a block that has no segment. */
export const prepareReadUnindexed = (db: DatabaseSync): (() => BucketId[]) => {
  const select = db.prepare(`SELECT id FROM buckets WHERE id > 0 AND next_seq - ${blockSize} >= coalesce(
    (SELECT sum(size) FROM name_segments WHERE bucket_id = buckets.id), 0)`)
  // The column contains only ids of buckets.
  return () => all(select).map((row) => integer(row, 0) as BucketId)
}

export function prepareNameIndex(db: DatabaseSync): NameIndexRows {
  const readSegments = prepareReadSegments(db)
  const nextSeq = db.prepare('SELECT next_seq FROM buckets WHERE id = ?')
  const claimed = db.prepare('SELECT until FROM name_claims WHERE bucket_id = ?')
  const claim = db.prepare(`INSERT INTO name_claims (bucket_id, until) VALUES (?, ?)
    ON CONFLICT DO UPDATE SET until = excluded.until`)
  const release = db.prepare('DELETE FROM name_claims WHERE bucket_id = ?')
  const addSegment = db.prepare(
    'INSERT INTO name_segments (bucket_id, first, size, bits, times) VALUES (?, ?, ?, ?, ?) RETURNING id',
  )
  const addChunk = db.prepare('INSERT INTO name_chunks (id, bytes) VALUES (?, ?)')
  const removeChunks = db.prepare('DELETE FROM name_chunks WHERE id >= ? AND id < ?')
  const removeSegment = db.prepare('DELETE FROM name_segments WHERE id = ?')
  const removeMarks = db.prepare('DELETE FROM name_marks WHERE bucket_id = ?')

  function remove(ids: readonly number[]): void {
    for (const id of ids) {
      removeChunks.run(id * chunksPerSegment, (id + 1) * chunksPerSegment)
      removeSegment.run(id)
    }
  }

  return {
    claim(bucketId, now) {
      const bucket = one(nextSeq, bucketId)
      const other = one(claimed, bucketId)
      if (!bucket || (other && integer(other, 0) > now)) return null
      const task = nextNameTask(bucketId, integer(bucket, 0), readSegments(bucketId))
      if (task) claim.run(bucketId, now + claimLifetime)
      return task
    },

    store({ bucketId, segment, replaced }) {
      const { first, size, bits, times } = segment
      release.run(bucketId)
      if (!one(nextSeq, bucketId)) return
      const present = readSegments(bucketId)
      const isReplaced = (id: number) => replaced.includes(id)
      // Another process has taken over the task and completed it.
      if (present.filter(({ id }) => isReplaced(id)).length < replaced.length) return
      if (
        present.some(
          (other) => !isReplaced(other.id) && other.first < first + size && first < other.first + other.size,
        )
      )
        return
      remove(replaced)
      const id = integer(one(addSegment, bucketId, first, size, bits, times) ?? [], 0)
      for (const [number, chunk] of chunksOf(segment).entries())
        addChunk.run(id * chunksPerSegment + number, chunk)
    },

    removeBelow(bucketId, end) {
      remove(readSegments(bucketId).flatMap(({ id, first, size }) => (first + size <= end ? [id] : [])))
    },

    removeAll(bucketId) {
      remove(readSegments(bucketId).map(({ id }) => id))
      removeMarks.run(bucketId)
      release.run(bucketId)
    },
  }
}
