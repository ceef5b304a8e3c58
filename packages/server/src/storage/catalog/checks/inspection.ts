import type { ItemId, UploadId } from '../../../core/ids.ts'
import type { BucketId, ContentId } from '../records.ts'
import {
  all,
  bucketIdOf,
  bytes,
  contentIdOf,
  type EngineName,
  first,
  integer,
  itemIdOf,
  type Query,
  type Row,
  text,
  uploadIdOf,
  type Work,
  write,
} from '../statements.ts'
import { findUnreferenced, retireIds } from '../upkeep.ts'
import { type BucketFault, bucketFaults, bucketIds, correctBucket } from './bucket-counters.ts'
import { correctMeta, type MetaFault, metaFaults } from './meta.ts'
import { checkedTables, type RowFault, removeDangling, repeatedValues, wrongRows } from './row-inspection.ts'

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

/** A part of an unfinished upload, as checks of the data read it. */
export interface InspectedPart {
  readonly uploadId: UploadId
  readonly number: number
  readonly itemId: ItemId
  /** Bytes. */
  readonly size: number
  /** The MD5 of its bytes in hexadecimal digits. */
  readonly etag: string
}

/** What the engine's own check of its files finds; all lists are empty if they are intact. */
export interface CatalogDamage {
  readonly details: readonly string[]
  /** Items whose rows cannot be read. */
  readonly rows: readonly ItemId[]
  /** Items whose rows can be read, but not their bytes in the catalog. */
  readonly bytes: readonly ItemId[]
}

/** The buckets whose counters are compared with their rows. */
export interface BucketSelection {
  /** Ids of buckets that are left out. */
  readonly except: ReadonlySet<number>
  /** Receives the error of a bucket that cannot be counted. */
  readonly onFailure: (id: BucketId, error: unknown) => void
}

const allBuckets: BucketSelection = {
  except: new Set(),
  onFailure(_, error) {
    throw error
  },
}

/** Operations of checks; all of them are safe while a server is running. */
export interface CatalogInspection {
  damage(): Promise<CatalogDamage>

  count(): Promise<{ items: number; bytes: number }>

  /** Up to `limit` items after this one, or from the first if it is null. */
  items(after: Pick<InspectedItem, 'bucketId' | 'seq'> | null, limit: number): Promise<InspectedItem[]>

  /** Up to `limit` parts of objects after this one, or from the first if it is null. */
  parts(after: Pick<InspectedPart, 'uploadId' | 'number'> | null, limit: number): Promise<InspectedPart[]>

  /** As `Catalog.content`. */
  content(id: ContentId): Promise<Uint8Array<ArrayBuffer> | null>

  /** Bytes in the catalog that no item has. */
  orphanedContents(): Promise<ContentId[]>

  removeContents(ids: readonly ContentId[]): Promise<void>

  /** Returns the ids that no item, tombstone, unfinished upload or part has. */
  findUnreferenced(ids: readonly ItemId[]): Promise<ItemId[]>

  /**
   * As findUnreferenced, in a transaction that permanently reserves the returned ids: no item can have them, so their bytes can be
   * moved while uploads are running.
   */
  retire(ids: readonly ItemId[]): Promise<readonly ItemId[]>

  /** Tombstones of ids that an item, an unfinished upload or a part has. They are wrong, because the bytes of such an id are not those of a deleted item. */
  wrongTombstones(): Promise<ItemId[]>

  /** Removes the tombstones of wrongTombstones, as they are in its transaction. Returns their ids. */
  removeWrongTombstones(): Promise<ItemId[]>

  /** Unfinished uploads with the id of an item, whose bytes are not those of the upload. */
  uploadsOfItems(): Promise<UploadId[]>

  /** Marks items whose bytes have changed; ignores the ids of deleted items. */
  markDamaged(ids: readonly ItemId[]): Promise<void>

  unmarkDamaged(ids: readonly ItemId[]): Promise<void>

  /** Compares the values of all columns of all tables with what the service writes, in batches. */
  wrongRows(): AsyncIterable<readonly RowFault[]>

  /** Removes the rows of a table that depend on rows which do not exist. Returns how many. */
  removeDangling(table: string): Promise<number>

  /** The rows about the whole catalog that are missing or malformed. */
  metaFaults(): Promise<MetaFault[]>

  /** Also corrects them, in one transaction. Returns the corrected ones. Running services must be restarted then. */
  correctMeta(): Promise<MetaFault[]>

  /** Compares the counters of each bucket with its rows, in one snapshot for each bucket. */
  bucketFaults(selection?: BucketSelection): Promise<BucketFault[]>

