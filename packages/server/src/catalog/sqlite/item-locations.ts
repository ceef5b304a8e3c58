import type { DatabaseSync } from 'node:sqlite'
import { defaultShape, type RankShape, topLevel } from '../rank-shape.ts'
import type { BucketId } from '../records.ts'
import type { RankNode } from './rank-nodes.ts'
import { prepareReadNode } from './ranks.ts'

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
