import type { ItemId, UploadId } from '../../core/ids.ts'
import { indexOf, raisedRevision, defaultShape as shape, slotOf, topLevel } from './buckets.ts'
import { correctNames, wrongNames } from './item-names.ts'
import { countWrongLabels, rebuildLabels } from './labels.ts'
import type { BucketId, ContentId } from './records.ts'
import {
  all,
  bucketIdOf,
  bytes,
  change,
  contentIdOf,
  type EngineName,
  eachEngine,
  first,
  integer,
  integerOrNull,
  itemIdOf,
  type Query,
  type Row,
  text,
  uploadIdOf,
  type Work,
} from './statements.ts'
import { correctLimits, wrongReservations } from './token-limits.ts'
import { isTrash, refreshExpiry } from './trash.ts'
import { findUnreferenced, retireIds } from './upkeep.ts'

/** An item, as checks of the data read it. */
export interface InspectedItem {
  readonly bucketId: BucketId
  /** Its sequence number in the bucket; with the bucket, the position to continue from. */
  readonly seq: number
  readonly id: ItemId
  /** Bytes. */
  readonly size: number
  readonly sha256: Uint8Array
  /** An earlier check found its bytes changed. */
  readonly damaged: boolean
  /** Its bytes in the catalog; null if they are in the blob store. */
  readonly contentId: ContentId | null
}

/** What the engine's own check of its files finds; all lists are empty if they are intact. */
export interface CatalogDamage {
  readonly details: readonly string[]
  /** Items whose rows cannot be read. */
  readonly rows: readonly ItemId[]
  /** Items whose rows can be read, but not their bytes in the catalog. */
  readonly bytes: readonly ItemId[]
}

/** Operations of checks; all of them are safe while a server is running. */
export interface CatalogInspection {
  damage(): Promise<CatalogDamage>

  count(): Promise<{ items: number; bytes: number }>

  /** Up to `limit` items after this one, or from the first if it is null. */
  items(after: Pick<InspectedItem, 'bucketId' | 'seq'> | null, limit: number): Promise<InspectedItem[]>

  /** As `Catalog.content`. */
  content(id: ContentId): Promise<Uint8Array<ArrayBuffer> | null>

  /** Bytes in the catalog that no item has. */
  orphanedContents(): Promise<ContentId[]>

  removeContents(ids: readonly ContentId[]): Promise<void>

  /** Returns the ids that no item, tombstone or unfinished upload has. */
  findUnreferenced(ids: readonly ItemId[]): Promise<ItemId[]>

  /**
   * As findUnreferenced, in a transaction that permanently reserves the returned ids: no item can have them, so their bytes can be
   * moved while uploads are running.
   */
  retire(ids: readonly ItemId[]): Promise<readonly ItemId[]>

  /** Tombstones of ids that an item or an unfinished upload has. They are wrong, because the bytes of such an id are not those of a deleted item. */
  wrongTombstones(): Promise<ItemId[]>

  /** Removes the tombstones of wrongTombstones, as they are in its transaction. Returns their ids. */
  removeWrongTombstones(): Promise<ItemId[]>

  /** Unfinished uploads with the id of an item, whose bytes are not those of the upload. */
  uploadsOfItems(): Promise<UploadId[]>

  /** Marks items whose bytes have changed; ignores the ids of deleted items. */
  markDamaged(ids: readonly ItemId[]): Promise<void>

  unmarkDamaged(ids: readonly ItemId[]): Promise<void>

  /** Compares the counters of each bucket with its rows, in one snapshot for each bucket. */
  bucketFaults(): Promise<BucketFault[]>

  /** Also corrects the counters, in one transaction for each bucket. Returns the corrected faults. */
  recount(): Promise<BucketFault[]>

  close(): Promise<void>
}

/** What a snapshot does not have, because it is on damaged pages. */
export interface MissingRows {
  readonly items: readonly ItemId[]
  /** Whether events of the audit log are missing. */
  readonly hasLostEvents: boolean
}

/** A catalog in a directory, which backups and restores copy. */
export interface CopyableInspection extends CatalogInspection {
  /**
   * Writes a snapshot of all rows into an existing directory without a catalog. Not synced. Rows and bytes of items on damaged pages are
   * taken from an earlier snapshot, or left out, and so are events on them. Bytes that are missing are not in the result.
   */
  snapshot(directory: string, earlier: string | null): Promise<MissingRows>

