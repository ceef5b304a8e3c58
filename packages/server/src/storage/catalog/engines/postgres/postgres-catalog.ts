import { bucketDeleted } from '../../../../core/faults.ts'
import type { ItemId } from '../../../../core/ids.ts'
import { pageSize } from '../../../../core/page.ts'
import { listKeys, type SigningKey } from '../../access/keys.ts'
import { findTokenGrant } from '../../access/service-tokens.ts'
import { grantColumns, readGrant } from '../../access/tokens.ts'
import {
  bucketColumns,
  expiredOfBucket,
  hasManyExpired,
  liveBucketOf,
  servabilityOf,
  stateOfBucket,
} from '../../buckets.ts'
import { type Catalog, type CatalogEngine, type CatalogOptions, createCatalogFor } from '../../catalog.ts'
import { bucketRevisions } from '../../feed/feed.ts'
import { placedItemColumns, readLiveItem } from '../../items/item-rows.ts'
import {
  createSearchQueue,
  isLongSearch,
  isSearch,
  listAtOnce,
  searchItems,
} from '../../lists/item-searches.ts'
import { readFence } from '../../moved-data.ts'
import { findKey } from '../../objects/object-keys.ts'
import type { Bucket, BucketId, ContentId, Grant, Item, PageRows, Servability } from '../../records.ts'
import { bytes, integer, type Query, type Row, text } from '../../statements.ts'
import { readMeta } from '../../upkeep.ts'
import { pageOf, pageRows, type Reads, readItemsAt, readLivePage } from './positions.ts'
import { openDatabase, requireNoTransfer } from './postgres-database.ts'
import { PostgresBell } from './postgres-feed-bell.ts'
import { openWriter } from './postgres-writer.ts'
import { asFault, bytesArray, isUnreachable, type Run, runQuery, type Session } from './session.ts'

export interface PostgresCatalogOptions extends CatalogOptions {
  /** The URL of the database. */
  readonly url: string
  /** `server` for the service, `command` for commands, which use fewer connections. */
  readonly role: 'server' | 'command'
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
  let onOpened = () => {}
  const connections = await openDatabase(options.url, { ...counts, onOpened: () => onOpened() })
  const { epoch, fence } = await readOpened(connections).catch(async (error: unknown) => {
    await connections.close()
    throw error
  })
  const writer = openWriter(connections, fence, counts.writers, options.onCommit ?? (() => {}))
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

  const inSnapshot: Reads['inSnapshot'] = <T>(query: () => Query<T>) => {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    reading((session) => querySnapshot(session, query(), resolve)).catch(reject)
    return promise
  }
  const reads = { run, inSnapshot }

  const { grants, pages, items, buckets, contents, keys } = createHotReads(reads)
  const { apply } = writer
  const queue = createSearchQueue(counts.readers > 1 ? counts.readers / 3 : 1)

  const bell = new PostgresBell(connections, (ids) => runQuery(run, bucketRevisions(ids)))

  const engine: CatalogEngine = {
    epoch,
    bell,
    location: async () => text((await run('SELECT catalog_location()'))[0] ?? [''], 0) || null,
    query: (query) => runQuery(run, query),
    apply,
    pendingCount: writer.pendingCount,
    logBytes: () => 0,
    findGrant: grants.read,
    page: async (bucketId, page) => requirePage(await pages.read({ bucketId, page })),
    async items(selection, after, limit) {
      const search = () => inSnapshot(() => searchItems('postgres', selection, after, limit))
      if (!isSearch(selection)) return (await runQuery(run, listAtOnce(selection, after, limit))) ?? search()
      return isLongSearch(selection) ? queue(selection.bucketId, search) : search()
    },
    itemsAt: (bucketId, order, first, limit) => readItemsAt(reads, bucketId, order, first, limit),
    item: items.read,
    servability: (ids) => readServability(run, ids),
    content: contents.read,
    bucket: buckets.read,
    signingKeys: () => keys.read('all'),
    findKey: (bucketId, key) => runQuery(run, findKey(bucketId, key)),
    findTokenGrant: (id, bucket) => runQuery(run, findTokenGrant(id, bucket)),
    async close() {
      isClosed = true
      await writer.close()
      await bell.close()
      await connections.close()
    },
  }
  const catalog = await createCatalogFor(engine, options)
  if (options.role === 'server') onOpened = checksAfterward(catalog, () => isClosed)
  return catalog
}

