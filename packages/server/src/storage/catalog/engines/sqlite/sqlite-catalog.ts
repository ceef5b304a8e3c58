import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { bucketDeleted } from '../../../../core/faults.ts'
import type { ItemId } from '../../../../core/ids.ts'
import { pageSize } from '../../../../core/page.ts'
import type { ItemOrder } from '../../../../core/queries.ts'
import { listKeys } from '../../access/keys.ts'
import { grantColumns, readGrant } from '../../access/tokens.ts'
import {
  bucketColumns,
  expiredColumn,
  expiredOfBucket,
  liveBucketOf,
  servabilityOf,
  stateOfBucket,
} from '../../buckets.ts'
import { type Catalog, type CatalogEngine, type CatalogOptions, createCatalogFor } from '../../catalog.ts'
import { bucketRevisions } from '../../feed/feed.ts'
import { createFeedBell } from '../../feed/feed-bell.ts'
import { readFromPosition } from '../../items/expired-items.ts'
import { itemColumns } from '../../items/item-columns.ts'
import { placedItemColumns, readItemDetails, readLiveItem } from '../../items/item-rows.ts'
import { isLive } from '../../items/items.ts'
import { isLongSearch, searchFirst, searchItems } from '../../lists/item-searches.ts'
import type {
  Bucket,
  BucketId,
  Grant,
  Item,
  ItemDetails,
  ItemPlace,
  ItemRows,
  ItemSelection,
  PageRows,
  PositionedItems,
  Servability,
} from '../../records.ts'
import { integer, integerOrNull, itemIdOf, type Row, textOrNull } from '../../statements.ts'
import { isNew, readMeta } from '../../upkeep.ts'
import { type ContentReader, createContentReaderThread, openDirectContentReader } from './contents.ts'
import { explainOpenError, openDataDirectory, placeOf, requireNoTransfer } from './data-directory.ts'
import {
  createObjectReads,
  createUnchangedRows,
  inOneTransaction,
  TickReads,
  UnchangedReads,
} from './hot-reads.ts'
import { createNameSearchThread, openDirectNameSearches } from './name-search.ts'
import { all, createRun, one, prepareSnapshots, readTimeout, withFaults } from './sqlite-database.ts'
import { type LocateItem, prepareLocateItem } from './sqlite-ranks.ts'
import { openDirectWriter, startWriterThread, type Writer } from './sqlite-writer.ts'

export interface SqliteCatalogOptions extends CatalogOptions {
  /** The data directory; created if it does not exist. */
  readonly directory: string
  /** `thread` for the server, `direct` for commands: see storage/catalog/engines/sqlite/sqlite-writer.ts and storage/catalog/engines/sqlite/contents.ts. */
  readonly writer: 'thread' | 'direct'
  /** Called when the writing thread has ended unexpectedly: all later changes fail. */
  readonly onWriterFailure?: (error: Error) => void
  /** Receives the seconds of each transaction of the writer thread. */
  readonly onCommit?: (seconds: number) => void
}

