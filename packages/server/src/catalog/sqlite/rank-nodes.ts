import type { RankShape } from '../rank-shape.ts'

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
