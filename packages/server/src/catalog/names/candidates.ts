import type { ItemKind } from '../../core/items-query.ts'
import { Bitmap } from './bitmap.ts'
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

/** For an engine that reads synchronously. */
export const singleReads: GroupSizes = { segments: 1, growth: 1, keys: 1 }
/** For an engine whose reads are round trips: more is read together. */
export const groupedReads: GroupSizes = { segments: 1, growth: 4, keys: 3 }

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
  /** For each block, whether it may have items of the time range. */
  readonly isInTime: readonly boolean[]
  /** Null before the first list. */
  bitmap: Bitmap | null
  count: number
  /** Its chunks cannot be read, so all its items are candidates. */
  isDamaged: boolean
}

/** The candidates of one segment. */
interface Candidates {
  /** The numbers of all items that the terms and the filters may select, ascending. */
  readonly numbers: number[]
  /** Whether the segment has no items of the time range, so that none of its lists was read. */
  readonly isSkipped: boolean
}

/** For each block of a segment, whether it may have items of the time range. */
const blocksInTime = ({ times }: Segment, { from, to }: Filter): boolean[] =>
  readTimes(times).map(([first, last]) => last >= (from ?? last) && first < (to ?? Infinity) && first <= last)

/**
 * Returns a function that finds the candidates of each segment, in the order given. It reads those lists first that excluded most items of
 * the previous segments, and none that the others make useless.
 */
export function createCandidates(
  filter: Filter,
  { keys: keysAtOnce }: GroupSizes,
): (group: readonly Segment[]) => Generator<NameReads, Candidates[], NameResults> {
  const { terms, kind } = filter
  let keys = [...(kind === null ? [] : [kindKey(kind)]), ...searchKeys(terms)]
  /** The share of the items that the list of each key left, when it was last intersected. */
  const shares = new Map(keys.map((key) => [key, 0]))

  const begin = (segment: Segment): Intersection => ({
    segment,
    isInTime: blocksInTime(segment, filter),
    bitmap: null,
    count: segment.size,
    isDamaged: false,
  })

  function intersect(entry: Intersection, key: number, chunk: Uint8Array | undefined): void {
    const { segment, bitmap, count } = entry
    if (count === 0) return
    try {
      if (chunk === undefined) throw new RangeError('a chunk of the index of names is missing')
      const list = findList(chunk, key)
      const other = list === null ? new Bitmap(segment.size) : readPostings(list, segment.size)
      if (bitmap === null) entry.bitmap = other
      else bitmap.intersect(other)
      entry.count = (bitmap ?? other).count()
      shares.set(key, entry.count / count)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      entry.isDamaged = true
    }
  }

  return function* findCandidates(group) {
    const entries = group.map(begin)
    const covered = {
      from: Math.min(...group.map(({ first }) => first)),
      to: Math.max(...group.map(({ first, size }) => first + size)),
    }
    let marks: readonly BlockMarks[] = []
    for (let index = 0; index < keys.length; index += keysAtOnce) {
      const some = keys.slice(index, index + keysAtOnce)
      const open = entries.filter(
        ({ isInTime, bitmap, count, isDamaged }) =>
          !isDamaged && isInTime.includes(true) && (bitmap === null || count > fewCandidates),
      )
      if (index > 0 && open.length === 0) break
      const chunkNumber = ({ id, bits }: Segment, key: number) => id * chunksPerSegment + chunkOf(key, bits)
      const numbers = new Set(open.flatMap(({ segment }) => some.map((key) => chunkNumber(segment, key))))
      const results = yield { ...noReads, chunks: [...numbers], marks: index === 0 ? covered : null }
      if (index === 0) marks = results.marks
      for (const entry of open)
        for (const key of some) intersect(entry, key, results.chunks.get(chunkNumber(entry.segment, key)))
    }
    keys = keys.toSorted((one, other) => (shares.get(one) ?? 0) - (shares.get(other) ?? 0))
    const marksOf = new Map(marks.map((entry) => [entry.block, entry]))
    return entries.map((entry) => ({
      numbers: numbersOf(entry, marksOf),
      isSkipped: !entry.isInTime.includes(true),
    }))
  }
}

/** The numbers of the candidates of a segment, with regard to the marks of its blocks. */
function numbersOf(
  { segment, isInTime, bitmap, isDamaged }: Intersection,
  marksOf: ReadonlyMap<number, BlockMarks>,
): number[] {
  const found = bitmap ?? new Bitmap(segment.size)
  if (isDamaged) found.bytes.fill(0xff)
  for (const [index, isListed] of isInTime.entries()) {
    const block = found.bytes.subarray((index * blockSize) / 8, ((index + 1) * blockSize) / 8)
    if (!isListed) block.fill(0)
    // Items that were added again can have any time.
    const marks = marksOf.get(segment.first / blockSize + index)
    if (marks === undefined) continue
    for (let byte = 0; byte < block.length; byte += 1)
      block[byte] = ((block[byte] ?? 0) & ~(marks.removed[byte] ?? 0)) | (marks.changed[byte] ?? 0)
  }
  const numbers: number[] = []
  found.appendTo(numbers, segment.first)
  return numbers
}
