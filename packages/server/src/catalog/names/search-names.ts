import { matchesName } from '../../core/name-search.ts'
import { kindOf } from '../item-kinds.ts'
import type { Item, ItemPlace, ItemSelection } from '../records.ts'
import { createCandidates, type GroupSizes } from './candidates.ts'
import { type NameReads, type NameResults, noReads } from './name-reads.ts'
import type { Segment } from './segments.ts'

/** Names that one search reads at most, where an item and a segment count as several: the search ends early, and its rows say where. */
const budget = 40_000
const itemCost = 4
const segmentCost = 100
/** The cost of a segment without items of the chosen time, whose posting lists are not read. */
const skippedSegmentCost = 10
/** Items that are read together, at first and at most. */
const [firstBatch, largestBatch] = [64, 512]
/** Names that are read together. */
const nameBatch = 1024

/** The state of the index in the snapshot of a search. */
export interface NameIndex {
  /** By their first numbers. */
  readonly segments: readonly Segment[]
  /** The next sequence number of the bucket. */
  readonly nextSeq: number
  /** Items that have expired by this time are not found. */
  readonly now: number
}

export interface FoundNames {
  readonly rows: readonly { readonly seq: number; readonly item: Item }[]
  /** The last place that was examined, if the search ended early; null if it found `limit` items or examined all. */
  readonly examined: ItemPlace | null
  /** Names that were read because they are not indexed. */
  readonly scanned: number
}

/** A part of the numbers: covered by segments that are read together, or not indexed. */
type Part = { readonly group: readonly Segment[] } | { readonly from: number; readonly to: number }

/**
 * Finds up to `limit` items whose names have all terms, in the order of their numbers. A coroutine: it yields what it needs to read, so
 * that one algorithm serves an engine that reads synchronously and one that does not. The posting lists only exclude items. Each
 * candidate is read and compared.
 */
export function* searchNames(
  { segments, nextSeq, now }: NameIndex,
  selection: ItemSelection,
  terms: readonly string[],
  after: ItemPlace | null,
  limit: number,
  sizes: GroupSizes,
): Generator<NameReads, FoundNames, NameResults> {
  const { order, kind, from, to } = selection
  const isNewest = order === 'newest'
  // Numbers from `low` to below `high` are still to be examined.
  const low = isNewest ? 0 : (after?.seq ?? -1) + 1
  const high = isNewest ? Math.min(after?.seq ?? nextSeq, nextSeq) : nextSeq
  const candidates = createCandidates({ terms, kind, from, to }, sizes)
  const rows: { seq: number; item: Item }[] = []
  let left = budget
  let scanned = 0
  let batch = Math.min(limit, firstBatch)

  const isSelected = ({ filename, contentType, createdAt, expiresAt }: Item): boolean =>
    (expiresAt == null || expiresAt > now) &&
    (kind === null || kindOf(contentType) === kind) &&
    createdAt >= (from ?? createdAt) &&
    (to === null || createdAt < to) &&
    matchesName(filename, terms)

  /** Reads these items, which are in order, and keeps the selected ones. Returns the last number that it examined, if it must stop. */
  function* examine(seqs: readonly number[]): Generator<NameReads, number | null, NameResults> {
    for (let start = 0; start < seqs.length; start += batch) {
      if (start > 0) batch = Math.min(batch * 2, largestBatch)
      const some = seqs.slice(start, start + batch)
      const { items } = yield { ...noReads, items: some }
      const found = new Map(items.map(({ seq, item }) => [seq, item]))
      for (const seq of some) {
        const item = found.get(seq)
        if (item === undefined || !isSelected(item)) continue
        rows.push({ seq, item })
        if (rows.length === limit) return seq
      }
      left -= some.length * itemCost
      if (left <= 0) return some.at(-1) ?? null
    }
    return null
  }

  function result(stopped: number | null): FoundNames {
    const hasExaminedAll = stopped === null || (isNewest ? stopped <= low : stopped >= high - 1)
    const endedEarly = !hasExaminedAll && rows.length < limit
    return { rows, examined: endedEarly ? { seq: stopped, createdAt: 0 } : null, scanned }
  }

  /** As examine, of the candidates of a group. */
  function* search(group: readonly Segment[]): Generator<NameReads, number | null, NameResults> {
    for (let start = 0, end = 0; start < group.length; start = end) {
      // No more than the budget allows, however large the group is.
      end = start + Math.ceil(left / segmentCost)
      const some = group.slice(start, end)
      let cost = 0
      for (const { numbers, isSkipped } of yield* candidates(some)) {
        cost += isSkipped ? skippedSegmentCost : segmentCost
        const inRange = numbers.filter((seq) => seq >= low && seq < high)
        const stopped = yield* examine(isNewest ? inRange.reverse() : inRange)
        if (stopped !== null) return stopped
      }
      left -= cost
      const last = some.at(-1)
      if (left <= 0 && last) return isNewest ? last.first : last.first + last.size - 1
    }
    return null
  }

  /** As examine, of all items of a range. */
  function* scan(range: { from: number; to: number }): Generator<NameReads, number | null, NameResults> {
    for (let { from, to } = range; from < to; ) {
      const { names } = yield { ...noReads, names: { from, to, limit: nameBatch, isNewest } }
      left -= names.length
      scanned += names.length
      const matching = names.filter(({ filename }) => matchesName(filename, terms)).map(({ seq }) => seq)
      const stopped = yield* examine(matching)
      if (stopped !== null) return stopped
      const last = names.at(-1)
      const isEnd = last === undefined || names.length < nameBatch
      // Without budget left, `search` would take no segment and never end.
      if (isEnd && left <= 0) return isNewest ? range.from : range.to - 1
      if (isEnd) return null
      if (left <= 0) return last.seq
      if (isNewest) to = last.seq
      else from = last.seq + 1
    }
    return null
  }

  for (const part of partsOf(segments, { from: low, to: high }, isNewest, sizes)) {
    const stopped = yield* 'from' in part ? scan(part) : search(part.group)
    if (stopped !== null) return result(stopped)
  }
  return result(null)
}

/** Divides a range into parts, in the order of the search. The groups become larger, because most searches need few of them. */
function* partsOf(
  segments: readonly Segment[],
  { from: low, to: high }: { readonly from: number; readonly to: number },
  isNewest: boolean,
  { segments: first, growth }: GroupSizes,
): Generator<Part> {
  const ends = ({ first, size }: Segment) => first + size
  const inRange = segments.filter((segment) => ends(segment) > low && segment.first < high)
  const ordered = isNewest ? inRange.toReversed() : inRange
  let group: Segment[] = []
  let groupSize = first
  let [start, end] = [low, high]
  for (const segment of ordered) {
    const gap = isNewest ? { from: ends(segment), to: end } : { from: start, to: segment.first }
    if (gap.from < gap.to || group.length >= groupSize) {
      if (group.length > 0) yield { group }
      if (group.length >= groupSize) groupSize *= growth
      group = []
    }
    if (gap.from < gap.to) yield gap
    group.push(segment)
    if (isNewest) end = segment.first
    else start = ends(segment)
  }
  if (group.length > 0) yield { group }
  if (start < end) yield { from: start, to: end }
}
