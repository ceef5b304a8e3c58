import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { s3Settings } from '../harness/ceph.ts'
import { runHere } from '../harness/commands.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readLink } from '../harness/wire.ts'

const size = 1_500_000
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const png = Buffer.concat([
  latin1(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR${'\0'.repeat(17)}\0\x16\xe3\x60IDAT`),
  randomBytes(size),
])
const mp4 = Buffer.concat([latin1('\0\0\0\x18ftypisom\0\0\x02\0isommp42'), randomBytes(size)])
const text = 'a text of many lines\n'.repeat(size / 20)

/** A file, its name, and whether the store may send it. */
const kinds = [
  ['a picture', png, 'a.png', true],
  ['a video', mp4, 'ü "1".mp4', true],
  ['text', Buffer.from(text), 'a.txt', false],
  ['PDF', Buffer.from(`%PDF-1.7\n${text}`), 'a.pdf', false],
  ['HTML', Buffer.from(`<!doctype html><p>${text}`), 'a.html', false],
  ['SVG', Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg">${text}</svg>`), 'a.svg', false],
  ['a script', Buffer.from(`// ${text}`), 'a.js', false],
  ['bytes of no kind', randomBytes(size), 'a', false],
  ['a small picture', png.subarray(0, 10_000), 'b.png', false],
] as const

