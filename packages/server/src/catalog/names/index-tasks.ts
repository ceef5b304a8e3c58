import type { BucketId } from '../records.ts'
import { blockSize, mergedSize, type NewSegment, type Segment } from './segments.ts'

/** The next step of indexing the names of a bucket: a block without a segment, or segments to be merged. */
export interface NameTask {
  readonly bucketId: BucketId
  readonly first: number
  /** Empty for a block. */
  readonly merged: readonly Segment[]
}

/** The result of a task, to be stored in one transaction. */
export interface IndexedNames {
  readonly bucketId: BucketId
  readonly segment: NewSegment
  /** The ids of the segments that it replaces. */
  readonly replaced: readonly number[]
}

/** Milliseconds after which another process can take over a task. */
export const claimLifetime = 60_000

/** The next task of a bucket, from its segments in order; null if there is none. Only complete blocks are indexed. */
export function nextNameTask(
  bucketId: BucketId,
  nextSeq: number,
  segments: readonly Segment[],
): NameTask | null {
  let covered = 0
  for (const { first, size } of segments) {
    if (first > covered) break
    covered = first + size
  }
  if (covered + blockSize <= nextSeq) return { bucketId, first: covered, merged: [] }
  const parts = segments.filter(({ size }) => size === blockSize)
  for (const { first } of parts.filter((segment) => segment.first % mergedSize === 0)) {
    const merged = parts.filter((segment) => segment.first >= first && segment.first < first + mergedSize)
    if (merged.length * blockSize === mergedSize) return { bucketId, first, merged }
  }
  return null
}