/** Reads the fence, and the epoch, of a catalog to which no transfer is under way; damaged data may have no epoch, and then it is empty. */
async function readOpened(
  connections: Parameters<typeof requireNoTransfer>[0],
): Promise<{ readonly epoch: string; readonly fence: number }> {
  await requireNoTransfer(connections)
  return connections.read(async ({ run }) => ({
    epoch: (await runQuery(run, readMeta('epoch'))) ?? '',
    fence: await runQuery(run, readFence()),
  }))
}

/** Milliseconds from the opening of connections to a comparison, and between attempts that fail. */
const checkDelay = 100
const checkInterval = 1_000

/**
 * Returns a function to be called after the opening of a connection. It compares soon whether the database has all changes that this process has announced
 * others of: a replica that has become the primary may lack the last ones.
 */
function checksAfterward(
  catalog: Pick<Catalog, 'checkHistory' | 'announcedChanges'>,
  isClosed: () => boolean,
): () => void {
  let timer: NodeJS.Timeout | null = null
  function plan(delay: number): void {
    if (isClosed()) return
    timer ??= setTimeout(() => {
      timer = null
      catalog.checkHistory(catalog.announcedChanges()).catch(() => plan(checkInterval))
    }, delay)
    timer.unref()
  }
  return () => plan(checkDelay)
}

/** The reads that requests wait for. Those that are requested at the same time share a round trip. */
interface HotReads {
  readonly grants: BatchedReads<Uint8Array, Grant | null>
  readonly pages: BatchedReads<{ bucketId: BucketId; page: number }, PageRows | 'no bucket'>
  readonly items: BatchedReads<ItemId, Item | null>
  readonly buckets: BatchedReads<BucketId, Bucket | null>
  /** All keys. */
  readonly keys: BatchedReads<'all', readonly SigningKey[]>
  readonly contents: BatchedReads<ContentId, Uint8Array<ArrayBuffer> | null>
}

// Each statement returns the number of the key (from 1) in its last column. The arrays of keys are subqueries, whose values the planner does not
// look at: it would plan each execution again for the number of its keys. It looks each key up, also in a new table: otherwise it would read
// the whole table, and continue to do so while the table grows, until PostgreSQL analyses it.

const grantRows = `SELECT ${grantColumns('postgres', '$2')}, wanted.number
  FROM unnest((SELECT $1::bytea[])) WITH ORDINALITY AS wanted (hash, number)
  CROSS JOIN LATERAL (SELECT * FROM tokens WHERE tokens.hash = wanted.hash LIMIT 1) AS tokens
  CROSS JOIN LATERAL (SELECT * FROM buckets WHERE buckets.id = tokens.bucket_id LIMIT 1) AS buckets
  WHERE require_primary()`

const itemRows = `SELECT ${placedItemColumns}, wanted.number
  FROM unnest((SELECT $1::text[])) WITH ORDINALITY AS wanted (id, number)
  CROSS JOIN LATERAL (SELECT * FROM items WHERE items.id = wanted.id LIMIT 1) AS items`

const bucketRows = `SELECT ${bucketColumns}, ${expiredOfBucket('postgres', '$2')}, wanted.number
  FROM unnest((SELECT $1::int8[])) WITH ORDINALITY AS wanted (id, number)
  CROSS JOIN LATERAL (SELECT * FROM buckets WHERE buckets.id = wanted.id LIMIT 1) AS buckets`

