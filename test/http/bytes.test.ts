import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MEDIA_MAX_AGE: '90m' })
})
afterAll(() => server[Symbol.asyncDispose]())

test('B1 an item is served with and without its extension', async () => {
  const { id, url } = await upload(server, 'hello', { name: 'a.csv', type: 'text/csv' })
  expect(url).toBe(`${server.url}/media/${id}.csv`)
  for (const address of [url, `${server.url}/media/${id}`])
    expect(await (await fetch(address)).text()).toBe('hello')
})

test('B1 no token is needed, and a sent one is ignored', async () => {
  const { url } = await upload(server, 'hello')
  for (const authorization of ['Bearer garbage', `Bearer ${server.token}`]) {
    expect((await fetch(url, { headers: { authorization } })).status).toBe(200)
  }
})

test.each(['.txt', '.CSV', '.csv.csv', '.', '.csv.', '..csv', '.csv%00', '.csv/', '/', '%2ecsv.csv'])(
  'B1, B7 any other extension gets a 404 problem: %s',
  async (extension) => {
    const { id } = await upload(server, 'a,b', { name: 'a.csv', type: 'text/csv' })
    const raw = `GET /media/${id}${extension} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    await expectProblem(responseOf(await sendRaw(server.url, raw)), 404, 'media-unknown')
  },
)

test('B1 an item of unknown type has no extension', async () => {
  const { id, url } = await upload(server, '?', { name: 'a.bin', type: 'application/octet-stream' })
  expect(url).toBe(`${server.url}/media/${id}`)
  await expectProblem(await fetch(`${url}.bin`), 404, 'media-unknown')
})

test('B1 20 MB are returned byte for byte', async () => {
  const bytes = randomBytes(20_000_000)
  const { url, sha256 } = await upload(server, bytes, { name: 'a.bin' })
  const back = Buffer.from(await (await fetch(url)).arrayBuffer())
  expect(back.equals(bytes)).toBe(true)
  expect(sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
})

test('B2 responses have all headers that caches and players need', async () => {
  const before = Math.floor(Date.now() / 1000) * 1000
  const { url, sha256 } = await upload(server, 'hello')
  const { headers } = await fetch(url)
  expect(headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(headers.get('content-length')).toBe('5')
  expect(headers.get('accept-ranges')).toBe('bytes')
  expect(headers.get('etag')).toBe(`"${Buffer.from(sha256 ?? '', 'hex').toString('base64url')}"`)
  expect(headers.get('cache-control')).toBe('public, max-age=5400, immutable')
  const modified = headers.get('last-modified') ?? ''
  expect(new Date(modified).toUTCString()).toBe(modified)
  expect(Date.parse(modified)).toBeGreaterThanOrEqual(before)
  expect(Date.parse(modified)).toBeLessThanOrEqual(Date.now())
})

test('B2 equal bytes have equal entity tags, different bytes different ones', async () => {
  const tags = await Promise.all(
    ['one', 'one', 'two', ''].map(async (text) =>
      (await fetch((await upload(server, text)).url)).headers.get('etag'),
    ),
  )
  expect(tags[0]).toBe(tags[1])
  expect(new Set(tags).size).toBe(3)
})

test.each([
  ['some bytes', 'hello'],
  ['an empty file', ''],
])('B1, B2 HEAD returns the headers of GET and no body: %s', async (_, text) => {
  const { url } = await upload(server, text)
  const named = ({ headers }: Response) =>
    [...headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name))
  const [get, head] = [await fetch(url), await fetch(url, { method: 'HEAD' })]
  expect([get.status, head.status]).toEqual([200, 200])
  expect(named(head)).toEqual(named(get))
  expect(await get.text()).toBe(text)
  expect(await head.text()).toBe('')
})

describe('B7 no path reaches a file of the server', () => {
  test.each(
    [
      '/media/..%2f..%2fetc%2fpasswd',
      '/media/..%2Fcatalog.db',
      '/media/%2e%2e%2fcatalog.db',
      '/media/../catalog.db',
      '/media/..%5c..%5ccatalog.db',
      '/media/..\\catalog.db',
      '/media//etc/passwd',
      '//media/x',
      '/media/%00',
      '/media/x%00.jpg',
      '/media/%2e',
      '/media/..',
      '/media/',
      '/media',
      '/media/.jpg',
      '/media/__proto__',
      '/media/catalog.db',
      `/media/${'0'.repeat(25)}`,
      `/media/${'0'.repeat(27)}`,
      `/media/${'O'.repeat(26)}`,
      `/media/${'a'.repeat(10_000)}`,
      `/media/${'%2e%2e%2f'.repeat(1_000)}etc/passwd`,
    ].map((path) => [path.slice(0, 60), path] as const),
  )('B7 %s gets a 404 problem', async (_, path) => {
    const raw = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    const response = await sendRaw(server.url, raw)
    expect(response.body).not.toContain('root:')
    await expectProblem(responseOf(response), 404, /"code":"([a-z-]+)"/.exec(response.body)?.[1] ?? '')
  })

  test.each([
    '/media/%zz',
    '/media/%',
    '/media/%ff',
    '/media/%c0%af',
    '/media/%e0%80%af..',
    '/api/media/%zz',
  ])('B7 %s cannot be decoded and gets a 400 problem', async (path) => {
    const raw = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    await expectProblem(responseOf(await sendRaw(server.url, raw)), 400, 'request-malformed')
  })
})