  /** Makes a restored copy independent: a new epoch, no unfinished uploads, tombstones and intents. */
  renew(): Promise<void>
}

const itemsPerRead = 500

/** All items, in batches. Each batch is one read, so no snapshot stays open between them. */
export async function* itemBatches(
  inspection: Pick<CatalogInspection, 'items'>,
): AsyncGenerator<InspectedItem[]> {
  let last: InspectedItem | null = null
  for (;;) {
    const items: InspectedItem[] = await inspection.items(last, itemsPerRead)
    if (items.length > 0) yield items
    if (items.length < itemsPerRead) return
    last = items.at(-1) ?? null
  }
}

const readInspectedItem = (row: Row): InspectedItem => ({
  bucketId: bucketIdOf(row, 0),
  seq: integer(row, 1),
  id: itemIdOf(row, 2),
  size: integer(row, 3),
  sha256: bytes(row, 4),
  damaged: integer(row, 5) === 1,
  contentId: row[6] === null ? null : contentIdOf(row, 6),
})

const countItems = (): Query<{ items: number; bytes: number } | null> =>
  first(
    (row) => ({ items: integer(row, 0), bytes: integer(row, 1) }),
    'SELECT count(*), coalesce(sum(size), 0)::int8 FROM items',
  )

const listItems = (
  after: Pick<InspectedItem, 'bucketId' | 'seq'> | null,
  limit: number,
): Query<InspectedItem[]> =>
  all(
    readInspectedItem,
    `SELECT bucket_id, seq, items.id, size, sha256, (damaged.id IS NOT NULL)::int4, content_id
    FROM items LEFT JOIN damaged ON damaged.id = items.id
    WHERE (bucket_id, seq) > ($1, $2) ORDER BY bucket_id, seq LIMIT $3`,
    ...[after?.bucketId ?? Number.MIN_SAFE_INTEGER, after?.seq ?? -1, limit],
  )

const orphans = {
  sqlite:
    'SELECT id FROM contents WHERE id NOT IN (SELECT content_id FROM items WHERE content_id IS NOT NULL)',
  postgres:
    'SELECT id FROM contents WHERE NOT EXISTS (SELECT FROM items WHERE items.content_id = contents.id)',
}

const isNamed = `EXISTS (SELECT 1 FROM items WHERE items.id = tombstones.id)
  OR EXISTS (SELECT 1 FROM uploads WHERE item_id = tombstones.id AND finished = 0)`

/** Ids in one transaction. It takes a few milliseconds, during which a running server's writes may wait. */
const idsPerChange = 500

/** How an engine runs the statements of checks. */
export interface InspectionEngine {
  readonly name: EngineName
  query<T>(query: Query<T>): Promise<T>
  /** Runs a query in one snapshot. Calls the function again if the snapshot is lost. */
  querySnapshot<T>(query: () => Query<T>): Promise<T>
  /** Runs one transaction. Calls the function again if the transaction must be repeated. */
  change<T>(work: () => Work<T>): Promise<T>
  damage(): Promise<CatalogDamage>
  close(): Promise<void>
}

