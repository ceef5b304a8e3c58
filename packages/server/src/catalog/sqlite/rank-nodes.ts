/**
 * The arithmetic of the rank tree. Items of a bucket are numbered 0, 1, 2, …; `leaf` numbers make a leaf block,
 * and a node of level n holds `fanOut` counters of the live items under its children, which are leaf blocks
 * for level 1 and nodes of level n − 1 above.
 */
export interface RankShape {
  readonly leaf: number
  readonly fanOut: number
}

/** 128 counters are 512 bytes: a row that fits SQLite's page without overflow. Three levels hold 134 million items. */
export const defaultShape: RankShape = { leaf: 64, fanOut: 128 }

/** How many sequence numbers one counter of this level covers. */
const childWidth = (shape: RankShape, level: number): number => shape.leaf * shape.fanOut ** (level - 1)

/** The level whose node 0 covers all numbers below `nextSeq`. */
export function topLevel(shape: RankShape, nextSeq: number): number {
  let level = 1
  while (childWidth(shape, level + 1) < nextSeq) level++
  return level
}

/** The node of a level that covers this number. */
export const slotOf = (shape: RankShape, level: number, seq: number): number =>
  Math.floor(seq / childWidth(shape, level + 1))

/** The counter of that node that covers this number. */
export const indexOf = (shape: RankShape, level: number, seq: number): number =>
  Math.floor(seq / childWidth(shape, level)) % shape.fanOut

const counterSize = Uint32Array.BYTES_PER_ELEMENT

/** One node: little-endian unsigned 32-bit counters, as they are stored. */
export class RankNode {
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
