import { beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readLink, readLinks } from '../harness/wire.ts'
import { get, privateBucket, smallPicture } from './private-bucket.ts'

let server: SharedServer
let picture: Uint8Array<ArrayBuffer>
beforeAll(async () => {
  server = await privateBucket()
  picture = await smallPicture()
})

async function link(id: string, body: object = {}, headers: Record<string, string> = {}) {
  const response = await server.request(`/api/media/${id}/links`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'no-store'])
  return readLink(response)
}

describe('a signed URL', () => {
  test('H5 needs no token, for GET and HEAD, and its response may be stored by no shared cache', async () => {
    const { id, url: plain } = await upload(server, picture, { name: 'a.png' })
    const { url, expires_at } = await link(id, { expires_in: 600 })
    expect(url.startsWith(`${plain}?expires=`)).toBe(true)
    expect(new URL(url).searchParams.get('expires')).toBe(`${Date.parse(expires_at) / 1000}`)
    for (let round = 0; round < 3; round += 1) {
      const response = await get(url)
      expect([response.status, await response.bytes()]).toEqual([200, picture])
      expect(response.headers.get('cache-control')).toMatch(/^private, max-age=(600|59\d|58\d), immutable$/)
    }
    const head = await get(url, {}, 'HEAD')
    expect([head.status, head.headers.get('content-length')]).toEqual([200, `${picture.length}`])
    const etag = head.headers.get('etag') ?? ''
    for (const [headers, status] of [
      [{ 'if-none-match': etag }, 304],
      [{ range: 'bytes=0-3' }, 206],
      [{ range: 'bytes=99999-' }, 416],
      [{ 'if-match': '"x"' }, 412],
    ] as const) {
      const response = await get(url, headers)
      expect(response.status).toBe(status)
      expect(response.headers.get('cache-control')).toMatch(/^(private|no-store)/)
    }
    // Another token is not used.
    const other = await makeToken(server, '--bucket', uniqueName('other'))
    for (const value of [other.authorization, 'Bearer wrong'])
      expect((await get(url, { authorization: value })).status).toBe(200)
    await expectProblem(await get(url, {}, 'POST'), 405, 'method-not-allowed')
  })

  test('H7 of a variant and of a download', async () => {
    const { id } = await upload(server, picture, { name: 'a.png' })
    const { url: thumb } = await link(id, { variant: 'thumb' })
    const small = await get(thumb, { accept: 'image/avif' })
    expect([small.status, small.headers.get('content-type')]).toEqual([200, 'image/avif'])
    expect((await get(thumb)).headers.get('content-type')).toBe('image/webp')
    const { url } = await link(id, { download: true })
    expect((await get(url)).headers.get('content-disposition')).toBe('attachment; filename=a.png')
  })

  test('H5, H7, V18 of all variants grants each of them, by name and by width, and the file', async () => {
    const { id } = await upload(server, picture, { name: 'a.png' })
    const { url } = await link(id, { variant: '*' })
    const file = await get(url)
    expect([await file.bytes(), file.headers.get('mediabucket-variant')]).toEqual([picture, null])
    for (const [choice, size] of [
      ...[
        ['&variant=thumb', 'thumb'],
        ['&variant=medium&wait=60', 'medium'],
      ],
      ...[
        ['&w=1', 'thumb'],
        ['&w=401', 'medium'],
        ['&w=5000&wait=60', 'medium'],
      ],
    ] as const) {
      const response = await get(`${url}${choice}`)
      expect([choice, response.status, response.headers.get('mediabucket-variant')]).toEqual([
        choice,
        200,
        size,
      ])
      expect(response.headers.get('cache-control')).toMatch(/^private, max-age=/)
    }
    const sorted = new URL(`${url}&variant=thumb`)
    sorted.searchParams.sort()
    expect((await get(`${sorted}`)).headers.get('mediabucket-variant')).toBe('thumb')
    for (const wrong of ['&variant=', '&w=0', '&w=1&variant=thumb', '&fit=cover', '&w=1&q=80'])
      await expectProblem(await get(`${url}${wrong}`), 403, 'signature-invalid')
    await expectProblem(await get(`${url}&variant=none`), 400, 'variant-unknown')
    const { url: one } = await link(id)
    for (const more of ['&w=100', '&variant=thumb', '&variants=all'])
      await expectProblem(await get(`${one}${more}`), 403, 'signature-invalid')
  })

  test('H5 that was changed in any covered part is refused, for every item alike', async () => {
    const item = await upload(server, picture, { name: 'a.png' })
    const other = await upload(server, picture, { name: 'b.png' })
    const { url } = await link(item.id)
    const { url: thumb } = await link(item.id, { variant: 'thumb' })
    const { url: saved } = await link(item.id, { download: true })
    const changed = {
      'another item': url.replace(item.id, other.id),
      'an unknown item': url.replace(item.id, '0'.repeat(item.id.length)),
      'no extension': url.replace('.png?', '?'),
      'an encoded path': url.replace(item.id, `%${item.id.charCodeAt(0).toString(16)}${item.id.slice(1)}`),
      'a later expiry': url.replace(/expires=(\d+)/, (_, at: string) => `expires=${Number(at) + 900}`),
      'an expiry with a zero': url.replace('expires=', 'expires=0'),
      'another key': url.replace(/key=\w+/, 'key=000000000000'),
      'a variant more': `${url}&variant=thumb`,
      'another variant': thumb.replace('=thumb', '=medium'),
      'a variant less': thumb.replace('&variant=thumb', ''),
      'a download more': url.replace('?', '?download=1&'),
      'a download less': saved.replace('download=1&', ''),
      'a repeated expiry': `${url}&expires=9999999999`,
      'a repeated variant': `${thumb}&variant=medium`,
      'an unknown parameter': `${url}&utm_source=x`,
      'another order': url.replace(/(expires=\d+)&(key=\w+)/, '$2&$1'),
      'another signature': url.replace(/signature=./, (at) =>
        at.endsWith('A') ? 'signature=B' : 'signature=A',
      ),
      'other unused bits of the signature': url.replace(/.$/, (last) => {
        const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
        return alphabet[alphabet.indexOf(last) ^ 1] ?? ''
      }),
      'padding of the signature': `${url}=`,
      'no signature at all': url.replace(/signature=.*/, 'signature='),
    }
    for (const [name, target] of Object.entries(changed)) {
      const response = await get(target)
      expect([name, response.status]).toEqual([name, 403])
      await expectProblem(response, 403, 'signature-invalid')
    }
    // Without the parameter, the URL is not a signed one.
    await expectProblem(await get(url.replace(/&signature=.*/, '')), 404, 'media-unknown')
  })

  test('H6 is refused once it has expired, for every item alike', async () => {
    const { id } = await upload(server, picture, { name: 'a.png' })
    const { url } = await link(id, { expires_in: 1 })
    await until('the expiry', async () => (await get(url)).status === 403)
    await expectProblem(await get(url), 403, 'link-expired')
    await server.request(`/api/media/${id}`, { method: 'DELETE' })
    await expectProblem(await get(url), 403, 'link-expired')
  })

  test('H6 of a deleted item is 404', async () => {
    const { id } = await upload(server, picture, { name: 'a.png' })
    const { url } = await link(id)
    expect((await get(url)).status).toBe(200)
    await server.request(`/api/media/${id}`, { method: 'DELETE' })
    await expectProblem(await get(url), 404, 'media-unknown')
  })

  test('H3, H5 a public bucket needs none, ignores tokens, and its links expire too', async () => {
    const own = await sharedServer()
    const { id } = await upload(own, 'text')
    const response = await own.request(`/api/media/${id}/links`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"expires_in": 1}',
    })
    const { url } = await readLink(response)
    await until('the expiry', async () => (await get(url)).status === 403)
    for (const headers of [{}, { authorization: 'Bearer x' }])
      expect((await get(`${own.url}/media/${id}`, headers)).status).toBe(200)
  })
})

