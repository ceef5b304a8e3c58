import { correctLimits, wrongReservations } from '../access/token-limits.ts'
import { indexOf, raisedRevision, defaultShape as shape, slotOf, topLevel } from '../buckets.ts'
import { resetCounts, wrongCounts } from '../items/expired-items.ts'
import { correctNames, wrongNames } from '../items/item-names.ts'
import { countWrongLabels, rebuildLabels } from '../items/labels.ts'
import { isTrash, refreshExpiry } from '../items/trash.ts'
import { correctKeyedCounts, wrongKeyedCounts } from '../objects/keyed-counts.ts'
import type { BucketId } from '../records.ts'
import {
  all,
  bucketIdOf,
  type EngineName,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  text,
  type Work,
  write,
} from '../statements.ts'
import { correctUsage, wrongUsage } from './usage-counters.ts'

/** A stored counter, or the time of the next expiry, of a bucket that does not match its rows. */
export interface BucketFault {
  readonly bucket: string
  readonly what:
    | 'total'
    | 'bytes'
    | 'reserved'
    | 'sequence'
    | 'expiry'
    | 'ranks'
    | 'names'
    | 'labels'
    | 'keys'
    | 'feed'
    | 'usage'
  /** A message with the stored value and that of the rows. */
  readonly detail: string
}

/** The counters that the rows of a bucket give. */
interface CountedRows {
  readonly total: number
  readonly bytes: number
  readonly nextSeq: number
  readonly reserved: readonly [items: number, bytes: number]
  readonly nodes: readonly RankNode[]
}

/** These, and the stored ones that differ. */
interface Counted extends CountedRows {
  readonly bucket: string
  readonly faults: BucketFault[]
  /** The highest number that the feed has had. */
  readonly lastChange: number
}

interface RankNode {
  readonly level: number
  readonly slot: number
  readonly counts: number[]
}

/** The nodes of the rank tree as each engine stores them: PostgreSQL has the sums of the counters up to each one. */
const rankRows = {
  sqlite: {
    textOf(counts: readonly number[]): string {
      const bytes = Buffer.alloc(counts.length * 4)
      for (const [index, count] of counts.entries()) bytes.writeUInt32LE(count, index * 4)
      return bytes.toString('hex').toUpperCase()
    },
    select: 'SELECT level, slot, hex(counts) FROM ranks WHERE bucket_id = $1',
    insert: 'INSERT INTO ranks (bucket_id, level, slot, counts) VALUES ($1, $2, $3, unhex($4))',
  },
  postgres: {
    textOf(counts: readonly number[]): string {
      let sum = 0
      const sums = counts.map((count) => {
        sum += count
        return sum
      })
      return `{${sums.join(',')}}`
    },
    select: 'SELECT level, slot, sums::text FROM ranks WHERE bucket_id = $1',
    insert: 'INSERT INTO ranks (bucket_id, level, slot, sums) VALUES ($1, $2, $3, $4::text::int8[])',
  },
} as const

/** Ids by name. */
export const bucketIds = (): Query<BucketId[]> =>
  all((row) => bucketIdOf(row, 0), 'SELECT id FROM buckets ORDER BY name')

const countersRow = eachEngine((engine) => {
  const table = engine === 'sqlite' ? 'items INDEXED BY items_item_expiry' : 'items'
  const counters = ['total', 'bytes', 'reserved_items', 'reserved_bytes'].map(
    (name) => `CAST(${name} AS text)`,
  )
  return `SELECT name, ${counters.join()}, next_seq, next_expiry,
    (SELECT min(item_expires_at) FROM ${table} WHERE bucket_id = $1 AND item_expires_at IS NOT NULL),
    revision, changes_start, coalesce((SELECT max(number) FROM changes WHERE bucket_id = $1), 0),
    (SELECT count(*) FROM changes WHERE bucket_id = $1 AND number <= changes_start AND number > renewed)
    FROM buckets WHERE id = $1`
})

/** Compares the counters of the bucket with its rows, in the transaction of the caller. Null if there is no bucket. */
function* count(id: BucketId, engine: EngineName): Query<Counted | null> {
  const stored = yield* first(readStored, countersRow, id)
  if (stored === null) return null
  const rows = yield* countRows(id, stored.nextSeq)
  const { bucket } = stored
  const faults = [...wrongCounters(stored, rows), ...feedFaults(stored)]
  for (const { stored, counted } of yield* wrongReservations(id))
    faults.push(...differing(bucket, 'reserved', stored, counted))
  // The next expiry of the trash is not checked: a sweep removes expired items of the trash.
  const late = lateExpiry(stored.expiry, isTrash(id) ? null : stored.firstExpiry)
  if (late !== null) faults.push({ bucket, what: 'expiry', detail: late })
  const expired = yield* wrongCounts(id)
  if (expired !== null) faults.push({ bucket, what: 'expiry', detail: expired })
  const usage = isTrash(id) ? null : yield* wrongUsage(id, rows.total, rows.bytes)
  if (usage !== null) faults.push({ bucket, what: 'usage', detail: usage })
  const wrong = yield* wrongNodes(id, rows.nodes, engine)
  if (wrong > 0) faults.push({ bucket, what: 'ranks', detail: `${wrong} nodes do not match the rows` })
  return { bucket, faults, lastChange: stored.lastChange, ...rows }
}

