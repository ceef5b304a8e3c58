import type { Actor } from '../../core/actor.ts'
import { type Catalog, type CatalogEngine, createCatalog } from '../catalog.ts'
import { DatabaseError } from '../catalog-errors.ts'
import { createSearchQueue } from '../name-search.ts'
import { text } from '../rows.ts'
import { transferKey } from '../transfer.ts'
import { readMeta } from '../upkeep.ts'
import type { Connections } from './connections.ts'
import { createHotReads, readServability, requirePage } from './hot-reads.ts'
import { readItems } from './item-lists.ts'
import { searchItems } from './name-search.ts'
import { openDatabase } from './open-database.ts'
import { asFault } from './postgres-errors.ts'
import type { Session } from './session.ts'
import { runQuery } from './statements.ts'
import { openWriter } from './writer.ts'

export interface PostgresCatalogOptions {
  /** The URL of the database. */
  readonly url: string
  /** `server` for the service, `command` for commands, which use fewer connections. */
  readonly role: 'server' | 'command'
  /** Who makes the changes for which no actor is given. Without it, nothing is recorded in the audit log. */
  readonly actor?: Actor | null
  /** Receives the seconds of each transaction. */
  readonly onCommit?: (seconds: number) => void
}

const connectionCounts = {
  server: { readers: 6, writers: 3 },
  command: { readers: 1, writers: 1 },
} as const

/** Throws DatabaseError and CatalogVersionError. */
export async function openPostgresCatalog(options: PostgresCatalogOptions): Promise<Catalog> {
  const counts = connectionCounts[options.role]
  const connections = await openDatabase(options.url, counts)
  await requireNoTransfer(connections).catch(async (error: unknown) => {
    await connections.close()
    throw error
  })
  const writer = openWriter(connections, counts.writers, options.onCommit ?? (() => {}))
  let isClosed = false

  async function reading<T>(work: (session: Session) => Promise<T>): Promise<T> {
    if (isClosed) throw new Error('the catalog is closed')
    try {
      return await connections.read(work)
    } catch (error) {
      throw asFault(error)
    }
  }
  const run = (statement: string, ...values: unknown[]) =>
    reading((session) => session.run(statement, ...values))

  const { grants, pages, items, buckets, contents, keys } = createHotReads(run)
  const { apply } = writer
  const [row = []] = await run("SELECT value FROM meta WHERE key = 'epoch'")

  const queue = createSearchQueue(counts.readers > 1 ? counts.readers / 3 : 1)

  const engine: CatalogEngine = {
    epoch: text(row, 0),
    query: (query) => runQuery(run, query),
    apply,
    pendingCount: writer.pendingCount,
    logBytes: () => 0,
    findGrant: grants.read,
    page: async (bucketId, page) => requirePage(await pages.read({ bucketId, page })),
    async items(selection, after, limit) {
      const { bucketId, name } = selection
      if (name === null) return readItems(run, selection, after, limit)
      return queue(bucketId, () => reading((session) => searchItems(session, selection, name, after, limit)))
    },
    item: items.read,
    servability: (ids) => readServability(run, ids),
    content: contents.read,
    bucket: buckets.read,
    signingKeys: () => keys.read('all'),
    settle: () => apply({ kind: 'settle', input: null }),
    async close() {
      isClosed = true
      await writer.close()
      await connections.close()
    },
  }
  return createCatalog(engine, options.actor ?? null)
}

/** Throws DatabaseError while the catalog has only a part of the rows that are transferred into it. */
async function requireNoTransfer(connections: Connections): Promise<void> {
  if ((await connections.read((session) => runQuery(session.run, readMeta(transferKey)))) === null) return
  throw new DatabaseError(
    'The database is incomplete, because its migration was interrupted. Run the same mediabucket migrate again.',
  )
}
