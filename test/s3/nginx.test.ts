import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gateway, s3Settings } from '../harness/ceph.ts'
import { expectProblem } from '../harness/problem.ts'
import { bytesOf, ownHeaders } from '../harness/proxied-bytes.ts'
import { openProxy, type Proxy as ReverseProxy } from '../harness/proxy.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'

const origin = 'https://app.example.org'
/** Several slices of the cache. */
const size = 9_000_000
const names = ['plain.bin', '"; filename=evil.html', 'Ünïcode 🗺 %2e%2e%2f.bin', '$item_etag.html', 'a.txt']

let proxy: ReverseProxy
let server: TestServer
/** Items with hostile names, and their bytes. */
let items: readonly { readonly id: string; readonly path: string; readonly bytes: Buffer }[]
beforeAll(async () => {
  proxy = await openProxy('nginx that gets objects')
  server = await startServer({
    ...(await s3Settings()),
    MEDIABUCKET_BASE_URL: proxy.url,
    MEDIABUCKET_TRUSTED_PROXIES: 'loopback',
    MEDIABUCKET_SENDFILE: 'x-accel-redirect:/mediabucket-objects',
    MEDIABUCKET_CORS_ORIGINS: origin,
  })
  await proxy.start(server.url, new URL((await gateway()).endpoint).host)
  items = await Promise.all(
    names.map(async (name) => {
      const bytes = name === 'a.txt' ? Buffer.alloc(size, 'a text\n') : randomBytes(size)
      const { id, url } = await upload(server, bytes, { name, type: '' })
      return { id, path: new URL(url).pathname, bytes }
    }),
  )
})
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

test('B1, B2, B5, B6, B12 nginx sends objects with the headers of the service, also from its cache', async () => {
  for (const { path, bytes } of [...items, ...items]) {
    const headers = { origin }
    const direct = await fetch(server.url + path, { headers })
    expect(direct.headers.get('x-accel-redirect')).toMatch(/^\/mediabucket-objects\/.*X-Amz-Signature=/)
    expect(await direct.text()).toBe('')
    const response = await fetch(proxy.url + path, { headers })
    // The service itself responds to HEAD.
    expect(ownHeaders(response)).toEqual(
      ownHeaders(await fetch(server.url + path, { method: 'HEAD', headers })),
    )
    expect([response.status, (await bytesOf(response)).equals(bytes)]).toEqual([200, true])
  }
})

test.each([
  ['bytes=0-9', 0, 10],
  ['bytes=4194300-4194310', 4_194_300, 4_194_311],
  ['bytes=-5', size - 5, size],
  ['bytes=100-999999999', 100, size],
])('B3, B12 nginx sends the range %s', async (range, start, end) => {
  for (const { path, bytes } of items) {
    const response = await fetch(proxy.url + path, { headers: { range } })
    expect(response.status).toBe(206)
    expect(response.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/${size}`)
    expect((await bytesOf(response)).equals(bytes.subarray(start, end))).toBe(true)
  }
})

test('B3, B4, B12 several ranges, a range past the end, and conditions mean the same as without the proxy', async () => {
  for (const { path, bytes } of items.slice(0, 1)) {
    const several = await fetch(proxy.url + path, { headers: { range: 'bytes=0-1,5-6' } })
    expect([several.status, (await bytesOf(several)).equals(bytes)]).toEqual([200, true])
    const past = await fetch(proxy.url + path, { headers: { range: `bytes=${size}-` } })
    await expectProblem(past, 416, 'range-unsatisfiable')
    const { headers } = await fetch(proxy.url + path, { method: 'HEAD' })
    const [etag, date] = [headers.get('etag') ?? '', headers.get('last-modified') ?? '']
    const old = new Date(0).toUTCString()
    const range = 'bytes=0-1'
    const sent: readonly (readonly [Record<string, string>, number])[] = [
      [{ 'if-none-match': etag }, 304],
      [{ 'if-none-match': '"other"' }, 200],
      [{ 'if-modified-since': date }, 304],
      [{ 'if-modified-since': old }, 200],
      [{ 'if-match': '"other"' }, 412],
      [{ range, 'if-range': etag }, 206],
      [{ range, 'if-range': '"other"' }, 200],
      [{ range, 'if-range': date }, 206],
      [{ range, 'if-match': etag }, 206],
    ]
    for (const [conditions, status] of sent) {
      const response = await fetch(proxy.url + path, { headers: conditions })
      expect([conditions, response.status]).toEqual([conditions, status])
      await response.arrayBuffer()
    }
  }
})

test('B6, B12 the disposition is that of the request, also from the cache', async () => {
  const item = items.find((_, index) => names[index] === 'a.txt')
  const dispositions = ['', '?download', ''].map(async (query) => {
    const response = await fetch(`${proxy.url}${item?.path}${query}`)
    await response.arrayBuffer()
    return response.headers.get('content-disposition')
  })
  expect(await Promise.all(dispositions)).toEqual([
    'inline; filename=a.txt',
    'attachment; filename=a.txt',
    'inline; filename=a.txt',
  ])
})

test('B7, B12 clients reach no object without the service, and no header of theirs reaches the store', async () => {
  const [item] = items
  const inside = await fetch(server.url + item?.path)
  const location = inside.headers.get('x-accel-redirect') ?? ''
  for (const path of [location, location.replace(/\?.*/, ''), '/mediabucket-objects/'])
    expect([path, (await fetch(proxy.url + path)).status]).toEqual([path, 404])
  // The store would refuse a second authorization, and evaluate the condition.
  const headers = { authorization: `Bearer ${server.token}`, 'x-amz-date': 'x', 'accept-encoding': 'gzip' }
  const response = await fetch(proxy.url + item?.path, { headers })
  expect([response.status, (await bytesOf(response)).length]).toEqual([200, size])
})

test('M2, B12 a deleted item is not found at once, although it is in the cache of nginx', async () => {
  const bytes = randomBytes(size)
  const { id, url } = await upload(server, bytes, { name: 'deleted.bin' })
  for (const _ of [1, 2]) expect((await bytesOf(await fetch(url))).equals(bytes)).toBe(true)
  await server.request(`/api/media/${id}`, { method: 'DELETE' })
  await expectProblem(await fetch(url), 404, 'media-unknown')
})
