import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters, uploadPicture } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { makePair, s3EndpointOf, sendSigned } from '../harness/s3-door.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { upload } from '../harness/upload.ts'
import { readBucketUsage, readLink, readServiceUsage, readUsageToday } from '../harness/wire.ts'

const today = () => new Date().toISOString().slice(0, 10)

/** What the work returns if no midnight (UTC) is between its start and its end: it is done again otherwise. */
async function onOneDay<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    const day = today()
    const done = await work()
    if (day === today()) return done
  }
}

/** What a function does in a new service, and the usage of its first bucket after a restart, which wrote what was in memory. */
const usageOf = (settings: Readonly<Record<string, string>>, act: (server: TestServer) => Promise<void>) =>
  onOneDay(async () => {
    await using directory = await temporaryDirectory()
    await using server = await startServer(settings, directory.path)
    await act(server)
    await server.stop()
    await using next = await startServer(settings, directory.path)
    const headers = { authorization: `Bearer ${server.token}` }
    return await readUsageToday(await next.request('/api/bucket', { headers }))
  })

const none = { list: 0, download: 0, upload: 0, other: 0 }

/** Reads the whole response. Returns its length, or its status with a minus sign if it has no bytes of an item. */
async function read(response: Promise<Response>): Promise<number> {
  const { status, ...body } = await response.then(async (one) => ({
    status: one.status,
    length: (await one.arrayBuffer()).byteLength,
  }))
  return status === 200 || status === 206 ? body.length : -status
}

test('US1, US4, US8, US9 requests are counted by kind in the bucket of their token, and kept at a stop', async () => {
  const usage = await usageOf({}, async (server) => {
    const status = async (path: string, init?: RequestInit) => {
      const response = await server.request(path, init)
      await response.arrayBuffer()
      return response.status
    }
    const json = { 'content-type': 'application/json' }
    expect(await status('/api/media')).toBe(200)
    expect(await status('/api/media?page=2', { method: 'HEAD' })).toBe(200)
    expect(await status('/api/media?page=x')).toBe(400)
    for (const list of ['items', 'labels', 'trash']) expect(await status(`/api/${list}`)).toBe(200)
    expect(
      await status('/api/media', { method: 'POST', body: 'text', headers: { 'content-type': 'text/plain' } }),
    ).toBe(201)
    expect(await status('/api/uploads', { method: 'POST' })).toBe(412)
    for (const other of ['bucket', 'token', 'webhooks', 'changes'])
      expect(await status(`/api/${other}`)).toBe(200)
    expect(await status('/api/media', { method: 'DELETE', body: '{"ids":["x"]}', headers: json })).toBe(200)
    // These have no bucket.
    expect(await status('/api/media', { headers: { authorization: 'Bearer mbkt_unknown' } })).toBe(401)
    expect(await status('/healthz')).toBe(200)
    expect(await status('/api/nothing')).toBe(404)
    expect(await status('/api/media', { method: 'OPTIONS' })).toBe(204)
  })
  expect(usage).toMatchObject({
    ...{ is_partial: true, items: 1, bytes: 4, downloaded_bytes: 0 },
    ...{ added: { items: 1, bytes: 4 }, removed: { items: 0, bytes: 0 } },
    // The request that reads the usage is not written yet.
    requests: { ...none, list: 6, upload: 2, other: 5 },
  })
})

test('US4 requests at the port of S3 are counted by kind', async () => {
  const usage = await usageOf({ MEDIABUCKET_S3_PORT: '0' }, async (server) => {
    const pair = await makePair(server, '--bucket', 'default')
    const send = async (method: string, target: string, headers = {}, body = '') => {
      const url = `${s3EndpointOf(server)}/default${target}`
      const response = await sendSigned(pair, url, { method, headers, ...(body !== '' && { body }) })
      await response.arrayBuffer()
      return response.status
    }
    expect(await send('PUT', '/a', {}, 'text')).toBe(200)
    expect(await send('PUT', '/b', { 'x-amz-copy-source': '/default/a' })).toBe(200)
    expect(await send('GET', '/a')).toBe(200)
    expect(await send('HEAD', '/a')).toBe(200)
    for (const list of ['?list-type=2', '', '?versions', '?uploads'])
      expect(await send('GET', list)).toBe(200)
    for (const other of ['?acl', '?location', '/a?tagging']) expect(await send('GET', other)).toBe(200)
    expect(await send('POST', '/c?uploads')).toBe(200)
    expect(await send('DELETE', '/b')).toBe(204)
  })
  expect(usage).toMatchObject({
    ...{ items: 1, bytes: 4, downloaded_bytes: 4 },
    ...{ added: { items: 2, bytes: 8 }, removed: { items: 1, bytes: 4 } },
    requests: { list: 4, download: 2, upload: 2, other: 5 },
  })
})