  /** Also corrects the counters, in one transaction for each bucket. Returns the corrected faults. */
  recount(selection?: BucketSelection): Promise<BucketFault[]>

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

const rowsPerRead = 500

/** All items, in batches. Each batch is one read, so no snapshot stays open between them. */
export const itemBatches = (inspection: Pick<CatalogInspection, 'items'>): AsyncGenerator<InspectedItem[]> =>
  batches((last) => inspection.items(last, rowsPerRead))

/** All parts of unfinished uploads, in batches, as itemBatches. */
export const partBatches = (inspection: Pick<CatalogInspection, 'parts'>): AsyncGenerator<InspectedPart[]> =>
  batches((last) => inspection.parts(last, rowsPerRead))

async function* batches<Row>(read: (last: Row | null) => Promise<Row[]>): AsyncGenerator<Row[]> {
  let last: Row | null = null
  for (;;) {
    const rows: Row[] = await read(last)
    if (rows.length > 0) yield rows
    if (rows.length < rowsPerRead) return
    last = rows.at(-1) ?? null
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

const listParts = (
  after: Pick<InspectedPart, 'uploadId' | 'number'> | null,
  limit: number,
): Query<InspectedPart[]> =>
  all(
    (row) => ({
      uploadId: uploadIdOf(row, 0),
      number: integer(row, 1),
      itemId: itemIdOf(row, 2),
      size: integer(row, 3),
      etag: text(row, 4),
    }),
    `SELECT upload_id, number, item_id, size, etag FROM object_parts WHERE (upload_id, number) > ($1, $2)
    ORDER BY upload_id, number LIMIT $3`,
    ...[after?.uploadId ?? '', after?.number ?? -1, limit],
  )

const orphans = {
  sqlite:
    'SELECT id FROM contents WHERE id NOT IN (SELECT content_id FROM items WHERE content_id IS NOT NULL)',
  postgres:
    'SELECT id FROM contents WHERE NOT EXISTS (SELECT FROM items WHERE items.content_id = contents.id)',
}

const isNamed = `EXISTS (SELECT 1 FROM items WHERE items.id = tombstones.id)
  OR EXISTS (SELECT 1 FROM uploads WHERE item_id = tombstones.id AND finished = 0)
  OR EXISTS (SELECT 1 FROM object_parts WHERE item_id = tombstones.id)`

/** Ids in one transaction. It takes a few milliseconds, during which a running server's writes may wait. */
const idsPerWrite = 500

/** How an engine runs the statements of checks. */
export interface InspectionEngine {
  readonly name: EngineName
  query<T>(query: Query<T>): Promise<T>
  /** Runs a query in one snapshot. Calls the function again if the snapshot is lost. */
  querySnapshot<T>(query: () => Query<T>): Promise<T>
  /** Runs one transaction. Calls the function again if the transaction must be repeated. */
  write<T>(work: () => Work<T>): Promise<T>
  damage(): Promise<CatalogDamage>
  close(): Promise<void>
}

export function createInspection(engine: InspectionEngine): CatalogInspection {
  const { name, query, querySnapshot, write: apply } = engine

  async function inChunks<Id, T>(ids: readonly Id[], work: (some: readonly Id[]) => Work<T>): Promise<T[]> {
    const results: T[] = []
    for (let done = 0; done < ids.length; done += idsPerWrite)
      results.push(await apply(() => work(ids.slice(done, done + idsPerWrite))))
    return results
  }

  const faultsOf = (id: BucketId) => querySnapshot(() => bucketFaults(id, name))

  async function ofEachBucket(
    check: (id: BucketId) => Promise<readonly BucketFault[]>,
    { except, onFailure } = allBuckets,
  ): Promise<BucketFault[]> {
    const faults: BucketFault[] = []
    for (const id of await query(bucketIds())) {
      if (except.has(id)) continue
      try {
        faults.push(...(await check(id)))
      } catch (error) {
        onFailure(id, error)
      }
    }
    return faults
  }

  return {
    damage: engine.damage,
    count: async () => (await query(countItems())) ?? { items: 0, bytes: 0 },
    items: (after, limit) => query(listItems(after, limit)),
    parts: (after, limit) => query(listParts(after, limit)),
    content: (id) => query(first((row) => bytes(row, 0), 'SELECT bytes FROM contents WHERE id = $1', id)),
    orphanedContents: () => query(all((row) => contentIdOf(row, 0), orphans)),
    async removeContents(ids) {
      await inChunks(ids, (some) => write('DELETE FROM contents WHERE id = ANY ($1::int8[])', some))
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
      await inChunks(ids, (some) => write(marks, some))
    },
    async unmarkDamaged(ids) {
      await inChunks(ids, (some) => write('DELETE FROM damaged WHERE id = ANY ($1::text[])', some))
    },
    async *wrongRows() {
      for (const [table, check] of checkedTables(name)) yield* wrongRows(table, check, name, query)
      yield await query(repeatedValues())
    },
    removeDangling: (table) => apply(() => removeDangling(table)),
    metaFaults: () => query(metaFaults()),
    correctMeta: () => apply(correctMeta),
    bucketFaults: (selection) => ofEachBucket(faultsOf, selection),
    recount: (selection) =>
      // Locks out a server's writes only for a bucket that is wrong, and only while it is counted again.
      ofEachBucket(
        async (id) => ((await faultsOf(id)).length > 0 ? await apply(() => correctBucket(id, name)) : []),
        selection,
      ),
    close: engine.close,
  }
}
