import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { DatabaseError as ServerError } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startCommitProxy } from '../../../../../test/harness/commit-proxy.ts'
import { startPgbouncer } from '../../../../../test/harness/pgbouncer.ts'
import { databasePassword, onServer, rowsOf } from '../../../../../test/harness/postgres.ts'
import { Fault } from '../../../src/core/faults.ts'
import { CatalogVersionError, DatabaseError } from '../../../src/storage/catalog/catalog.ts'
import {
  type Connections,
  openConnections,
  parseDatabaseUrl,
  runTransaction,
} from '../../../src/storage/catalog/engines/postgres/connections.ts'
import { openPostgresCatalog } from '../../../src/storage/catalog/engines/postgres/postgres-catalog.ts'
import {
  openPostgresInspection,
  readPostgresOwner,
} from '../../../src/storage/catalog/engines/postgres/postgres-database.ts'
import { PostgresBell } from '../../../src/storage/catalog/engines/postgres/postgres-feed-bell.ts'
import { readPostgresSnapshot } from '../../../src/storage/catalog/engines/postgres/postgres-transfer.ts'
import {
  asFault,
  ConnectionLost,
  isDead,
  sqlState,
} from '../../../src/storage/catalog/engines/postgres/session.ts'
import { bucketIdOf } from '../../../src/storage/catalog/statements.ts'
import { freshDatabase, openCatalog, openSeveral } from './postgres-database.ts'
import {
  allPages,
  contentOf,
  hashOf,
  inBlobStore,
  newBucket,
  newItem,
  newItems,
  withBytes,
} from './samples.ts'

const open = (url: string) => openPostgresCatalog({ url, role: 'command' })

describe('PostgreSQL: migrations', () => {
  test('many processes that open an empty database at once create one catalog', async () => {
    const catalogs = await openSeveral(await freshDatabase(), 8)
    expect(new Set(catalogs.map(({ epoch }) => epoch)).size).toBe(1)
    await Promise.all(catalogs.map((catalog, index) => newBucket(catalog, `bucket ${index}`)))
    expect(await catalogs[0]?.listBuckets()).toHaveLength(8)
  })

  test('O14 a check before a start changes nothing, and reads which bytes belong to the catalog', async () => {
    const url = await freshDatabase()
    expect(await readPostgresOwner(url)).toBeNull()
    expect(await rowsOf(url, "SELECT to_regclass('meta') AS meta")).toEqual([{ meta: null }])
    const catalog = await openCatalog(url)
    const bucketId = await newBucket(catalog, 'b')
    const [item] = newItems(1)
    if (item === undefined) throw new Error('no item')
    await catalog.addItems(bucketId, inBlobStore([item]))
    expect(await readPostgresOwner(url)).toEqual({ identity: null, items: [item.id, item.id] })
    const identity = await catalog.claimBlobsIdentity('a'.repeat(32))
    expect(await readPostgresOwner(url)).toEqual({ identity, items: [] })
  })

  test('a newer version is refused and unchanged', async () => {
    const url = await freshDatabase()
    await (await open(url)).close()
    await onServer(url, "UPDATE meta SET value = '99' WHERE key = 'version'")
    await expect(open(url)).rejects.toThrow(CatalogVersionError)
    await expect(readPostgresOwner(url)).rejects.toThrow(CatalogVersionError)
    await expect(open(url)).rejects.toThrow(/version 99.*newer mediabucket/)
    expect(await rowsOf(url, "SELECT value FROM meta WHERE key = 'version'")).toEqual([{ value: '99' }])
  })

  test('O8 a database of a development version is refused and unchanged', async () => {
    const url = await freshDatabase()
    await (await open(url)).close()
    for (const [version, commit] of Object.entries({ 12: '7ac0c5b8', 13: '661e7aee' })) {
      await onServer(url, `UPDATE meta SET value = '${version}' WHERE key = 'version'`)
      await expect(open(url)).rejects.toThrow(new RegExp(`development version.*commit ${commit}.*restore`))
      expect(await rowsOf(url, "SELECT value FROM meta WHERE key = 'version'")).toEqual([{ value: version }])
    }
  })

  test('a database of another program is refused and unchanged', async () => {
    const url = await freshDatabase()
    await onServer(url, 'CREATE TABLE orders (id int)')
    await expect(open(url)).rejects.toThrow(/another program/)
    const tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    expect(await rowsOf(url, tables)).toEqual([{ relname: 'orders' }])
  })
})