type StoredCounters = ReturnType<typeof readStored>

const readStored = (row: Row) => ({
  bucket: text(row, 0),
  // As texts: damaged ones may be too large for a number.
  total: text(row, 1),
  bytes: text(row, 2),
  reserved: `${text(row, 3)} items, ${text(row, 4)} bytes`,
  nextSeq: integer(row, 5),
  expiry: integerOrNull(row, 6),
  firstExpiry: integerOrNull(row, 7),
  revision: integer(row, 8),
  changesStart: integer(row, 9),
  lastChange: Math.max(integer(row, 9), integer(row, 10)),
  earlyChanges: integer(row, 11),
})

/** The counters that the rows of a bucket give; its sequence is not below `storedSeq`. */
function* countRows(id: BucketId, storedSeq: number): Query<CountedRows> {
  // One row for each leaf block, so that a million items are not a million rows here.
  const blocks = yield* all(
    (row) => ({
      block: integer(row, 0),
      items: integer(row, 1),
      bytes: integer(row, 2),
      last: integer(row, 3),
    }),
    `SELECT seq / ${shape.leaf}, count(*), sum(size)::int8, max(seq) FROM items WHERE bucket_id = $1 GROUP BY 1`,
    id,
  )
  // The bytes of a bucket include those of its trash.
  const trashed = yield* first(
    (row) => integer(row, 0),
    'SELECT coalesce(sum(size), 0)::int8 FROM items WHERE bucket_id = -$1::int8 AND bucket_id < 0',
    id,
  )
  const reserved = yield* first(
    (row) => [integer(row, 0), integer(row, 1)] as const,
    `SELECT (SELECT count(*) FROM uploads WHERE bucket_id = $1 AND finished = 0)
        + (SELECT count(*) FROM object_uploads WHERE bucket_id = $1 AND item IS NULL),
      (coalesce((SELECT sum(coalesce(length, received)) FROM uploads WHERE bucket_id = $1 AND finished = 0), 0)
        + coalesce((SELECT sum(size) FROM object_parts JOIN object_uploads ON object_uploads.id = upload_id
          WHERE bucket_id = $1 AND item IS NULL), 0))::int8`,
    id,
  )
  const nextSeq = blocks.reduce((highest, { last }) => Math.max(highest, last + 1), storedSeq)
  return {
    total: blocks.reduce((sum, { items }) => sum + items, 0),
    bytes: blocks.reduce((sum, block) => sum + block.bytes, trashed ?? 0),
    nextSeq,
    nodes: rankNodes(blocks, nextSeq),
    reserved: reserved ?? [0, 0],
  }
}

function differing(
  bucket: string,
  what: BucketFault['what'],
  stored: unknown,
  counted: unknown,
): BucketFault[] {
  return String(stored) === String(counted)
    ? []
    : [{ bucket, what, detail: `${stored} is stored, the rows add up to ${counted}` }]
}

const wrongCounters = (stored: StoredCounters, rows: CountedRows): BucketFault[] => [
  ...differing(stored.bucket, 'total', stored.total, rows.total),
  ...differing(stored.bucket, 'bytes', stored.bytes, rows.bytes),
  ...differing(stored.bucket, 'sequence', stored.nextSeq, rows.nextSeq),
  ...differing(
    stored.bucket,
    'reserved',
    stored.reserved,
    `${rows.reserved[0]} items, ${rows.reserved[1]} bytes`,
  ),
]

function feedFaults({
  bucket,
  revision,
  lastChange,
  changesStart,
  earlyChanges,
}: StoredCounters): BucketFault[] {
  // The next change would get a number that a row has, or that readers have passed by.
  if (revision < lastChange)
    return [
      {
        ...{ bucket, what: 'feed' },
        detail: `revision ${revision} is stored, the feed has had number ${lastChange}`,
      },
    ]
  // A reader of these is refused at the next request.
  if (earlyChanges > 0)
    return [
      {
        ...{ bucket, what: 'feed' },
        detail: `the feed begins after number ${changesStart}, and has ${earlyChanges} changes up to it`,
      },
    ]
  return []
}

/**
 * Describes the fault of the stored time of the next expiry; null if there is none. A time before the first expiry of the items is no fault:
 * deletions do not change the stored time, and the first request after this time corrects it.
 */
function lateExpiry(stored: number | null, first: number | null): string | null {
  if (first === null || (stored !== null && stored <= first)) return null
  const textOf = (time: number | null) => (time === null ? 'no expiry' : new Date(time).toISOString())
  return `${textOf(stored)} is stored, the first item expires at ${textOf(first)}`
}

