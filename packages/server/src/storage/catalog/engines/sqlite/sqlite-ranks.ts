import type { DatabaseSync } from 'node:sqlite'
import { defaultShape, indexOf, type RankShape, slotOf, topLevel } from '../../buckets.ts'
import type { BucketId } from '../../records.ts'
import { bytes } from '../../statements.ts'
import { one } from './sqlite-database.ts'

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
function prepareReadNode(
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

const counterSize = Uint32Array.BYTES_PER_ELEMENT

/** One node: little-endian unsigned 32-bit counters, as they are stored. */
class RankNode {
  readonly bytes: Uint8Array
  readonly #counters: DataView

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.#counters = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  static empty(shape: RankShape): RankNode {
    return new RankNode(new Uint8Array(shape.fanOut * counterSize))
  }

  add(index: number, delta: number): void {
    const count = this.#counters.getUint32(index * counterSize, true) + delta
    if (count < 0) throw new RangeError('a rank counter would fall below zero')
    this.#counters.setUint32(index * counterSize, count, true)
  }

  /** The child that holds live item `rank` (from 0) of this node, the item's rank within that child, and the child's items. */
  find(rank: number): { index: number; rank: number; count: number } {
    let rest = rank
    for (let offset = 0; offset < this.bytes.byteLength; offset += counterSize) {
      const count = this.#counters.getUint32(offset, true)
      if (rest < count) return { index: offset / counterSize, rank: rest, count }
      rest -= count
    }
    throw new RangeError('the rank counters do not reach the total of their bucket')
  }
}

/** The state of a bucket, as of one snapshot. */
interface BucketState {
  readonly id: BucketId
  readonly revision: number
  readonly nextSeq: number
}

/**
 * Locates live item `rank` (from 0, below the total). To reach the item, start at sequence number `seq` and skip `skip` live
 * items. Call it in the transaction that has read the state.
 */
export type LocateItem = (bucket: BucketState, rank: number) => { seq: number; skip: number }

/** Nodes that one connection caches, of 512 bytes: those of a bucket with 16 million items. Above this number, all are read again. */
const cachedNodes = 2_048

/** More than the levels of any tree: one for each bit of a safe integer. */
const maxLevels = 64

/** The nodes of a bucket, which change only with its revision. The keys are numbers, because strings would be built for each lookup. */
interface CachedNodes {
  readonly revision: number
  readonly nodes: Map<number, RankNode>
}

export function prepareLocateItem(db: DatabaseSync, shape: RankShape = defaultShape): LocateItem {
  const readNode = prepareReadNode(db)
  const buckets = new Map<BucketId, CachedNodes>()
  let size = 0

  function nodesOf({ id, revision }: BucketState): Map<number, RankNode> {
    const known = buckets.get(id)
    if (known?.revision === revision) return known.nodes
    size -= known?.nodes.size ?? 0
    const nodes = new Map<number, RankNode>()
    buckets.set(id, { revision, nodes })
    return nodes
  }

  function nodeOf(bucket: BucketState, level: number, slot: number): RankNode {
    const key = slot * maxLevels + level
    const cached = nodesOf(bucket).get(key)
    if (cached) return cached
    const { id } = bucket
    const node = readNode(id, level, slot)
    if (!node) throw new RangeError(`the ranks of bucket ${id} lack node ${slot} of level ${level}`)
    if (size >= cachedNodes) {
      buckets.clear()
      size = 0
    }
    nodesOf(bucket).set(key, node)
    size += 1
    return node
  }

  return (bucket, rank) => {
    let slot = 0
    let skip = rank
    let count = 0
    for (let level = topLevel(shape, bucket.nextSeq); level > 0; level--) {
      const child = nodeOf(bucket, level, slot).find(skip)
      slot = slot * shape.fanOut + child.index
      skip = child.rank
      count = child.count
    }
    const seq = slot * shape.leaf
    // Without deleted items, ranks and sequence numbers advance together.
    return count === shape.leaf ? { seq: seq + skip, skip: 0 } : { seq, skip }
  }
}
