import type { DatabaseSync } from 'node:sqlite'
import { LRUCache } from 'lru-cache'
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

/** Nodes that one connection caches, of 512 bytes: those of a bucket with 16 million items. */
const cachedNodes = 2_048

/** The nodes of a bucket change only with its revision, so a node is cached under the revision that it was read with. */
export function prepareLocateItem(db: DatabaseSync, shape: RankShape = defaultShape): LocateItem {
  const readNode = prepareReadNode(db)
  const cache = new LRUCache<string, RankNode>({ max: cachedNodes })

  function nodeOf({ id, revision }: BucketState, level: number, slot: number): RankNode {
    const key = `${id}.${revision}.${level}.${slot}`
    const cached = cache.get(key)
    if (cached) return cached
    const node = readNode(id, level, slot)
    if (!node) throw new RangeError(`the ranks of bucket ${id} lack node ${slot} of level ${level}`)
    cache.set(key, node)
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