export function createInspection(engine: InspectionEngine): CatalogInspection {
  const { name, query, querySnapshot, change: apply } = engine

  async function inChunks<Id, T>(ids: readonly Id[], work: (some: readonly Id[]) => Work<T>): Promise<T[]> {
    const results: T[] = []
    for (let done = 0; done < ids.length; done += idsPerChange)
      results.push(await apply(() => work(ids.slice(done, done + idsPerChange))))
    return results
  }

  return {
    damage: engine.damage,
    count: async () => (await query(countItems())) ?? { items: 0, bytes: 0 },
    items: (after, limit) => query(listItems(after, limit)),
    content: (id) => query(first((row) => bytes(row, 0), 'SELECT bytes FROM contents WHERE id = $1', id)),
    orphanedContents: () => query(all((row) => contentIdOf(row, 0), orphans)),
    async removeContents(ids) {
      await inChunks(ids, (some) => change('DELETE FROM contents WHERE id = ANY ($1::int8[])', some))
    },
    findUnreferenced: (ids) => query(findUnreferenced(ids)),
    retire: async (ids) => (await inChunks(ids, retireIds)).flat(),
    wrongTombstones: () =>
      query(all((row) => itemIdOf(row, 0), `SELECT id FROM tombstones WHERE ${isNamed}`)),
    removeWrongTombstones: () =>
      apply(() => all((row) => itemIdOf(row, 0), `DELETE FROM tombstones WHERE ${isNamed} RETURNING id`)),
    uploadsOfItems: () =>
      query(
        all(
          (row) => uploadIdOf(row, 0),
          `SELECT id FROM uploads WHERE finished = 0
          AND EXISTS (SELECT 1 FROM items WHERE items.id = item_id)`,
        ),
      ),
    async markDamaged(ids) {
      const marks =
        'INSERT INTO damaged (id) SELECT id FROM items WHERE id = ANY ($1::text[]) ON CONFLICT DO NOTHING'
      await inChunks(ids, (some) => change(marks, some))
    },
    async unmarkDamaged(ids) {
      await inChunks(ids, (some) => change('DELETE FROM damaged WHERE id = ANY ($1::text[])', some))
    },
    async bucketFaults() {
      const faults: BucketFault[] = []
      for (const id of await query(bucketIds()))
        faults.push(...(await querySnapshot(() => bucketFaults(id, name))))
      return faults
    },
    async recount() {
      const corrected: BucketFault[] = []
      // Locks out a server's writes only for a bucket that is wrong, and only while it is counted again.
      for (const id of await query(bucketIds()))
        if ((await querySnapshot(() => bucketFaults(id, name))).length > 0)
          corrected.push(...(await apply(() => correctBucket(id, name))))
      return corrected
    },
    close: engine.close,
  }
}

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
    | 'feed'
  /** A message with the stored value and that of the rows. */
  readonly detail: string
}

/** The stored counters of a bucket that differ, and all counters that its rows give. */
interface Counted {
  readonly bucket: string
  readonly faults: BucketFault[]
  readonly total: number
  readonly bytes: number
  readonly nextSeq: number
  /** The highest number that the feed has had. */
  readonly lastChange: number
  readonly reserved: readonly [items: number, bytes: number]
  readonly nodes: readonly RankNode[]
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
  return `SELECT name, total, bytes, next_seq, reserved_items, reserved_bytes, next_expiry,
    (SELECT min(item_expires_at) FROM ${table} WHERE bucket_id = $1 AND item_expires_at IS NOT NULL),
    revision, changes_start, coalesce((SELECT max(number) FROM changes WHERE bucket_id = $1), 0),
    (SELECT count(*) FROM changes WHERE bucket_id = $1 AND number <= changes_start)
    FROM buckets WHERE id = $1`
})