export async function openSqliteCatalog(options: SqliteCatalogOptions): Promise<Catalog> {
  const { directory, onWriterFailure = () => {}, onCommit = () => {} } = options
  const db = openDataDirectory(directory, readTimeout)
  let writer: Writer
  try {
    writer =
      options.writer === 'thread'
        ? await startWriterThread(directory, onWriterFailure, onCommit)
        : openDirectWriter(directory)
  } catch (error) {
    db.close()
    throw error
  }
  const { reads, epoch, servability, run } = await openReads(db, directory).catch(async (error: unknown) => {
    db.close()
    await writer.close()
    throw error
  })
  const contents: ContentReader =
    options.writer === 'thread' ? createContentReaderThread(directory) : openDirectContentReader(db)

  const names = options.writer === 'thread' ? createNameSearchThread(directory) : openDirectNameSearches(db)

  const grants = new UnchangedReads(db, {
    keyOf: latin1,
    read: reads.findGrant,
    expiryOf: ({ nextExpiry }) => nextExpiry,
  })
  const keys = new UnchangedReads(db, {
    keyOf: (all: 'all') => all,
    read: () => run(listKeys()),
    expiryOf: () => null,
  })
  const objects = createObjectReads(db, run)
  const pages = new TickReads(inOneTransaction(db, reads.pages))

  const bell = createFeedBell({
    revisions: async (ids) => withFaults(() => run(bucketRevisions(ids))),
    hasChanged: watchVersion(db),
    interval: () => bellInterval,
  })

  const engine: CatalogEngine = {
    epoch,
    bell,
    location: async () => placeOf(join(directory, 'catalog.db')),
    query: async (query) => withFaults(() => run(query)),
    apply: writer.apply,
    pendingCount: writer.pendingCount,
    logBytes: () => logBytes(directory),
    findGrant: grants.read,
    page: (bucketId, page) => pages.read({ bucketId, page }),
    async items(selection, after, limit) {
      if (!isLongSearch(selection)) return withFaults(() => reads.items(selection, after, limit))
      // Rows that are sent between threads take more time than it takes to read them.
      const found = withFaults(() => reads.firstItems(selection, after, limit))
      return found ?? names.search({ selection, after, limit })
    },
    itemsAt: async (bucketId, order, first, limit) =>
      withFaults(() => reads.itemsAt(bucketId, order, first, limit)),
    item: async (id) => withFaults(() => reads.item(id)),
    servability: async (ids) => withFaults(() => servability(ids)),
    content: contents.read,
    bucket: async (id) => withFaults(() => reads.bucket(id)),
    signingKeys: async () => (await keys.read('all')) ?? [],
    findKey: objects.findKey,
    findTokenGrant: objects.findTokenGrant,
    async close() {
      bell.close()
      grants.flush()
      keys.flush()
      objects.flush()
      pages.flush()
      // The last connection to close checkpoints the log; that sync must run on the writer thread.
      if (db.isOpen) db.close()
      await contents.close()
      await names.close()
      await writer.close()
    },
  }
  return createCatalogFor(engine, options)
}

/** Milliseconds in which changes of other processes are noticed. */
const bellInterval = 50

/** Returns a function that says whether another connection, also of this process, has committed since its last call. */
function watchVersion(db: DatabaseSync): () => boolean {
  const dataVersion = db.prepare('PRAGMA data_version')
  let known: number | null = null
  return () => {
    const before = known
    known = integer(one(dataVersion) ?? [], 0)
    return known !== before
  }
}

/** The bytes as a string of the same length, which takes less time than hexadecimal digits. */
const latin1 = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString('latin1')

/** 0 if there is no log. */
const logBytes = (directory: string): number =>
  statSync(join(directory, 'catalog.db-wal'), { throwIfNoEntry: false })?.size ?? 0

/**
 * Prepares the statements, which fails if an index is missing, and reads one row, which fails if the table is damaged. Rejects with
 * DataDirectoryError: it is `async` so that what it throws becomes a rejection.
 */
async function openReads(db: DatabaseSync, directory: string) {
  try {
    db.exec('PRAGMA query_only = ON')
    requireNoTransfer(db, directory)
    const reads = prepareReads(db, prepareLocateItem(db))
    const run = createRun(db)
    run(isNew())
    return {
      reads,
      epoch: run(readMeta('epoch')) ?? '',
      servability: prepareServability(db),
      run,
    }
  } catch (error) {
    throw explainOpenError(join(directory, 'catalog.db'), error)
  }
}

const pageItem = 'id, extension'
const readPageItem = (row: Row) => ({ id: itemIdOf(row, 0), extension: textOrNull(row, 1) })

/** The reads of one connection. A read that begins a transaction also ends it. */
export interface Reads {
  /** The items that have expired at `now` are not counted. */
  findGrant(tokenHash: Uint8Array, now: number): Grant | null
  /** Returns a function for the pages of one transaction, which reads the state of each bucket once. Pages are numbered from 1. */
  pages(): (key: { readonly bucketId: BucketId; readonly page: number }) => PageRows
  items(selection: ItemSelection, after: ItemPlace | null, limit: number): ItemRows
  /** As `items`, for a long search; null if it would take long. */
  firstItems(selection: ItemSelection, after: ItemPlace | null, limit: number): ItemRows | null
  itemsAt(bucketId: BucketId, order: ItemOrder, first: number, limit: number): PositionedItems
  item(id: ItemId): Item | null
  bucket(id: BucketId): Bucket | null
}