/** The rank tree of blocks of items. */
function rankNodes(
  blocks: readonly { readonly block: number; readonly items: number }[],
  nextSeq: number,
): RankNode[] {
  const nodes = new Map<string, RankNode>()
  for (let level = topLevel(shape, nextSeq); level > 0; level--)
    for (const { block, items } of blocks) {
      const seq = block * shape.leaf
      const slot = slotOf(shape, level, seq)
      const node = nodes.get(`${level}/${slot}`) ?? { level, slot, counts: Array(shape.fanOut).fill(0) }
      const index = indexOf(shape, level, seq)
      node.counts[index] = (node.counts[index] ?? 0) + items
      nodes.set(`${level}/${slot}`, node)
    }
  return [...nodes.values()]
}

function* wrongNodes(id: BucketId, nodes: readonly RankNode[], engine: EngineName): Query<number> {
  const { textOf, select } = rankRows[engine]
  const noItems = textOf(Array(shape.fanOut).fill(0))
  const expected = new Map(nodes.map(({ level, slot, counts }) => [`${level}/${slot}`, textOf(counts)]))
  const stored = yield* all(
    (row) => ({ key: `${integer(row, 0)}/${integer(row, 1)}`, counts: text(row, 2) }),
    select,
    id,
  )
  let wrong = 0
  for (const { key, counts } of stored) {
    if (counts !== (expected.get(key) ?? noItems)) wrong += 1
    expected.delete(key)
  }
  return wrong + expected.size
}

/** To be called within a transaction with one snapshot. A bucket that was deleted has no faults. */
export function* bucketFaults(id: BucketId, engine: EngineName): Query<BucketFault[]> {
  const counted = yield* count(id, engine)
  if (counted === null) return []
  const { bucket, faults } = counted
  const labels = yield* countWrongLabels(id)
  const keys = yield* wrongKeyedCounts(id)
  return [
    ...faults,
    ...nameFaults(bucket, yield* wrongNames(id)),
    ...labelFaults(bucket, labels),
    ...keyFaults(bucket, keys),
  ]
}

const nameFaults = (bucket: string, wrong: number): BucketFault[] =>
  wrong === 0
    ? []
    : [{ bucket, what: 'names', detail: `${wrong} rows do not match the names of their items` }]

const labelFaults = (bucket: string, wrong: number): BucketFault[] =>
  wrong === 0
    ? []
    : [{ bucket, what: 'labels', detail: `${wrong} rows of the index do not match the labels of items` }]

const keyFaults = (bucket: string, wrong: number): BucketFault[] =>
  wrong === 0
    ? []
    : [{ bucket, what: 'keys', detail: `${wrong} numbers of items with keys do not match the keys` }]

const bucketLock = { sqlite: null, postgres: 'SELECT FROM buckets WHERE id = $1 FOR UPDATE' }
const raise = eachEngine((engine) => `UPDATE buckets SET revision = ${raisedRevision[engine]} WHERE id = $1`)
const correction = eachEngine(
  (engine) => `UPDATE buckets SET revision = ${raisedRevision[engine]}, total = $1, bytes = $2, next_seq = $3,
    reserved_items = $4, reserved_bytes = $5 WHERE id = $6`,
)

/** Also corrects the counters, in the transaction of the caller, and changes the revision, because pages may contain the wrong total. */
export function* correctBucket(id: BucketId, engine: EngineName): Work<BucketFault[]> {
  yield* write(bucketLock, id)
  const counted = yield* count(id, engine)
  if (counted === null) return []
  const { bucket, faults } = counted
  if (faults.length > 0) yield* correctCounters(id, counted, engine)
  const names = yield* correctNames(id)
  const labels = yield* countWrongLabels(id)
  if (labels > 0) yield* rebuildLabels(id)
  if (names + labels > 0) yield* write(raise, id)
  const keys = yield* wrongKeyedCounts(id)
  if (keys > 0) yield* correctKeyedCounts(id)
  return [...faults, ...nameFaults(bucket, names), ...labelFaults(bucket, labels), ...keyFaults(bucket, keys)]
}

function* correctCounters(
  id: BucketId,
  { total, bytes, nextSeq, lastChange, reserved, nodes }: Counted,
  engine: EngineName,
): Work<void> {
  const { textOf, insert } = rankRows[engine]
  yield* write('DELETE FROM ranks WHERE bucket_id = $1', id)
  for (const { level, slot, counts } of nodes) yield* write(insert, id, level, slot, textOf(counts))
  yield* write('UPDATE buckets SET revision = $2 WHERE id = $1 AND revision < $2', id, lastChange)
  yield* write(
    'DELETE FROM changes WHERE bucket_id = $1 AND number <= (SELECT changes_start FROM buckets WHERE id = $1)',
    id,
  )
  yield* write(correction, total, bytes, nextSeq, ...reserved, id)
  yield* correctLimits(id)
  yield* resetCounts(id)
  if (isTrash(id)) return
  yield* refreshExpiry(id)
  yield* correctUsage(id, total, bytes)
}