/** Compares the counters of the bucket with its rows, in the transaction of the caller. Null if there is no bucket. */
function* count(id: BucketId, engine: EngineName): Query<Counted | null> {
  const stored = yield* first(
    (row) => ({
      bucket: text(row, 0),
      total: integer(row, 1),
      bytes: integer(row, 2),
      nextSeq: integer(row, 3),
      reserved: `${integer(row, 4)} items, ${integer(row, 5)} bytes`,
      expiry: integerOrNull(row, 6),
      firstExpiry: integerOrNull(row, 7),
      revision: integer(row, 8),
      changesStart: integer(row, 9),
      lastChange: Math.max(integer(row, 9), integer(row, 10)),
      earlyChanges: integer(row, 11),
    }),
    countersRow,
    id,
  )
  if (stored === null) return null
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
  const total = blocks.reduce((sum, { items }) => sum + items, 0)
  const bytes = blocks.reduce((sum, block) => sum + block.bytes, trashed ?? 0)
  const nextSeq = blocks.reduce((highest, { last }) => Math.max(highest, last + 1), stored.nextSeq)
  const nodes = rankNodes(blocks, nextSeq)
  const reserved = yield* first(
    (row) => [integer(row, 0), integer(row, 1)] as const,
    `SELECT count(*), coalesce(sum(coalesce(length, received)), 0)::int8
    FROM uploads WHERE bucket_id = $1 AND finished = 0`,
    id,
  )
  const [items, reservedBytes] = reserved ?? [0, 0]
  const limited = yield* wrongReservations(id)

  const { bucket } = stored
  const faults: BucketFault[] = []
  const compare = (what: BucketFault['what'], stored: number | string, counted: number | string) => {
    if (stored !== counted)
      faults.push({ bucket, what, detail: `${stored} is stored, the rows add up to ${counted}` })
  }
  compare('total', stored.total, total)
  compare('bytes', stored.bytes, bytes)
  compare('sequence', stored.nextSeq, nextSeq)
  compare('reserved', stored.reserved, `${items} items, ${reservedBytes} bytes`)
  for (const { stored, counted } of limited) compare('reserved', stored, counted)
  // The next change would get a number that a row has, or that readers have passed by.
  const { revision, lastChange, changesStart, earlyChanges } = stored
  if (revision < lastChange)
    faults.push({
      ...{ bucket, what: 'feed' },
      detail: `revision ${revision} is stored, the feed has had number ${lastChange}`,
    })
  // A reader of these is refused at the next request.
  else if (earlyChanges > 0)
    faults.push({
      ...{ bucket, what: 'feed' },
      detail: `the feed begins after number ${changesStart}, and has ${earlyChanges} changes up to it`,
    })
  // The next expiry of the trash is not checked: a sweep removes expired items of the trash.
  const late = lateExpiry(stored.expiry, isTrash(id) ? null : stored.firstExpiry)
  if (late !== null) faults.push({ bucket, what: 'expiry', detail: late })
  const wrong = yield* wrongNodes(id, nodes, engine)
  if (wrong > 0) faults.push({ bucket, what: 'ranks', detail: `${wrong} nodes do not match the rows` })
  return { bucket, faults, total, bytes, nextSeq, lastChange, reserved: [items, reservedBytes], nodes }
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
function* bucketFaults(id: BucketId, engine: EngineName): Query<BucketFault[]> {
  const counted = yield* count(id, engine)
  if (counted === null) return []
  const { bucket, faults } = counted
  const labels = yield* countWrongLabels(id)
  return [...faults, ...nameFaults(bucket, yield* wrongNames(id)), ...labelFaults(bucket, labels)]
}

const nameFaults = (bucket: string, wrong: number): BucketFault[] =>
  wrong === 0
    ? []
    : [{ bucket, what: 'names', detail: `${wrong} rows do not match the names of their items` }]

const labelFaults = (bucket: string, wrong: number): BucketFault[] =>
  wrong === 0
    ? []
    : [{ bucket, what: 'labels', detail: `${wrong} rows of the index do not match the labels of items` }]

const bucketLock = { sqlite: null, postgres: 'SELECT FROM buckets WHERE id = $1 FOR UPDATE' }
const raise = eachEngine((engine) => `UPDATE buckets SET revision = ${raisedRevision[engine]} WHERE id = $1`)
const correction = eachEngine(
  (engine) => `UPDATE buckets SET revision = ${raisedRevision[engine]}, total = $1, bytes = $2, next_seq = $3,
    reserved_items = $4, reserved_bytes = $5 WHERE id = $6`,
)

/** Also corrects the counters, in the transaction of the caller, and changes the revision, because pages may contain the wrong total. */
export function* correctBucket(id: BucketId, engine: EngineName): Work<BucketFault[]> {
  yield* change(bucketLock, id)
  const counted = yield* count(id, engine)
  if (counted === null) return []
  const { bucket, faults } = counted
  if (faults.length > 0) yield* correctCounters(id, counted, engine)
  const names = yield* correctNames(id)
  const labels = yield* countWrongLabels(id)
  if (labels > 0) yield* rebuildLabels(id)
  if (names + labels > 0) yield* change(raise, id)
  return [...faults, ...nameFaults(bucket, names), ...labelFaults(bucket, labels)]
}

function* correctCounters(
  id: BucketId,
  { total, bytes, nextSeq, lastChange, reserved, nodes }: Counted,
  engine: EngineName,
): Work<void> {
  const { textOf, insert } = rankRows[engine]
  yield* change('DELETE FROM ranks WHERE bucket_id = $1', id)
  for (const { level, slot, counts } of nodes) yield* change(insert, id, level, slot, textOf(counts))
  yield* change('UPDATE buckets SET revision = $2 WHERE id = $1 AND revision < $2', id, lastChange)
  yield* change(
    'DELETE FROM changes WHERE bucket_id = $1 AND number <= (SELECT changes_start FROM buckets WHERE id = $1)',
    id,
  )
  yield* change(correction, total, bytes, nextSeq, ...reserved, id)
  yield* correctLimits(id)
  if (!isTrash(id)) yield* refreshExpiry(id)
}