describe('MEDIABUCKET_SENDFILE=redirect', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer({
      ...(await s3Settings()),
      MEDIABUCKET_SENDFILE: 'redirect',
      MEDIABUCKET_MEDIA_MAX_AGE: '30m',
    })
  })
  afterAll(async () => server?.[Symbol.asyncDispose]())

  const get = (url: string, headers: Record<string, string> = {}) =>
    fetch(url, { redirect: 'manual', headers })

  test.each(kinds)('B5, B6, B12 %s', async (_, bytes, name, isRedirected) => {
    const { url } = await upload(server, bytes, { name, type: '' })
    const own = await fetch(url, { method: 'HEAD' })
    const response = await get(url)
    expect(response.status).toBe(isRedirected ? 302 : 200)
    if (isRedirected) {
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.get('referrer-policy')).toBe('no-referrer')
      expect(await response.text()).toBe('')
    }
    const received = isRedirected ? await get(response.headers.get('location') ?? '') : response
    for (const header of ['content-type', 'content-disposition', 'cache-control', 'content-length'])
      expect(received.headers.get(header)).toBe(own.headers.get(header))
    expect(Buffer.from(await received.bytes()).equals(bytes)).toBe(true)
  })

  test('B3, B4, B6, B12 a range, a download and conditions', async () => {
    const { url } = await upload(server, png, { name: 'c.png' })
    const range = { range: 'bytes=5-9' }
    const part = await fetch(url, { headers: range })
    expect([part.status, part.redirected, part.headers.get('content-range')]).toEqual([
      206,
      true,
      `bytes 5-9/${png.length}`,
    ])
    expect(Buffer.from(await part.bytes())).toEqual(png.subarray(5, 10))
    expect((await get(url, { range: `bytes=${png.length}-` })).status).toBe(416)
    const saved = await fetch(`${url}?download`)
    expect(saved.headers.get('content-disposition')).toBe('attachment; filename=c.png')
    await saved.body?.cancel()
    const { headers } = await get(url, { 'if-none-match': '"other"' })
    expect((await get(url, { 'if-none-match': headers.get('etag') ?? '' })).status).toBe(304)
    const script = await get(url, { 'sec-fetch-dest': 'script' })
    expect(script.status).toBe(403)
  })

  test('B12 requests at about the same time get one URL, so that a browser can cache the bytes', async () => {
    const { url } = await upload(server, png, { name: 'd.png' })
    const [first, second] = [await get(url), await get(url)]
    const [one, other] = [first, second].map(({ headers }) => new URL(headers.get('location') ?? ''))
    // Unless half an hour has passed between the two.
    const dates = [one, other].map((signed) => signed?.searchParams.get('X-Amz-Date'))
    expect(one?.href === other?.href).toBe(dates[0] === dates[1])
    expect(one?.searchParams.get('X-Amz-Expires')).toBe('3600')
  })

  test('M2, B12 a deleted item gets a 404 at once, and an earlier URL of the store soon after', async () => {
    const { id, url } = await upload(server, png, { name: 'e.png' })
    const location = (await get(url)).headers.get('location') ?? ''
    expect((await server.request(`/api/media/${id}`, { method: 'DELETE' })).status).toBe(204)
    expect((await get(url)).status).toBe(404)
    await until('the removal of the object', async () => (await get(location)).status === 404)
  })

  test('H4, B12 in a private bucket the URL of the store expires with the signed URL, or after a minute', async () => {
    const { id, url } = await upload(server, png, { name: 'p.png' })
    await runHere(server.data, 'bucket set', 'default', '--private', 'on')
    try {
      expect((await get(url)).status).toBe(404)
      const withToken = await get(url, { authorization: `Bearer ${server.token}` })
      const headers = { 'content-type': 'application/json' }
      const body = '{"expires_in":600}'
      const link = await readLink(
        await server.request(`/api/media/${id}/links`, { method: 'POST', headers, body }),
      )
      const signed = await get(link.url)
      for (const [response, least, most] of [
        [withToken, 58, 60],
        [signed, 590, 600],
      ] as const) {
        expect([response.status, response.headers.get('cache-control')]).toEqual([302, 'no-store'])
        const location = response.headers.get('location') ?? ''
        const lifetime = Number(new URL(location).searchParams.get('X-Amz-Expires'))
        expect(lifetime).toBeGreaterThanOrEqual(least)
        expect(lifetime).toBeLessThanOrEqual(most)
        const received = await get(location)
        expect(received.headers.get('cache-control')).toMatch(/^private/)
        expect(Buffer.from(await received.bytes()).equals(png)).toBe(true)
      }
    } finally {
      await runHere(server.data, 'bucket set', 'default', '--private', 'off')
    }
  })

  test('E2, B12 the URL of the store expires with the item; shortly before, the service sends the bytes itself', async () => {
    const statusOf = async (seconds: number) => {
      const expiry = new Date(Date.now() + seconds * 1_000).toISOString()
      const headers = { 'mediabucket-expires-at': expiry, 'content-type': 'image/png' }
      const stored = await server.request('/api/media', {
        method: 'POST',
        body: Uint8Array.from(png),
        headers,
      })
      const response = await get((await readItem(stored)).url)
      await response.body?.cancel()
      const location = response.headers.get('location')
      const lifetime = location && Number(new URL(location).searchParams.get('X-Amz-Expires'))
      return { status: response.status, lifetime }
    }
    const { status, lifetime } = await statusOf(600)
    expect(status).toBe(302)
    expect(lifetime).toBeGreaterThan(500)
    expect(lifetime).toBeLessThanOrEqual(600)
    expect(await statusOf(10)).toEqual({ status: 200, lifetime: null })
  })

  test('G2 the gallery may show what the store sends, from no other origin', async () => {
    const { url } = await upload(server, png, { name: 'f.png' })
    const store = new URL((await get(url)).headers.get('location') ?? '').origin
    const policy = (await fetch(server.url)).headers.get('content-security-policy')
    expect(policy).toContain(`img-src 'self' ${store};`)
    expect(policy).toContain(`media-src 'self' ${store};`)
  })
})

test.each([
  ['redirect', {}, /needs an S3 store/],
  ['x-sendfile', { MEDIABUCKET_BLOBS_URL: 's3://bucket/prefix' }, /no files are on the disk/],
])('O7 %s with files elsewhere is a wrong setting', async (value, settings, message) => {
  await expect(startServer({ ...settings, MEDIABUCKET_SENDFILE: value })).rejects.toThrow(message)
})
