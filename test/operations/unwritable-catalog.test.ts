import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { canTrace, traceServer } from '../faults/system-calls.ts'
import { runHere } from '../harness/commands.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startIssuer } from '../harness/issuer.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { readItem, readItems, readPage } from '../harness/wire.ts'

/** Lets all items that expire do so now, and holds the write lock of the catalog: every write waits for it. */
function expireAndLock({ data }: TestServer): Disposable {
  const db = new DatabaseSync(join(data, 'catalog.db'), { timeout: 10_000 })
  const now = Date.now()
  db.exec(`BEGIN IMMEDIATE;
    UPDATE items SET item_expires_at = ${now} WHERE item_expires_at IS NOT NULL;
    UPDATE buckets SET next_expiry = ${now} WHERE next_expiry IS NOT NULL;
    COMMIT; BEGIN IMMEDIATE`)
  return { [Symbol.dispose]: () => db.close() }
}

const iso = (time: number) => new Date(time).toISOString()

test('E2, E3, J6 reads neither wait for a catalog that cannot be written nor fail, and expired items are in none', async () => {
  await using issuer = await startIssuer()
  await using server = await startServer({
    ...issuer.settings,
    MEDIABUCKET_JWT_CREATE_BUCKETS: 'on',
    MEDIABUCKET_JWT_BUCKET: 'team-{team}',
    NODE_OPTIONS: `--import ${new URL('patient-writes.ts', import.meta.url)}`,
  })
  const upload = async (body: string, expiresAt?: number) => {
    const headers = expiresAt === undefined ? {} : { 'mediabucket-expires-at': iso(expiresAt) }
    return readItem(await server.request('/api/media', { method: 'POST', body, headers }))
  }
  const later = Date.now() + 3_600_000
  const kept: string[] = []
  const gone: string[] = []
  for (let index = 0; index < 24; index += 1) {
    if (index % 3 === 0) gone.push((await upload(`gone ${index}`, later)).url)
    else kept.push((await upload(`kept ${index}`)).url)
  }
  // The bucket of a user, and a user of the same bucket without a row.
  const withBucket = (sub: string) => issuer.sign({ sub, team: 'one' })
  const anna = `Bearer ${await withBucket('anna')}`
  const first = await server.request('/api/media', { headers: { authorization: anna } })
  expect(first.status).toBe(200)

  const earlier = (await server.request('/api/media?page=2')).headers.get('etag') ?? ''
  {
    using _lock = expireAndLock(server)
    const pages = await Promise.all(
      [1, 2, 3].map(async (page) => {
        const response = await server.request(`/api/media?page=${page}`, {
          headers: { 'if-none-match': earlier },
        })
        expect(response.status).toBe(200)
        return readPage(response)
      }),
    )
    expect(pages.map(({ total, last_page }) => [total, last_page])).toEqual(Array(3).fill([16, 2]))
    expect(pages.flatMap(({ data }) => data)).toEqual(kept)
    const items = await readItems(await server.request('/api/items?limit=500'))
    expect(items.data.map(({ url }) => url)).toEqual(kept)
    expect(await (await server.request('/api/bucket')).json()).toMatchObject({
      items: 16,
      bytes: 16 * 7 - 6,
    })
    expect((await fetch(gone[0] ?? '')).status).toBe(404)
    expect((await fetch(kept[0] ?? '')).status).toBe(200)
    const bert = await server.request('/api/media', {
      headers: { authorization: `Bearer ${await withBucket('bert')}` },
    })
    expect([bert.status, (await readPage(bert)).total]).toEqual([200, 0])
  }
  expect((await server.request('/api/media', { method: 'POST', body: 'later' })).status).toBe(201)
  expect(await readPage(await server.request('/api/media'))).toMatchObject({ total: 17 })
})

test('T1, J6 a new user whose row waits for the catalog gets the properties of that row from every process, not a refusal', async () => {
  await using issuer = await startIssuer()
  await using server = await startServer({
    ...issuer.settings,
    MEDIABUCKET_JWT_CREATE_BUCKETS: 'on',
    MEDIABUCKET_WORKERS: '2',
  })
  const own = { headers: { authorization: `Bearer ${await issuer.sign({ sub: 'dora' })}` } }
  await server.command('bucket', 'create', 'user-dora')
  let described: Promise<unknown[]>
  {
    using _lock = expireAndLock(server)
    // Enough connections for both processes.
    described = Promise.all(
      Array.from({ length: 8 }, async () => {
        const response = await server.request('/api/token', own)
        return [response.status, await response.json()]
      }),
    )
    // Its response shows that the time has passed after which a read does not wait for the row.
    expect((await server.request('/api/media', own)).status).toBe(200)
    expect((await server.request('/api/media', own)).status).toBe(200)
  }
  const [first, ...others] = await described
  expect(first).toMatchObject([200, { bucket: 'user-dora' }])
  expect(others).toEqual(others.map(() => first))
})

test('H8 private buckets have signed URLs while the catalog cannot be written, also before the first signature', async () => {
  await using directory = await temporaryDirectory()
  const data = directory.path
  const { authorization } = await makeToken({ data }, '--bucket', 'private')
  await runHere(data, 'bucket set', 'private', '--private', 'on')
  {
    using db = new DatabaseSync(join(data, 'catalog.db'))
    // Earlier versions created no key when a bucket became private: the start of the service does it.
    expect(db.prepare('DELETE FROM signing_keys').run().changes).toBe(1)
  }
  await using server = await startServer({}, data)
  const send = (path: string, body?: string) =>
    server.request(path, { headers: { authorization }, ...(body && { method: 'POST', body }) })
  await send('/api/media', 'bytes')
  using _lock = expireAndLock(server)
  const items = await readItems(await send('/api/items?urls=signed'))
  const response = await fetch(items.data[0]?.url ?? '')
  expect([response.status, await response.text()]).toEqual([200, 'bytes'])
})

const isTraceable = process.env['CI'] !== undefined || (await canTrace())

test.skipIf(!isTraceable)(
  'O1 a service whose disk fails every sync, or every write, is not ready for uploads',
  async () => {
    await using server = await startServer()
    const readiness = async () => {
      const response = await fetch(`${server.url}/readyz`)
      const { reasons }: { reasons: string[] } = JSON.parse(await response.text())
      return [response.status, reasons]
    }
    const isReadyForWrites = async () => (await fetch(`${server.url}/readyz?writes`)).status === 200
    for (const [inject, reasons] of [
      ['fsync,fdatasync:error=EIO', ['catalog-unwritable', 'bytes-unwritable']],
      ['pwrite64:error=EROFS', ['catalog-unwritable']],
    ] as const) {
      expect(await isReadyForWrites()).toBe(true)
      {
        await using _trace = await traceServer(server, { inject })
        // A write that succeeded counts for a second.
        await expect
          .poll(async () => [await isReadyForWrites(), ...(await readiness())])
          .toEqual([false, 200, reasons])
      }
      await until('it is ready again', isReadyForWrites)
    }
    expect((await server.request('/api/media', { method: 'POST', body: 'x'.repeat(100_000) })).status).toBe(
      201,
    )
  },
)