test('US8, US4 the requests of several processes, and those with a service token, are added up', async () => {
  const usage = await usageOf({ MEDIABUCKET_WORKERS: '2' }, async (server) => {
    const { authorization } = await makeToken(server, '--service', '--scope', 'media:read')
    const statuses = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const own = { connection: 'close' }
        const named = { ...own, authorization, 'mediabucket-bucket': 'default' }
        const response = await server.request('/api/media', { headers: index % 2 === 0 ? own : named })
        await response.arrayBuffer()
        return response.status
      }),
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
    // Without a bucket, and with one that does not exist.
    for (const more of [{}, { 'mediabucket-bucket': 'nobody' }])
      expect(
        (await server.request('/api/media', { headers: { authorization, ...more } })).status,
      ).toBeGreaterThan(399)
  })
  expect(usage.requests).toEqual({ ...none, list: 40 })
})

test.each([
  ['from the catalog and its cache', 20_000],
  ['from a file', 300_000],
  ['from a large file', 5_000_000],
])('US4 the bytes of downloads are counted as sent: %s', async (_, size) => {
  let sent = 0
  let downloads = 0
  const usage = await usageOf({}, async (server) => {
    const { url } = await upload(server, randomBytes(size))
    const get = async (init: RequestInit = {}) => {
      downloads += 1
      const length = await read(fetch(url, init))
      sent += Math.max(length, 0)
      return length
    }
    for (let time = 0; time < 3; time += 1) expect(await get()).toBe(size)
    expect(await get({ headers: { range: 'bytes=10-1009' } })).toBe(1_000)
    expect(await get({ headers: { range: 'bytes=-5' } })).toBe(5)
    expect(await get({ method: 'HEAD' })).toBe(0)
    const etag = (await fetch(url, { method: 'HEAD' })).headers.get('etag') ?? ''
    downloads += 1
    expect(await get({ headers: { 'if-none-match': etag } })).toBe(-304)
    expect(await get({ headers: { range: `bytes=${size}-` } })).toBe(-416)
    // No item.
    expect(await read(fetch(`${server.url}/media/${'2'.repeat(26)}`))).toBe(-404)
  })
  expect(usage).toMatchObject({
    downloaded_bytes: sent,
    requests: { ...none, upload: 1, download: downloads },
  })
})