const contentRows = `SELECT bytes, wanted.number
  FROM unnest((SELECT $1::int8[])) WITH ORDINALITY AS wanted (id, number)
  CROSS JOIN LATERAL (SELECT * FROM contents WHERE contents.id = wanted.id LIMIT 1) AS contents`

/** The most contents in one read. Each can have a million characters, so this limits the memory of a read. */
const contentLimit = 8

function createHotReads(parts: Reads): HotReads {
  const { run, inSnapshot } = parts
  async function readEach<Value, Missing>(
    count: number,
    missing: Missing,
    read: (row: Row) => Value,
    rows: Promise<readonly Row[]>,
  ): Promise<(Value | Missing)[]> {
    const values: (Value | Missing)[] = Array.from({ length: count }, () => missing)
    for (const row of await rows) values[integer(row, row.length - 1) - 1] = read(row)
    return values
  }
  return {
    grants: createBatchedReads({
      concurrency: 2,
      limit: 256,
      identify: (hash) => Buffer.from(hash.buffer, hash.byteOffset, hash.byteLength).toString('latin1'),
      readAll: (hashes) =>
        readEach(hashes.length, null, readGrant, run(grantRows, bytesArray(hashes), Date.now())),
    }),
    pages: createBatchedReads({
      concurrency: 2,
      limit: 16,
      identify: ({ bucketId, page }) => `${bucketId} ${page}`,
      async readAll(keys) {
        const now = Date.now()
        const buckets = keys.map(({ bucketId }) => bucketId)
        const firsts = keys.map(({ page }) => (page - 1) * pageSize)
        const read = run(pageRows, buckets, firsts, now)
        const pages = await readEach(keys.length, 'no bucket' as const, pageOf, read)
        return Promise.all(
          keys.map(async ({ bucketId, page: number }, index) => {
            const page = pages[index] ?? 'no bucket'
            return page === 'no bucket' || page.expired === 0 || hasManyExpired(page)
              ? page
              : inSnapshot(() => readLivePage(bucketId, (number - 1) * pageSize, now))
          }),
        )
      },
    }),
    items: createBatchedReads({
      concurrency: 2,
      limit: 64,
      identify: (id) => id,
      readAll: (ids) => readEach(ids.length, null, readLiveItem, run(itemRows, ids)),
    }),
    buckets: createBatchedReads({
      concurrency: 1,
      limit: 256,
      identify: (id) => id,
      readAll: (ids) => readEach(ids.length, null, liveBucketOf, run(bucketRows, ids, Date.now())),
    }),
    keys: createBatchedReads({
      concurrency: 2,
      limit: 1,
      identify: (all) => all,
      readAll: async () => [await runQuery(run, listKeys())],
    }),
    contents: createBatchedReads({
      concurrency: 2,
      limit: contentLimit,
      identify: (id) => id,
      readAll: (ids) => readEach(ids.length, null, (row) => bytes(row, 0), run(contentRows, ids)),
    }),
  }
}

/** As ItemReads.servability. */
async function readServability(run: Run, ids: readonly ItemId[]): Promise<readonly Servability[]> {
  if (ids.length === 0) return []
  const rows = await run(
    `SELECT items.id, renamed, ${stateOfBucket}, focus FROM unnest((SELECT $1::text[])) AS wanted (id)
    CROSS JOIN LATERAL (SELECT * FROM items WHERE items.id = wanted.id LIMIT 1) AS items
    WHERE bucket_id > 0 AND coalesce(item_expires_at > $2, true) AND NOT EXISTS (SELECT FROM damaged WHERE damaged.id = items.id)`,
    ...[ids, Date.now()],
  )
  const stateOf = (row: Row) =>
    servabilityOf(integer(row, 2), { isRenamed: row[1] !== null, hasFocus: row[3] !== null })
  const found = new Map(rows.map((row) => [text(row, 0), stateOf(row)] as const))
  return ids.map((id) => found.get(id) ?? 'not')
}

