import type { ItemKind } from '../../core/items-query.ts'
import { chunkOf, findList } from './chunks.ts'
import { kindKey, searchKeys } from './grams.ts'
import { type BlockMarks, type NameReads, type NameResults, noReads } from './name-reads.ts'
import { readPostings } from './postings.ts'
import { blockSize, chunksPerSegment, readTimes, type Segment } from './segments.ts'

/** How much a search reads together. */
export interface GroupSizes {
  /** Segments, at first. */
  readonly segments: number
  /** The factor by which the next groups are larger. */
  readonly growth: number
  /** Posting lists of each segment. */
  readonly keys: number
}

/** With this number of candidates or fewer, reading them takes less time than reading another posting list. */
const fewCandidates = 24

interface Filter {
  readonly terms: readonly string[]
  readonly kind: ItemKind | null
  readonly from: number | null
  readonly to: number | null
}

/** The intersection of posting lists of one segment. */
interface Intersection {
  readonly segment: Segment
  /** A bitmap of positions; null before the first list. */
  bitmap: Uint8Array | null
  /** Its chunks cannot be read, so all its items are candidates. */
  isDamaged: boolean
}

/**
 * Returns a function that finds the candidates of segments: the numbers of all items that the terms and the filters may select, ascending,
 * for each segment in the order given. It reads the lists of rare grams first, as far as the previous segments have shown which are rare.
 */
export function createCandidates(
  { terms, kind, from, to }: Filter,
  { keys: keysAtOnce }: GroupSizes,
): (group: readonly Segment[]) => Generator<NameReads, number[][], NameResults> {
  let keys = [...(kind === null ? [] : [kindKey(kind)]), ...searchKeys(terms)]
  /** The bytes of the lists of each key that were read. */
  const weights = new Map(keys.map((key) => [key, 0]))

  const isInTime = (segment: Segment) =>
    readTimes(segment.times).map(
      ([first, last]) => last >= (from ?? last) && first < (to ?? Infinity) && first <= last,
    )

  function intersect(entry: Intersection, key: number, chunk: Uint8Array | undefined): void {
    const { size } = entry.segment
    try {
      if (chunk === undefined) throw new RangeError('a chunk of the index of names is missing')
      const list = findList(chunk, key)
      weights.set(key, (weights.get(key) ?? 0) + (list?.length ?? 0))
      const bitmap = list === null ? new Uint8Array(size / 8) : readPostings(list, size)
      entry.bitmap = entry.bitmap === null ? bitmap : intersection(entry.bitmap, bitmap)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      entry.isDamaged = true
    }
  }

  return function* findCandidates(group) {
    const entries: Intersection[] = group.map((segment) => ({ segment, bitmap: null, isDamaged: false }))
    const covered = {
      from: Math.min(...group.map(({ first }) => first)),
      to: Math.max(...group.map(({ first, size }) => first + size)),
    }
    let marks: readonly BlockMarks[] = []
    for (let index = 0; index < keys.length; index += keysAtOnce) {
      const some = keys.slice(index, index + keysAtOnce)
      const open = entries.filter(
        ({ segment, bitmap, isDamaged }) =>
          !isDamaged && isInTime(segment).includes(true) && (bitmap === null || hasMany(bitmap)),
      )
      if (index > 0 && open.length === 0) break
      const chunkNumber = ({ id, bits }: Segment, key: number) => id * chunksPerSegment + chunkOf(key, bits)
      const numbers = new Set(open.flatMap(({ segment }) => some.map((key) => chunkNumber(segment, key))))
      const results = yield { ...noReads, chunks: [...numbers], marks: index === 0 ? covered : null }
      if (index === 0) marks = results.marks
      for (const entry of open)
        for (const key of some) intersect(entry, key, results.chunks.get(chunkNumber(entry.segment, key)))
    }
    keys = keys.toSorted((one, other) => (weights.get(one) ?? 0) - (weights.get(other) ?? 0))
    const marksOf = new Map(marks.map((entry) => [entry.block, entry]))
    return entries.map((entry) => numbersOf(entry, isInTime(entry.segment), marksOf))
  }
}

/** The numbers of the candidates of a segment, with regard to the marks of its blocks. */
function numbersOf(
  { segment, bitmap, isDamaged }: Intersection,
  isInTime: readonly boolean[],
  marksOf: ReadonlyMap<number, BlockMarks>,
): number[] {
  const found: number[] = []
  for (let start = 0; start < segment.size; start += blockSize) {
    const marks = marksOf.get((segment.first + start) / blockSize)
    // Items that were added again can have any time.
    const isListed = isInTime[start / blockSize] === true && (bitmap !== null || isDamaged)
    if (!isListed && marks === undefined) continue
    for (let index = 0; index < blockSize / 8; index += 1) {
      const listed = !isListed ? 0 : isDamaged ? 0xff : (bitmap?.[start / 8 + index] ?? 0)
      const bits =
        marks === undefined ? listed : (listed & ~(marks.removed[index] ?? 0)) | (marks.changed[index] ?? 0)
      for (let rest = bits, bit = 0; rest !== 0; rest >>>= 1, bit += 1)
        if (rest & 1) found.push(segment.first + start + index * 8 + bit)
    }
  }
  return found
}

function intersection(one: Uint8Array, other: Uint8Array): Uint8Array {
  const both = new Uint8Array(one.length)
  for (let index = 0; index < one.length; index += 1) both[index] = (one[index] ?? 0) & (other[index] ?? 0)
  return both
}

function hasMany(bitmap: Uint8Array): boolean {
  let count = 0
  for (const bits of bitmap) {
    for (let rest = bits; rest !== 0; rest &= rest - 1) count += 1
    if (count > fewCandidates) return true
  }
  return false
}