test('US4 variants, and bytes of private buckets by token and by signed URL, are counted in the bucket of the item', async () => {
  let sent = 0
  const usage = await usageOf({}, async (server) => {
    const { id, url } = await uploadPicture(server, quarters(300, 200).png().toBuffer(), 'image/png')
    for (let time = 0; time < 2; time += 1) sent += await read(fetch(`${url}?variant=thumb`))
    await server.command('bucket', 'set', 'default', '--private', 'on')
    const link = await server.request(`/api/media/${id}/links`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    sent += await read(fetch((await readLink(link)).url))
    sent += await read(server.request(new URL(url).pathname))
    expect(await read(fetch(url))).toBe(-404)
    // A token of another bucket reads nothing of this one.
    const { stdout } = await server.command('token', 'create', '--bucket', 'other')
    const headers = { authorization: `Bearer ${/mbkt_\w+/.exec(stdout)?.[0]}` }
    expect(await read(fetch(url, { headers }))).toBe(-404)
  })
  expect(usage).toMatchObject({
    downloaded_bytes: sent,
    requests: { ...none, upload: 1, download: 4, other: 1 },
  })
})

test('US4 bytes that a proxy sends count as the length of the file or the range', async () => {
  const usage = await usageOf({ MEDIABUCKET_SENDFILE: 'x-accel-redirect:/files' }, async (server) => {
    const { url } = await upload(server, randomBytes(300_000))
    const left = await fetch(url)
    expect(left.headers.get('x-accel-redirect')).toContain('/files/')
    await fetch(url, { headers: { range: 'bytes=0-99' } })
    await fetch(url, { method: 'HEAD' })
  })
  expect(usage).toMatchObject({ downloaded_bytes: 300_100, requests: { ...none, upload: 1, download: 3 } })
})

test('US4 of a response that the client aborts, the bytes that were sent count', async () => {
  const size = 64 * 1024 * 1024
  let received = 0
  const usage = await usageOf({}, async (server) => {
    const { url } = await upload(server, Buffer.alloc(size))
    const aborted = new AbortController()
    const response = await fetch(url, { signal: aborted.signal })
    const reader = response.body?.getReader()
    while (received < 1_000_000) received += (await reader?.read())?.value?.byteLength ?? size
    aborted.abort()
  })
  expect(usage['downloaded_bytes']).toBeGreaterThanOrEqual(received)
  // Buffers of both systems have the rest.
  expect(usage['downloaded_bytes']).toBeLessThan(size)
})

describe('with a service token', () => {
  let server: TestServer
  let headers: Readonly<Record<string, string>>
  beforeAll(async () => {
    server = await startServer()
    const { authorization } = await makeToken(server, '--service', '--scope', 'buckets:manage')
    headers = { authorization }
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const get = (path: string, init: RequestInit = {}) => server.request(path, { headers, ...init })
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)

  test('US10, US1 the usage of a bucket has every day, and what was added and removed', async () => {
    const { authorization } = await makeToken(server, '--bucket', 'customer')
    const [first] = [
      await upload(server, 'four', { authorization }),
      await upload(server, 'seven..', { authorization }),
    ]
    const removed = await server.request(`/api/media/${first.id}`, {
      method: 'DELETE',
      headers: { authorization },
    })
    expect(removed.status).toBe(204)
    const read = async (query = '') => {
      const response = await get(`/api/buckets/customer/usage${query}`)
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
      return readBucketUsage(await response.json())
    }
    const { month, days } = await onOneDay(async () => ({
      month: await read(),
      days: Array.from({ length: 30 }, (_, index) => daysAgo(29 - index)),
    }))
    expect(month.bucket).toBe('customer')
    expect(month.data.map(({ day }) => day)).toEqual(days)
    expect(month.data.map(({ is_partial }) => is_partial)).toEqual([...Array(29).fill(false), true])
    expect(month.data.slice(0, 28).every(({ items, bytes }) => items === 0 && bytes === 0)).toBe(true)
    expect(month.data.at(-1)).toMatchObject({ items: 1, bytes: 7 })
    const sums = month.data.reduce(
      (sum, { added, removed }) => ({ added: sum.added + added.bytes, removed: sum.removed + removed.bytes }),
      { added: 0, removed: 0 },
    )
    expect(sums).toEqual({ added: 11, removed: 4 })
    const [from, to] = [daysAgo(3), daysAgo(2)]
    const two = await read(`?from=${from}&to=${to}`)
    expect(two.data.map(({ day }) => day)).toEqual([from, to])
    const all = await onOneDay(async () => {
      const response = await get(`/api/buckets/customer/usage?from=${daysAgo(399)}&to=${today()}`)
      return { status: response.status, body: await response.json() }
    })
    expect(all.status).toBe(200)
    expect(readBucketUsage(all.body).data).toHaveLength(400)
  })

  test.each([
    ['a day before the kept ones', () => `from=${daysAgo(401)}`],
    ['a day after today', () => `to=${daysAgo(-2)}`],
    ['an end before the start', () => `from=${daysAgo(2)}&to=${daysAgo(3)}`],
    ['no date', () => 'from=2026-02-30'],
    ['a time', () => 'to=2026-11-29T00:00:00Z'],
  ])('US10 refuses %s', async (_, query) => {
    await expectProblem(await get(`/api/buckets/default/usage?${query()}`), 400, 'parameter-malformed')
  })

  test('US10, US11 need buckets:manage and a bucket that exists', async () => {
    await expectProblem(await get('/api/buckets/nobody/usage'), 404, 'bucket-unknown')
    for (const path of ['/api/buckets/default/usage', '/api/usage'])
      await expectProblem(await server.request(path), 403, 'scope-missing')
  })

  test('US11, US6 the usage of all buckets of a day is listed by name, also of a deleted one', async () => {
    const names = ['list-a', 'list-b', 'list-c', 'list-d']
    for (const name of names) await makeToken(server, '--bucket', name)
    expect((await get('/api/buckets/list-b', { method: 'DELETE' })).status).toBeLessThan(300)
    await makeToken(server, '--bucket', 'list-b')
    const found: { readonly bucket: string; readonly isDeleted: boolean }[] = []
    for (let after = ''; ; ) {
      const response = await get(`/api/usage?limit=2${after}`)
      const { data, next_cursor } = readServiceUsage(await response.json())
      found.push(...data.map(({ bucket, deleted_at }) => ({ bucket, isDeleted: deleted_at !== null })))
      if (next_cursor === null) break
      after = `&after=${next_cursor}`
    }
    const listed = found.filter(({ bucket }) => bucket.startsWith('list-'))
    expect(listed).toEqual(
      ['list-a', 'list-b', 'list-b', 'list-c', 'list-d'].map((bucket, index) => ({
        bucket,
        isDeleted: index === 1,
      })),
    )
    const before = readServiceUsage(await (await get(`/api/usage?day=${daysAgo(2)}`)).json())
    expect(before).toEqual({ data: [], next_cursor: null })
  })

  test('US11 a cursor of another day, a changed one and a limit beyond 100 are refused', async () => {
    const { next_cursor } = readServiceUsage(await (await get('/api/usage?limit=1')).json())
    await expectProblem(
      await get(`/api/usage?day=${daysAgo(3)}&after=${next_cursor}`),
      400,
      'cursor-malformed',
    )
    await expectProblem(await get('/api/usage?after=AAAA'), 400, 'cursor-malformed')
    await expectProblem(await get('/api/usage?limit=101'), 400, 'parameter-malformed')
  })
})