describe('PostgreSQL: a database that cannot be used', () => {
  async function reasonOf(change: (url: URL) => unknown): Promise<string> {
    const url = new URL(await freshDatabase())
    change(url)
    const error: unknown = await open(url.href).then(
      () => null,
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(DatabaseError)
    const message = error instanceof Error ? error.message : ''
    expect(message).not.toContain(decodeURIComponent(databasePassword))
    expect(message).not.toContain(databasePassword)
    return message
  }

  test('is explained in one line without the password: no server, no database, no such user, no TLS, an unknown mode of TLS, no schema', async () => {
    expect(await reasonOf((url) => Object.assign(url, { port: '1' }))).toMatch(
      /ECONNREFUSED.*server is running/,
    )
    expect(await reasonOf((url) => Object.assign(url, { pathname: '/nowhere' }))).toMatch(
      /"nowhere" does not exist/,
    )
    expect(await reasonOf((url) => Object.assign(url, { username: 'nobody' }))).toMatch(/role "nobody"/)
    expect(await reasonOf((url) => Object.assign(url, { search: 'sslmode=verify-full' }))).toMatch(/SSL/)
    expect(await reasonOf((url) => Object.assign(url, { search: 'sslmode=verify' }))).toMatch(
      /sslmode must be one of: disable, .*verify-full/,
    )
    expect(await reasonOf((url) => Object.assign(url, { search: 'options=-c%20search_path%3Dx' }))).toMatch(
      /no schema .*search_path/,
    )
  })

  test('a URL that asks for a replica', () => {
    const parse = (attributes: string) =>
      parseDatabaseUrl(`postgres://h1,h2/d?target_session_attrs=${attributes}`)
    expect(parse('primary').label).toBe('h1:5432,h2:5432/d')
    expect(() => parse('prefer-standby')).toThrow(/target_session_attrs must be read-write/)
  })

  test('a user who may not create tables', async () => {
    const url = await freshDatabase()
    const user = `guest_${new URL(url).pathname.slice(1)}`
    await onServer(url, `CREATE USER ${user}`)
    onTestFinished(() => onServer(url.replace(/[^/]*$/, 'postgres'), `DROP USER ${user}`))
    await expect(open(url.replace('//postgres:', `//${user}:`))).rejects.toThrow(
      /does not allow this user to create tables/,
    )
  })
})

describe('PostgreSQL: connections', () => {
  async function connect(): Promise<Connections> {
    const address = parseDatabaseUrl(await freshDatabase())
    const connections = await openConnections(address, { readers: 1, writers: 1 })
    onTestFinished(() => connections.close())
    return connections
  }

  test('a wait while all connections are in use does not select another server', async () => {
    const addresses = [await freshDatabase(), await freshDatabase()].map(parseDatabaseUrl)
    const servers = addresses.flatMap((address) => address.servers)
    // Also the time for opening a connection, which a busy machine needs.
    const settings = { readers: 1, writers: 1, connectTimeout: 2_000 }
    const connections = await openConnections({ servers, label: 'two databases' }, settings)
    onTestFinished(() => connections.close())
    // Ends during the second wait. If each wait selected the next server, every second one would select the first again.
    const ended = connections.read((session) => session.run('SELECT pg_sleep(3)'))
    await Promise.allSettled([connections.read((session) => session.run('SELECT 1'))])
    await ended
    const rows = await connections.write((session) => session.run('SELECT current_database()'))
    expect(rows).toEqual([[servers[0]?.database]])
  })

  test('a read that fails within a transaction because of a prepared statement is repeated outside of it', async () => {
    const connections = await connect()
    let attempts = 0
    const rows = await connections.read(async (session) => {
      attempts += 1
      if (attempts === 1) await session.execute('BEGIN; EXECUTE missing')
      return session.run('SELECT 1::int4')
    })
    expect([attempts, rows]).toEqual([2, [[1]]])
  })

  test('a server that did not respond at the start is not tried again while another one responds', async () => {
    let attempts = 0
    const ended = createServer((socket) => {
      attempts += 1
      socket.destroy()
    })
    await new Promise<void>((done) => ended.listen(0, '127.0.0.1', done))
    onTestFinished(() => void ended.close())
    const address = ended.address()
    const port = typeof address === 'object' ? address?.port : 0
    const url = (await freshDatabase()).replace('@', `@127.0.0.1:${port},`)
    const catalog = await openCatalog(url)
    await newBucket(catalog, 'b')
    expect([await catalog.listBuckets(), attempts]).toMatchObject([[{ name: 'b' }], 1])
  })

  test('a number that JavaScript cannot represent is an error of its own, not a lost connection', async () => {
    const connections = await connect()
    const read = connections.read((session) => session.run('SELECT 9007199254740993::int8'))
    await expect(read).rejects.toThrow(RangeError)
  })

  test('statements of commands are not limited in time', async () => {
    const connections = await connect()
    const setting = "SELECT current_setting('statement_timeout')"
    const limit = runTransaction(connections, (session) => session.run(setting))
    expect(await limit).toEqual([['0']])
  })

  test('a snapshot is not read again if the connection is lost at its end', async () => {
    const url = new URL(await freshDatabase())
    await (await open(url.href)).close()
    await using proxy = await startCommitProxy(Number(url.port))
    url.port = String(proxy.port)
    let calls = 0
    const read = readPostgresSnapshot(url.href, async (source) => {
      calls += 1
      proxy.breakNext('response lost')
      return source.countItems()
    })
    expect([await read, calls, proxy.broken()]).toEqual([0, 1, 1])
  })
})

describe('PostgreSQL: errors', () => {
  const withState = (code: string) => Object.assign(new ServerError('from the server', 0, 'error'), { code })

  test.each([
    ['53100', 'storage-full'],
    ['53300', 'overloaded'],
    ['53200', 'overloaded'],
    ['57014', 'catalog-busy'],
    ['57P01', 'catalog-unavailable'],
    ['25006', 'catalog-unavailable'],
    ['08006', 'catalog-unavailable'],
  ])('%s is the fault %s', (state, code) => {
    const error = withState(state)
    expect(asFault(error)).toMatchObject({ name: 'Fault', code, cause: error })
  })

  test.each(['55P03', '40001', '40P01'])(
    'O3 %s, a lock of others, is catalog-busy without a cause',
    (state) => {
      expect(asFault(withState(state))).toMatchObject({
        name: 'Fault',
        code: 'catalog-busy',
        cause: undefined,
      })
    },
  )

  test('a connection that the server ends, that refuses writes or does not respond is dead; others are not', () => {
    expect(
      ['57P01', '57P02', '57P03', '08006', '25006', '25P03', '25P04'].map((state) =>
        isDead(withState(state)),
      ),
    ).toEqual(Array(7).fill(true))
    expect(isDead(new ConnectionLost('no response'))).toBe(true)
    // A code of the operating system, not an SQLSTATE.
    expect(sqlState(Object.assign(new Error('write'), { code: 'EPIPE' }))).toBeNull()
    expect(['23505', '57014', '40001'].map((state) => isDead(withState(state)))).toEqual(Array(3).fill(false))
    expect(asFault(withState('23505'))).not.toBeInstanceOf(Fault)
  })
})

describe('PostgreSQL behind pgbouncer in transaction mode', () => {
  test('catalogs of several processes read and write correctly, though their transactions change connections', async () => {
    const database = await freshDatabase()
    await using pooler = await startPgbouncer(database)
    const [catalog, other] = await openSeveral(pooler.url, 2)
    if (!catalog || !other) throw new Error('no catalog')
    const [one, two] = [await newBucket(catalog, 'one'), await newBucket(other, 'two')]
    const items = newItems(120)
    await Promise.all(
      items.map(async (item, index) => {
        const [adds, reads] = index % 2 ? [catalog, other] : [other, catalog]
        const bucketId = index % 3 ? one : two
        await adds.addItems(bucketId, [withBytes(item)])
        const contentId = (await reads.item(item.id))?.contentId
        expect(contentId && (await reads.content(contentId))).toEqual(contentOf(item))
        expect(await reads.findGrant(hashOf('one'))).toMatchObject({ bucketId: one })
        const { total, rows } = await reads.page(bucketId, 1)
        expect(rows).toHaveLength(Math.min(total, 10))
      }),
    )
    await expect(catalog.addItems(one, inBlobStore(items.slice(0, 1)))).rejects.toThrow(/duplicate key/)
    const wanted = (isTwo: boolean) =>
      items.filter((_, index) => (index % 3 === 0) === isTwo).map(({ id }) => id)
    expect((await allPages(other, one)).toSorted()).toEqual(wanted(false).toSorted())
    expect((await allPages(other, two)).toSorted()).toEqual(wanted(true).toSorted())
    const inspection = await openPostgresInspection(pooler.url)
    onTestFinished(inspection.close)
    expect(await inspection.bucketFaults()).toEqual([])
  })

  test('FE9 delivers no notifications, and watchers see the changes of other processes', async () => {
    await using pooler = await startPgbouncer(await freshDatabase())
    const [catalog, other] = await openSeveral(pooler.url, 2)
    if (!catalog || !other) throw new Error('no catalog')
    const bucketId = await newBucket(catalog, 'b')
    const seen: string[] = []
    let next = 0
    let reading = Promise.resolve()
    const read = async () => {
      const rows = await catalog.readChanges(bucketId, next, 100)
      seen.push(...(rows?.changes.map(({ itemId }) => itemId) ?? []))
      next = rows?.next ?? next
    }
    onTestFinished(
      catalog.watchChanges(bucketId, () => {
        reading = reading.then(read)
      }),
    )
    const items = newItems(5)
    for (const [index, item] of items.entries()) {
      await other.addItems(bucketId, inBlobStore([item]))
      await expect.poll(() => seen).toHaveLength(index + 1)
    }
    expect(seen).toEqual(items.map(({ id }) => id))
    await reading
  })

  test('the timeouts of a transaction do not stay on its connection', async () => {
    const database = await freshDatabase()
    await using pooler = await startPgbouncer(database)
    const catalog = await openCatalog(pooler.url)
    await newBucket(catalog, 'b')
    const settings = await rowsOf(
      pooler.url,
      "SELECT current_setting('lock_timeout') AS lock, current_setting('statement_timeout') AS statement",
    )
    expect(settings).toEqual([{ lock: '0', statement: '0' }])
    await catalog.addItems(await newBucket(catalog, 'c'), [withBytes(newItem())])
  })
})

test('FE9 the bell listens again after its connection has ended soon after it began', async () => {
  const url = await freshDatabase()
  const connections = await openConnections(parseDatabaseUrl(url), { readers: 1, writers: 1 })
  const heard = Promise.withResolvers<void>()
  let opened = 0
  const bell = new PostgresBell(
    {
      read: (work) => connections.read(work),
      async openClient() {
        const client = await connections.openClient()
        opened += 1
        client.on('notification', () => heard.resolve())
        return client
      },
    },
    async () => [],
  )
  onTestFinished(async () => {
    await bell.close()
    await connections.close()
  })
  const bucketId = bucketIdOf([1], 0)
  onTestFinished(bell.watch(bucketId, () => {}))
  await heard.promise
  await onServer(
    url,
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'",
  )
  await expect.poll(() => opened, { timeout: 5_000 }).toBe(2)
})

test('FE9 the bell leaves no connection behind when it cannot listen', async () => {
  const connections = await openConnections(parseDatabaseUrl(await freshDatabase()), {
    readers: 1,
    writers: 1,
  })
  const ended = Promise.withResolvers<void>()
  const bell = new PostgresBell(
    {
      read: (work) => connections.read(work),
      async openClient() {
        const client = await connections.openClient()
        client.on('end', ended.resolve)
        // In a transaction that has failed, LISTEN fails too.
        await client.query('BEGIN')
        await client.query('SELECT 1 / 0').catch(() => undefined)
        return client
      },
    },
    async () => [],
  )
  onTestFinished(async () => {
    await bell.close()
    await connections.close()
  })
  onTestFinished(bell.watch(bucketIdOf([1], 0), () => {}))
  await ended.promise
})

test('O3 a read that takes too long is refused as busy by the server, and is not repeated', async () => {
  const options = { readers: 1, writers: 1, readTimeout: 500 }
  const connections = await openConnections(parseDatabaseUrl(await freshDatabase()), options)
  onTestFinished(() => connections.close())
  let reads = 0
  const slow = connections.read((session) => {
    reads += 1
    return session.run('SELECT pg_sleep(10)')
  })
  const error = await slow.catch(asFault)
  expect(error).toMatchObject({ code: 'catalog-busy' })
  expect(reads).toBe(1)
})

test('a connection on which a query has no result in time is closed', async () => {
  const url = new URL(await freshDatabase())
  const address = { port: Number(url.port), host: url.hostname }
  const sockets: Socket[] = []
  const proxy = createServer((socket) => {
    const database = connect(address)
    sockets.push(socket)
    for (const [from, to] of [
      [socket, database],
      [database, socket],
    ] as const) {
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void proxy.close())
  const { port } = proxy.address() as AddressInfo
  Object.assign(url, { hostname: '127.0.0.1', port: `${port}` })
  const options = { readers: 1, writers: 1, readTimeout: 1_000 }
  const connections = await openConnections(parseDatabaseUrl(url.href), options)
  onTestFinished(() => connections.close())
  const hanging = connections.read(async (session) => {
    await session.run('SELECT 1')
    // The rest of what it sends reaches no server.
    sockets.at(-1)?.unpipe().resume()
    await session.run('SELECT 1')
  })
  await expect(hanging).rejects.toThrow(ConnectionLost)
  await expect.poll(() => sockets.map(({ destroyed }) => destroyed)).not.toContain(false)
})
