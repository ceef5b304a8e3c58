import { indexedName } from '../../core/name-search.ts'
import { kindOf } from '../item-kinds.ts'
import { hasBit } from './bitmap.ts'
import { beginChunk, chunkOf, readChunk, sealChunk } from './chunks.ts'
import { eachGram, kindKey } from './grams.ts'
import { PostingLists, type Postings } from './posting-lists.ts'
import { ByteReader, ByteWriter, writePostings } from './postings.ts'

/** Sequence numbers that a new segment covers. */
export const blockSize = 4096
/** Those that a merged one covers: the most that a position of 16 bits can express. */
export const mergedSize = 65_536

/** The chunks of a segment have numbers from its id times this one. */
export const chunksPerSegment = 4096
const maxBits = 12
/** Bytes. The size at which a row of either engine is not split. */
const chunkLength = 1024

/** A row for the index. */
export interface NamedRow {
  readonly seq: number
  readonly filename: string | null
  readonly contentType: string
  readonly createdAt: number
}

/** The first and the last time of the items of each block; milliseconds. Infinity and −Infinity if the block has none. */
type BlockTimes = readonly [number, number]

/** An index of the names of the items whose numbers are from `first` to below `first + size`. */
export interface NewSegment {
  readonly first: number
  readonly size: number
  /** There are 2^bits chunks. */
  readonly bits: number
  readonly times: Uint8Array<ArrayBuffer>
  /** All chunks, and where each ends: one buffer is sent to another thread faster than many. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly ends: readonly number[]
}

/** The chunks of a new segment. */
export const chunksOf = ({ bytes, ends }: NewSegment): Uint8Array<ArrayBuffer>[] =>
  ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))

/** A segment that is stored. */
export interface Segment {
  readonly id: number
  readonly first: number
  readonly size: number
  readonly bits: number
  readonly times: Uint8Array
}

/** Indexes the rows of one block. */
export function buildSegment(first: number, rows: readonly NamedRow[]): NewSegment {
  const lists = new PostingLists()
  let position = 0
  const add = (key: number): void => lists.add(key, position)
  let times: BlockTimes = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { seq, filename, contentType, createdAt } of rows) {
    position = seq - first
    times = [Math.min(times[0], createdAt), Math.max(times[1], createdAt)]
    if (filename === null) continue
    add(kindKey(kindOf(contentType)))
    eachGram(indexedName(filename), add)
  }
  return sealSegment(first, blockSize, writeTimes([times]), lists.sorted())
}

/** Merges adjacent segments of `blockSize`, in order, with their chunks. Throws RangeError if one is damaged. */
export function mergeSegments(
  parts: readonly { readonly segment: Omit<Segment, 'id'>; readonly chunks: readonly Uint8Array[] }[],
): NewSegment {
  const first = parts[0]?.segment.first ?? 0
  const lists = parts.map(({ chunks }) => chunks.flatMap((chunk) => [...readChunk(chunk)]))
  const keys = Uint32Array.from(new Set(lists.flatMap((list) => list.map(({ key }) => key)))).sort()
  const starts = new Uint32Array(keys.length + 1)
  let positions = new Uint16Array(1 << 20)
  let count = 0
  const next = lists.map(() => 0)
  for (const [index, key] of keys.entries()) {
    for (const [part, list] of lists.entries()) {
      const entry = list[next[part] ?? 0]
      if (entry?.key !== key) continue
      next[part] = (next[part] ?? 0) + 1
      if (count + blockSize > positions.length) {
        const grown = new Uint16Array(positions.length * 2)
        grown.set(positions)
        positions = grown
      }
      const offset = (parts[part]?.segment.first ?? 0) - first
      count = appendPositions(entry.list, offset, positions, count)
    }
    starts[index + 1] = count
  }
  const times = parts.flatMap(({ segment }) => readTimes(segment.times))
  return sealSegment(first, mergedSize, writeTimes(times), { keys, starts, positions })
}

function appendPositions(list: Uint8Array, offset: number, positions: Uint16Array, start: number): number {
  let count = start
  if (list.length === blockSize / 8) {
    for (let position = 0; position < blockSize; position += 1)
      if (hasBit(list, position)) positions[count++] = offset + position
    return count
  }
  const reader = new ByteReader(list)
  for (let next = 0; !reader.isAtEnd(); next += 1) {
    next += reader.integer()
    if (next >= blockSize) throw new RangeError('a posting list exceeds its segment')
    positions[count++] = offset + next
  }
  return count
}

function sealSegment(
  first: number,
  size: number,
  times: Uint8Array<ArrayBuffer>,
  { keys, starts, positions }: Postings,
): NewSegment {
  const [lists, scratch] = [new ByteWriter(), new ByteWriter()]
  const ends = new Uint32Array(keys.length)
  for (let index = 0; index < keys.length; index += 1) {
    const [start = 0, end = 0] = [starts[index], starts[index + 1]]
    writePostings(lists, scratch, size, { positions, start, end })
    ends[index] = lists.length
  }
  // A key takes about three bytes more.
  const length = lists.length + 3 * keys.length
  const bits = Math.min(maxBits, Math.max(0, Math.ceil(Math.log2(length / chunkLength))))
  const all = lists.from(0)
  const chunks = new ByteWriter()
  const chunkEnds: number[] = []
  for (let number = 0, index = 0; number < 2 ** bits; number += 1) {
    const start = beginChunk(chunks)
    for (let last = 0; index < keys.length && chunkOf(keys[index] ?? 0, bits) === number; index += 1) {
      const key = keys[index] ?? 0
      chunks.integer(key - last)
      chunks.bytes(all.subarray(ends[index - 1] ?? 0, ends[index]))
      last = key
    }
    sealChunk(chunks, start)
    chunkEnds.push(chunks.length)
  }
  return { first, size, bits, times, bytes: chunks.copy(), ends: chunkEnds }
}

function writeTimes(times: readonly BlockTimes[]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(times.length * 16))
  for (const [index, [first, last]] of times.entries()) {
    view.setFloat64(index * 16, first, true)
    view.setFloat64(index * 16 + 8, last, true)
  }
  return new Uint8Array(view.buffer)
}

/** The first and the last time of each block of a segment. */
export function readTimes(bytes: Uint8Array): BlockTimes[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: Math.floor(bytes.length / 16) }, (_, index) => [
    view.getFloat64(index * 16, true),
    view.getFloat64(index * 16 + 8, true),
  ])
}
