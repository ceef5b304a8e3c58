import { randomBytes } from 'node:crypto'
import { rm, symlink } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { expectProblem } from '../harness/problem.ts'
import { bytesOf, ownHeaders } from '../harness/proxied-bytes.ts'
import { openProxy, type Proxy as ReverseProxy } from '../harness/proxy.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { blobPath, upload } from '../harness/upload.ts'
import { readLink } from '../harness/wire.ts'

const origin = 'https://app.example.org'
const size = 300_000
const names = [
  'plain.bin',
  '../../etc/passwd',
  '"; filename=evil.html',
  'Ünïcode 🗺 %2e%2e%2f.bin',
  '$upstream_http_etag.bin',
]

let proxy: ReverseProxy
let server: TestServer
/** Items on the disk, with hostile names, and their bytes. */
let items: readonly { readonly id: string; readonly path: string; readonly bytes: Buffer }[]
beforeAll(async () => {
  proxy = await openProxy('nginx that sends files')
  server = await startServer({
    MEDIABUCKET_BASE_URL: proxy.url,
    MEDIABUCKET_TRUSTED_PROXIES: 'loopback',
    MEDIABUCKET_SENDFILE: 'x-accel-redirect:/mediabucket-files',
    MEDIABUCKET_CORS_ORIGINS: origin,
  })
  await proxy.start(server.url, server.data)
  items = await Promise.all(
    names.map(async (name) => {
      const bytes = randomBytes(size)
      const { id, url } = await upload(server, bytes, { name })
      return { id, path: new URL(url).pathname, bytes }
    }),
  )
})
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

test('B1, B2, B5, B6 nginx sends the file with the headers of the service, for any name', async () => {
  for (const { path, bytes } of items) {
    const headers = { origin }
    const direct = await fetch(server.url + path, { headers })
    expect(direct.headers.get('x-accel-redirect')).toMatch(/^\/mediabucket-files\/\w\w\/\w+$/)
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
  ['bytes=-5', size - 5, size],
  ['bytes=299999-', size - 1, size],
  ['bytes=100-999999999', 100, size],
])('B3 nginx sends the range %s', async (range, start, end) => {
  for (const { path, bytes } of items) {
    const response = await fetch(proxy.url + path, { headers: { range } })
    expect(response.status).toBe(206)
    expect(response.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/${size}`)
    expect((await bytesOf(response)).equals(bytes.subarray(start, end))).toBe(true)
  }
})

test('B3 several ranges get the whole file, a range past the end a problem', async () => {
  for (const { path, bytes } of items.slice(0, 1)) {
    const several = await fetch(proxy.url + path, { headers: { range: 'bytes=0-1,5-6' } })
    expect([several.status, (await bytesOf(several)).equals(bytes)]).toEqual([200, true])
    const past = await fetch(proxy.url + path, { headers: { range: `bytes=${size}-` } })
    await expectProblem(past, 416, 'range-unsatisfiable')
  }
})

test('B4 conditions mean the same as without the proxy', async () => {
  for (const { path } of items.slice(0, 1)) {
    const { headers } = await fetch(proxy.url + path, { method: 'HEAD' })
    const [etag, date] = [headers.get('etag') ?? '', headers.get('last-modified') ?? '']
    const old = new Date(0).toUTCString()
    const range = 'bytes=0-1'
    const sent: readonly (readonly [Record<string, string>, number])[] = [
      [{ 'if-none-match': etag }, 304],
      [{ 'if-none-match': '"other"' }, 200],
      [{ 'if-modified-since': date }, 304],
      [{ 'if-modified-since': old }, 200],
      [{ 'if-match': etag }, 200],
      [{ 'if-match': '"other"' }, 412],
      [{ 'if-unmodified-since': old }, 412],
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

test('B7, B8 clients reach no file, the location of the files is internal, links are not followed', async () => {
  const [item] = items
  if (!item) throw new Error('no item')
  const inside = `/mediabucket-files/${item.id.slice(0, 2)}/${item.id}`
  for (const path of [inside, '/mediabucket-files/../catalog.db', '/mediabucket-files/'])
    expect([path, (await fetch(proxy.url + path)).status]).toEqual([path, 404])
  const linked = await upload(server, randomBytes(size), { name: 'linked.bin' })
  await rm(blobPath(server, linked.id))
  await symlink('/etc/passwd', blobPath(server, linked.id))
  await expectProblem(await fetch(linked.url), 404, 'media-unknown')
})

test('B1, M2 the service sends bytes in the catalog, and a deleted item is not found', async () => {
  const { id, url } = await upload(server, 'in the catalog')
  expect(await (await fetch(url)).text()).toBe('in the catalog')
  expect((await fetch(`${server.url}/media/${id}`)).headers.get('x-accel-redirect')).toBe(null)
  const deleted = await upload(server, randomBytes(size), { name: 'deleted.bin' })
  expect((await fetch(deleted.url)).status).toBe(200)
  await server.request(`/api/media/${deleted.id}`, { method: 'DELETE' })
  await expectProblem(await fetch(deleted.url), 404, 'media-unknown')
})

test('H2, H4 nginx sends the files of a private bucket to those who may read them, as private', async () => {
  const [item] = items
  await runHere(server.data, 'bucket set', 'default', '--private', 'on')
  try {
    const path = item?.path ?? ''
    await expectProblem(await fetch(proxy.url + path), 404, 'media-unknown')
    const withToken = await fetch(proxy.url + path, {
      headers: { authorization: `Bearer ${server.token}` },
    })
    const headers = { 'content-type': 'application/json' }
    const created = await server.request(`/api/media/${item?.id}/links`, {
      method: 'POST',
      headers,
      body: '{}',
    })
    const signed = await fetch((await readLink(created)).url)
    for (const response of [withToken, signed]) {
      expect(response.headers.get('cache-control')).toMatch(/^private, /)
      expect((await bytesOf(response)).equals(item?.bytes ?? Buffer.alloc(0))).toBe(true)
    }
    expect(withToken.headers.get('vary')).toContain('Authorization')
  } finally {
    await runHere(server.data, 'bucket set', 'default', '--private', 'off')
  }
})