describe('H7 a request for links', () => {
  const send = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    server.request(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })

  test('of many items', async () => {
    const items = [await upload(server, 'a'), await upload(server, 'b')]
    const foreign = await sharedServer()
    const theirs = await upload(foreign, 'c')
    const ids = [...items.map(({ id }) => id), items[0]?.id, theirs.id, 'x']
    const response = await send('/api/links', { ids, expires_in: 60 })
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
    const { links, missing } = await readLinks(response)
    expect(links.map(({ id }) => id)).toEqual(items.map(({ id }) => id))
    expect(missing).toEqual([theirs.id, 'x'])
    const texts = await Promise.all(links.map(async ({ url }) => (await get(url)).text()))
    expect(texts).toEqual(['a', 'b'])
  })

  test('needs media:read and an item of the bucket', async () => {
    const { id } = await upload(server, 'a')
    const writer = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:write')
    const other = await makeToken(server, '--bucket', uniqueName('other'))
    for (const path of [`/api/media/${id}/links`, '/api/links'])
      await expectProblem(
        await send(path, { ids: [id] }, { authorization: writer.authorization }),
        403,
        'scope-missing',
      )
    await expectProblem(
      await send(`/api/media/${id}/links`, {}, { authorization: other.authorization }),
      404,
      'media-unknown',
    )
    await expectProblem(await send('/api/media/x/links', {}), 404, 'media-unknown')
    await expectProblem(await fetch(`${server.url}/api/links`, { method: 'POST' }), 401, 'token-missing')
  })

  test.each([
    ['expires_in', 0],
    ['expires_in', -1],
    ['expires_in', 1.5],
    ['expires_in', '60'],
    ['expires_in', 7 * 86_400 + 1],
    ['expires_in', 1e300],
    ['variant', 'huge'],
    ['variant', ''],
    ['variant', 1],
    ['download', 'yes'],
    ['download', null],
    ['names', 'on'],
    ['names', null],
    ['other', 1],
  ])('H7, P1 with %s %o is refused', async (parameter, value) => {
    const { id } = await upload(server, 'a')
    for (const path of [`/api/media/${id}/links`, '/api/links']) {
      const problem = await expectProblem(
        await send(path, { ...(path === '/api/links' && { ids: [id] }), [parameter]: value }),
        400,
        'json-malformed',
      )
      expect(problem.errors?.map((error) => error.parameter)).toEqual([parameter])
    }
  })
})

test('H11 nothing but the links themselves contains a signature or a key', async () => {
  const { id } = await upload(server, 'a')
  const { url } = await link(id)
  const signature = new URL(url).searchParams.get('signature') ?? ''
  await get(url)
  await expectProblem(await get(`${url}&x`), 403, 'signature-invalid')
  await sendRaw(
    server.url,
    `GET ${new URL(url).pathname}%3f${url.split('?')[1]} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
  )
  const [path = '', query = ''] = url.slice(server.url.length).split('?')
  const misspelled = ['&', ';', '%26', '%253b', '/', ',', ':', '%3f', '=', '|'].flatMap((separator) => [
    `${path}${separator}${query}`,
    `/${query.replaceAll('&', separator)}`,
    `${path}${separator}signature${separator}${signature}`,
  ])
  for (const target of misspelled)
    await sendRaw(server.url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  await sendRaw(server.url, `GET ${url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  const mark = `/mark-${crypto.randomUUID()}`
  await fetch(server.url + mark)
  await until('what was sent is logged', () => server.stderr().includes(mark))
  expect(server.stderr() + metrics).not.toContain(signature)
})