export function prepareReads(db: DatabaseSync, locate: LocateItem): Reads {
  const findGrant = db.prepare(`SELECT ${grantColumns('sqlite', '?2')}
    FROM tokens JOIN buckets ON buckets.id = tokens.bucket_id WHERE hash = ?1`)
  const bucketState = db.prepare(
    `SELECT revision, total, next_seq, ${expiredColumn('sqlite', '?2')} FROM buckets WHERE id = ?1`,
  )
  const pageRows = db.prepare(`SELECT ${pageItem} FROM items WHERE bucket_id = ? AND seq >= ?
    ORDER BY seq LIMIT ${pageSize} OFFSET ?`)
  const seqAt = db.prepare(
    'SELECT seq FROM items WHERE bucket_id = ? AND seq >= ? ORDER BY seq LIMIT 1 OFFSET ?',
  )
  const expiredBefore = db.prepare(`SELECT count(*) FROM items INDEXED BY items_item_expiry
    WHERE bucket_id = ? AND item_expires_at IS NOT NULL AND item_expires_at <= ? AND seq < ?`)
  const livePageRows =
    db.prepare(`SELECT ${pageItem} FROM items WHERE bucket_id = ?1 AND seq >= ?2 AND ${isLive('?3')}
    ORDER BY seq LIMIT ${pageSize} OFFSET ?4`)
  const positionedRows = db.prepare(`SELECT ${itemColumns} FROM items
    WHERE bucket_id = ?1 AND seq >= ?2 AND ${isLive('?3')} ORDER BY seq LIMIT ?5 + 0 OFFSET ?4`)
  const item = db.prepare(`SELECT ${placedItemColumns} FROM items WHERE id = ?`)
  const bucket = db.prepare(
    `SELECT ${bucketColumns}, ${expiredOfBucket('sqlite', '?2')} FROM buckets WHERE id = ?1`,
  )
  const run = createRun(db)
  const inSnapshot = prepareSnapshots(db).run

  function stateOf(bucketId: BucketId, now: number): Row {
    const row = one(bucketState, bucketId, now)
    if (!row) throw bucketDeleted()
    return row
  }

  const readPage = (bucketId: BucketId, bucket: Row, page: number, now: number): PageRows => {
    const revision = integer(bucket, 0)
    const expired = integer(bucket, 3)
    const total = integer(bucket, 1) - expired
    // Above 2⁵³ the product is rounded, but exceeds every total.
    const first = (page - 1) * pageSize
    if (first >= total) return { revision, expired, total, rows: [] }
    const rows =
      expired > 0
        ? run(readFromPosition('sqlite', bucketId, first, pageSize, now, pageItem, readPageItem))
        : null
    if (rows !== null) return { revision, expired, total, rows }
    const { seq, skip } = locate({ id: bucketId, revision, nextSeq: integer(bucket, 2) }, first)
    const found = expired === 0 ? all(pageRows, bucketId, seq, skip) : livePage(bucketId, seq, skip, now)
    return { revision, expired, total, rows: found.map(readPageItem) }
  }

  /** In the order of uploads, from this position among the live items on. */
  function readAt(bucketId: BucketId, row: Row, first: number, limit: number, now: number): ItemDetails[] {
    const found =
      integer(row, 3) > 0
        ? run(readFromPosition('sqlite', bucketId, first, limit, now, itemColumns, readItemDetails))
        : null
    if (found !== null) return found
    const { seq, skip } = locate({ id: bucketId, revision: integer(row, 0), nextSeq: integer(row, 2) }, first)
    // As livePage.
    const start = integer(one(seqAt, bucketId, seq, skip) ?? [], 0)
    const preceding = integer(row, 3) === 0 ? 0 : integer(one(expiredBefore, bucketId, now, start) ?? [], 0)
    return all(positionedRows, bucketId, start, now, preceding, limit).map(readItemDetails)
  }

  /** The ranks count expired items. As many live items are skipped as expired ones precede the rank of the page. */
  function livePage(bucketId: BucketId, seq: number, skip: number, now: number): Row[] {
    const start = integer(one(seqAt, bucketId, seq, skip) ?? [], 0)
    const preceding = integer(one(expiredBefore, bucketId, now, start) ?? [], 0)
    return all(livePageRows, bucketId, start, now, preceding)
  }

  return {
    findGrant(tokenHash, now) {
      const row = one(findGrant, tokenHash, now)
      return row && readGrant(row)
    },

    pages() {
      const now = Date.now()
      const states = new Map<BucketId, Row>()
      function read(bucketId: BucketId, page: number): PageRows {
        const state = states.get(bucketId) ?? stateOf(bucketId, now)
        states.set(bucketId, state)
        return readPage(bucketId, state, page, now)
      }
      return ({ bucketId, page }) => {
        // After an error that has ended the transaction, each page has its own.
        if (!db.isTransaction) states.clear()
        return inSnapshot(() => read(bucketId, page))
      }
    },

    items: (selection, after, limit) => inSnapshot(() => run(searchItems('sqlite', selection, after, limit))),

    firstItems: (selection, after, limit) =>
      inSnapshot(() => run(searchFirst('sqlite', selection, after, limit))),

    itemsAt: (bucketId, order, first, limit) =>
      inSnapshot(() => {
        const now = Date.now()
        const row = stateOf(bucketId, now)
        const state = { revision: integer(row, 0), expired: integer(row, 3) }
        const total = integer(row, 1) - state.expired
        const count = Math.min(limit, total - first)
        if (count <= 0) return { ...state, total, items: [] }
        if (order === 'oldest') return { ...state, total, items: readAt(bucketId, row, first, count, now) }
        const items = readAt(bucketId, row, total - first - count, count, now)
        return { ...state, total, items: items.reverse() }
      }),

    item(id) {
      const row = one(item, id)
      return row && readLiveItem(row)
    },

    bucket(id) {
      const row = one(bucket, id, Date.now())
      return row && liveBucketOf(row)
    },
  }
}

