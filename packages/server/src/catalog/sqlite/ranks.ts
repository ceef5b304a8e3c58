import type { DatabaseSync } from 'node:sqlite'
import { defaultShape, indexOf, type RankShape, slotOf, topLevel } from '../rank-shape.ts'
import type { BucketId } from '../records.ts'
import { bytes } from '../rows.ts'
import { RankNode } from './rank-nodes.ts'
import { one } from './rows.ts'

/**
 * A tree of counters of live items (docs/architecture/listing.md, Ranks). With it, the n-th item of a bucket is found by one read
 * for each level of the tree. `nextSeq` is the next sequence number of the bucket.
 */
export interface Ranks {
  /** Adds `count` items, numbered from `nextSeq`. `total` is the number of live items before the change. */
  add(bucketId: BucketId, total: number, nextSeq: number, count: number): void
  /** Removes the items with these sequence numbers, which must be in ascending order. */
  remove(bucketId: BucketId, nextSeq: number, seqs: readonly number[]): void
  /** Adds items with earlier numbers, which must be in ascending order. */
  restore(bucketId: BucketId, nextSeq: number, seqs: readonly number[]): void
}

/** Reads a node; null if none of its numbers has had an item. */
export function prepareReadNode(
  db: DatabaseSync,
): (bucketId: BucketId, level: number, slot: number) => RankNode | null {
  const select = db.prepare('SELECT counts FROM ranks WHERE bucket_id = ? AND level = ? AND slot = ?')
  return (bucketId, level, slot) => {
    const row = one(select, bucketId, level, slot)
    return row && new RankNode(bytes(row, 0))
  }
}

export function prepareRanks(db: DatabaseSync, shape: RankShape = defaultShape): Ranks {
  const read = prepareReadNode(db)
  const upsert = db.prepare(`INSERT INTO ranks (bucket_id, level, slot, counts) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET counts = excluded.counts`)

  /** Adds `delta` to the counters of each number, on every level. Adjacent numbers share one read and one write of their node. */
  const updateCounters = (
    bucketId: BucketId,
    nextSeq: number,
    seqs: readonly number[],
    delta: number,
  ): void => {
    for (let level = topLevel(shape, nextSeq); level > 0; level--) {
      let slot = -1
      let node = RankNode.empty(shape)
      for (const seq of seqs) {
        if (slotOf(shape, level, seq) !== slot) {
          if (slot >= 0) upsert.run(bucketId, level, slot, node.bytes)
          slot = slotOf(shape, level, seq)
          node = read(bucketId, level, slot) ?? RankNode.empty(shape)
        }
        node.add(indexOf(shape, level, seq), delta)
      }
      if (slot >= 0) upsert.run(bucketId, level, slot, node.bytes)
    }
  }

  return {
    add(bucketId, total, nextSeq, count) {
      // The first counter of a new top level covers node 0 of the old one, which counts all existing items.
      const grown = topLevel(shape, nextSeq + count)
      for (let level = topLevel(shape, nextSeq) + 1; level <= grown; level++) {
        const node = RankNode.empty(shape)
        node.add(0, total)
        upsert.run(bucketId, level, 0, node.bytes)
      }
      const seqs = Array.from({ length: count }, (_, index) => nextSeq + index)
      updateCounters(bucketId, nextSeq + count, seqs, 1)
    },

    remove(bucketId, nextSeq, seqs) {
      updateCounters(bucketId, nextSeq, seqs, -1)
    },

    restore(bucketId, nextSeq, seqs) {
      updateCounters(bucketId, nextSeq, seqs, 1)
    },
  }
}
