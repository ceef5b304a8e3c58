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
