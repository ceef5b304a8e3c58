import type { Item } from '../records.ts'

/** Sequence numbers from `from` to below `to`. */
interface SeqRange {
  readonly from: number
  readonly to: number
}

/** What a search reads next, from the snapshot that it took at its start. Most parts are empty. */
export interface NameReads {
  /** Numbers of chunks. */
  readonly chunks: readonly number[]
  /** The marks of the blocks of this range. */
  readonly marks: SeqRange | null
  /** The names of items in this range: up to `limit`, from its start, or from its end if `isNewest`. */
  readonly names: (SeqRange & { readonly limit: number; readonly isNewest: boolean }) | null
  /** Sequence numbers of items. */
  readonly items: readonly number[]
}

/** Which items of a block differ from the index: bitmaps of their positions. */
export interface BlockMarks {
  /** The number of the first item of the block, by `blockSize`. */
  readonly block: number
  readonly removed: Uint8Array
  /** Their names have changed, or they were added again. */
  readonly changed: Uint8Array
}

export interface NameResults {
  /** By their numbers. */
  readonly chunks: ReadonlyMap<number, Uint8Array>
  readonly marks: readonly BlockMarks[]
  /** In the order of the range. */
  readonly names: readonly { readonly seq: number; readonly filename: string | null }[]
  /** In any order; those that exist. */
  readonly items: readonly { readonly seq: number; readonly item: Item }[]
}

export const noReads: NameReads = { chunks: [], marks: null, names: null, items: [] }
