import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Actor } from '../../core/actor.ts'
import type { ItemId } from '../../core/media-id.ts'
import { type Catalog, type CatalogEngine, createCatalog } from '../catalog.ts'
import { listKeys } from '../keys.ts'
import type { BucketId } from '../records.ts'
import { isNew, readMeta } from '../upkeep.ts'
import { createBatchedReads } from './batched-reads.ts'
import { readTimeout } from './connection.ts'
import { type ContentReader, createContentReaderThread, openDirectContentReader } from './content-readers.ts'
import { openDataDirectory } from './data-directory.ts'
import { prepareLocateItem } from './item-locations.ts'
import { createNameSearchThread, openDirectNameSearches } from './name-search.ts'
import { explainOpenError } from './open-errors.ts'
import { type PageKey, prepareReads } from './reads.ts'
import { prepareServability } from './servability.ts'
import { asFault } from './sqlite-errors.ts'
import { createRun } from './statements.ts'
import { requireNoTransfer } from './transfer-marks.ts'
import { createUnchangedRows } from './unchanged-rows.ts'
import { openDirectWriter, startWriterThread, type Writer } from './writers.ts'

export interface SqliteCatalogOptions {
  /** The data directory; created if it does not exist. */
  readonly directory: string
  /** `thread` for the server, `direct` for commands: see writers.ts and content-readers.ts. */
  readonly writer: 'thread' | 'direct'
  /** Who makes the changes for which no actor is given. Without it, nothing is recorded in the audit log. */
  readonly actor?: Actor | null
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

  /** As if no item had expired, because the rows stay in memory. */
  const grantRows = createUnchangedRows(db, {
    keyOf: latin1,
    read: (tokenHash: Uint8Array) => reads.findGrant(tokenHash, Number.NEGATIVE_INFINITY),
  })
  const grants = createBatchedReads(db, (tokenHash: Uint8Array, isFirst) =>
    reading(() => {
      if (isFirst) grantRows.refresh()
      const grant = grantRows.read(tokenHash)
      if (grant === null || grant.nextExpiry === null) return grant
      const now = Date.now()
      return grant.nextExpiry <= now ? reads.findGrant(tokenHash, now) : grant
    }),
  )
  const items = createBatchedReads(db, (id: ItemId) => reading(() => reads.item(id)))
  const pages = createBatchedReads(db, (key: PageKey, isFirst) => reading(() => reads.page(key, isFirst)))
  const buckets = createBatchedReads(db, (id: BucketId) => reading(() => reads.bucket(id)))

  const engine: CatalogEngine = {
    epoch,
    query: async (query) => reading(() => run(query)),
    apply: writer.apply,
    pendingCount: writer.pendingCount,
    logBytes: () => logBytes(directory),
    findGrant: grants.read,
    page: (bucketId, page) => pages.read({ bucketId, page }),
    async items(selection, after, limit) {
      const { name } = selection
      if (name === null) return reading(() => reads.items(selection, after, limit))
      return names.search({ selection, terms: name, after, limit })
    },
    item: items.read,
    servability: async (ids) => reading(() => servability(ids)),
    content: contents.read,
    bucket: buckets.read,
    signingKeys: async () => reading(() => run(listKeys())),
    // A transaction of SQLite ends with its process.
    settle: async () => undefined,
    async close() {
      grants.flush()
      items.flush()
      pages.flush()
      buckets.flush()
      // The last connection to close checkpoints the log; that sync must run on the writer thread.
      if (db.isOpen) db.close()
      await contents.close()
      await names.close()
      await writer.close()
    },
  }
  return createCatalog(engine, options.actor ?? null)
}

/** The bytes as a string of the same length, which takes less time than hexadecimal digits. */
const latin1 = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString('latin1')

function reading<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw asFault(error)
  }
}

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