/** Returns the page. Throws Fault `bucket-unknown` if its bucket was deleted. */
function requirePage(found: PageRows | 'no bucket'): PageRows {
  if (found === 'no bucket') throw bucketDeleted()
  return found
}

interface Pending<Key, Value> {
  readonly key: Key
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

export interface BatchedReads<Key, Value> {
  read(key: Key): Promise<Value>
}

/**
 * Reads many keys in one round trip. While `concurrency` reads are in progress, further keys are collected for the next one, so a
 * read always begins after its keys were requested. Equal keys of one read share its result. If the database cannot be reached, all
 * collected keys are rejected too: each further attempt would take seconds.
 */
export function createBatchedReads<Key, Value>(parts: {
  readonly concurrency: number
  /** The largest number of different keys in one read. */
  readonly limit: number
  readonly identify: (key: Key) => string | number
  /** Returns a value for each key, in their order. */
  readonly readAll: (keys: readonly Key[]) => Promise<readonly Value[]>
}): BatchedReads<Key, Value> {
  const { concurrency, limit, identify, readAll } = parts
  let pending: Pending<Key, Value>[] = []
  let inProgress = 0
  let isScheduled = false

  function start(): void {
    isScheduled = false
    while (inProgress < concurrency && pending.length > 0) void readBatch(takeBatch())
  }

  /** The pending reads of up to `limit` different keys, by key. */
  function takeBatch(): Pending<Key, Value>[][] {
    const batch = new Map<string | number, Pending<Key, Value>[]>()
    const left: Pending<Key, Value>[] = []
    for (const one of pending) {
      const name = identify(one.key)
      const same = batch.get(name)
      if (same) same.push(one)
      else if (batch.size < limit) batch.set(name, [one])
      else left.push(one)
    }
    pending = left
    return [...batch.values()]
  }

  async function readBatch(batch: Pending<Key, Value>[][]): Promise<void> {
    inProgress += 1
    try {
      const values = await readAll(batch.flatMap(([first]) => (first ? [first.key] : [])))
      for (const [index, same] of batch.entries()) {
        const value = values[index]
        if (value === undefined) throw new RangeError('a read returned too few values')
        for (const { resolve } of same) resolve(value)
      }
    } catch (error) {
      const rejected = isUnreachable(error) ? [...batch.flat(), ...pending.splice(0)] : batch.flat()
      for (const { reject } of rejected) reject(error)
    }
    inProgress -= 1
    start()
  }

  return {
    read: (key) =>
      new Promise((resolve, reject) => {
        pending.push({ key, resolve, reject })
        if (isScheduled || inProgress >= concurrency) return
        isScheduled = true
        // After all requests that arrived in this iteration of the event loop.
        setImmediate(start)
      }),
  }
}

/**
 * The plan of each statement is a scan of the index in the order of the search, which ends at its limit, whatever the statistics say. So it is
 * the same for all values, and each connection makes it once.
 */
const begin = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off;
  SET LOCAL enable_mergejoin = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off;
  SET LOCAL plan_cache_mode = force_generic_plan`

/**
 * Runs a query in one snapshot. The transaction takes no round trips of its own: its beginning is sent together with the first statement, and its
 * end after the result is passed on.
 */
async function querySnapshot<T>(
  { run, execute }: Session,
  query: Query<T>,
  onFound: (found: T) => void,
): Promise<void> {
  const begun = execute(begin)
  // The statement after it fails too, or its result is not used.
  begun.catch(() => undefined)
  try {
    const found = await runQuery(run, query)
    await begun
    onFound(found)
    await execute('COMMIT')
  } catch (error) {
    // The connection is used again. If it is lost, the first error says so.
    await execute('ROLLBACK').catch(() => undefined)
    throw error
  }
}