interface State {
  readonly servability: Servability
  /** Milliseconds since the epoch; null if the item does not expire. */
  readonly expiresAt: number | null
}

/** Returns a function that reads whether items can be served now. What it reads is used again until the database changes. */
export function prepareServability(db: DatabaseSync): (ids: readonly ItemId[]) => Servability[] {
  // Reads no row of `items`, only its indexes.
  const state =
    db.prepare(`SELECT CASE WHEN EXISTS (SELECT 1 FROM damaged WHERE damaged.id = items.id) THEN 2 ELSE ${stateOfBucket} END,
    EXISTS (SELECT 1 FROM items INDEXED BY items_renamed WHERE id = ?1 AND renamed IS NOT NULL),
    EXISTS (SELECT 1 FROM items INDEXED BY items_focused WHERE id = ?1 AND focus IS NOT NULL),
    (SELECT item_expires_at FROM items INDEXED BY items_expiring WHERE id = ?1 AND item_expires_at IS NOT NULL)
    FROM items WHERE id = ?1 AND bucket_id > 0`)
  const inSnapshot = prepareSnapshots(db).run
  const rows = createUnchangedRows<ItemId, State>(db, {
    keyOf: (id) => id,
    read(id) {
      const row = one(state, id)
      if (row === null) return null
      const item = { isRenamed: integer(row, 1) === 1, hasFocus: integer(row, 2) === 1 }
      return { servability: servabilityOf(integer(row, 0), item), expiresAt: integerOrNull(row, 3) }
    },
  })

  function servability(id: ItemId, now: number): Servability {
    const row = rows.read(id)
    if (row === null || (row.expiresAt !== null && row.expiresAt <= now)) return 'not'
    return row.servability
  }

  return (ids) => {
    rows.refresh()
    const now = Date.now()
    const read = () => ids.map((id) => servability(id, now))
    // Taking SQLite's locks costs more than finding a row.
    if (ids.every(rows.has)) return read()
    return inSnapshot(() => {
      // The rows in memory and those that are read must be of the same version.
      rows.refresh()
      return read()
    })
  }
}
