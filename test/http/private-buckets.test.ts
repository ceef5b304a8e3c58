import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { quarters } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItems, readLink, readLinks, readMedia, readPage } from '../harness/wire.ts'

let server: SharedServer
let authorization: string
let picture: Uint8Array<ArrayBuffer>
beforeAll(async () => {
  server = await sharedServer()
  authorization = `Bearer ${server.token}`
  picture = Uint8Array.from(await quarters(64, 64).png().toBuffer())
  await set('--private', 'on')
})

const set = (...settings: string[]) => runHere(server.data, 'bucket set', server.bucket, ...settings)
const get = (url: string | URL, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(url, { method, headers, redirect: 'manual' })
const withToken = { authorization: '' }
beforeAll(() => {
  withToken.authorization = authorization
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

/** Of a response, what a caller without rights must not be able to distinguish. */
async function seen(response: Response) {
  const body: unknown = response.headers.get('content-length') === '0' ? '' : await response.text()
  const headers = Object.fromEntries(response.headers)
  for (const name of ['date', 'etag']) delete headers[name]
  return { status: response.status, headers, body: String(body).replace(/"instance":"[^"]*"/, '') }
}

describe('H1, H2 the bytes of a private bucket', () => {
  test('look as those of an unknown item to everybody without rights', async () => {
    const { id, url } = await upload(server, picture, { name: 'a.png' })
    const other = await makeToken(server, '--bucket', uniqueName('other'))
    const writer = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:write')
    const unknown = `${server.url}/media/${'0'.repeat(id.length)}.png`
    const cases: [Record<string, string>, number, string][] = [
      [{}, 404, 'media-unknown'],
      [{ authorization: other.authorization }, 404, 'media-unknown'],
      [{ authorization: writer.authorization }, 403, 'scope-missing'],
      [{ authorization: 'Bearer mbkt_wrong' }, 401, 'token-malformed'],
      [{ range: 'bytes=0-3' }, 404, 'media-unknown'],
      [{ range: 'bytes=99999-' }, 404, 'media-unknown'],
      [{ 'if-none-match': '*' }, 404, 'media-unknown'],
      [{ 'if-match': '"x"' }, 404, 'media-unknown'],
    ]
    for (const suffix of ['', '?variant=thumb', '?variant=medium&x=1', '?download', '?token=x'])
      for (const [headers, status, code] of cases) {
        const response = await get(url + suffix, headers)
        const same = await get(unknown + suffix, headers)
        expect(await seen(response.clone())).toEqual(await seen(same))
        await expectProblem(response, status, code)
        const [head, sameHead] = [
          await get(url + suffix, headers, 'HEAD'),
          await get(unknown + suffix, headers, 'HEAD'),
        ]
        expect(head.status).toBe(status)
        expect((await seen(head)).headers).toEqual((await seen(sameHead)).headers)
      }
    const twice = `Authorization: ${authorization}\r\nAuthorization: ${authorization}\r\n`
    for (const target of [url, unknown]) {
      const path = new URL(target).pathname
      const raw = await sendRaw(
        server.url,
        `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${twice}\r\n`,
      )
      expect([raw.status, /"code":"([^"]*)/.exec(raw.body)?.[1]]).toEqual([400, 'authorization-repeated'])
    }
  })

  test('H4 are sent to a token of the bucket with media:read, and may be stored by no shared cache', async () => {
    const { id, url } = await upload(server, picture, { name: 'a.png' })
    const reader = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:read')
    const headers = { authorization: reader.authorization }
    // The second response could be one from memory.
    for (let round = 0; round < 3; round += 1) {
      for (const target of [url, `${server.url}/media/${id}`]) {
        const response = await get(target, headers)
        expect(response.status).toBe(200)
        expect(await response.bytes()).toEqual(picture)
        expect(response.headers.get('cache-control')).toBe('private, no-cache')
        expect(response.headers.get('vary')).toContain('Authorization')
        await expectProblem(await get(target), 404, 'media-unknown')
      }
      const etag = (await get(url, headers, 'HEAD')).headers.get('etag') ?? ''
      for (const [more, status] of [
        [{ 'if-none-match': etag }, 304],
        [{ range: 'bytes=0-3' }, 206],
      ] as const) {
        const response = await get(url, { ...headers, ...more })
        expect([response.status, response.headers.get('cache-control')]).toEqual([
          status,
          'private, no-cache',
        ])
        expect(response.headers.get('vary')).toContain('Authorization')
      }
      const small = await get(`${url}?variant=thumb`, headers)
      expect([small.status, small.headers.get('cache-control')]).toEqual([200, 'private, no-cache'])
      expect(small.headers.get('vary')).toMatch(/Authorization, Accept/)
    }
  })

  test('H1 a switch takes effect with the next request, also for bytes in memory', async () => {
    const own = await sharedServer()
    const set = (...settings: string[]) => runHere(own.data, 'bucket set', own.bucket, ...settings)
    const { url } = await upload(own, picture, { name: 'a.png' })
    const targets = [url, `${url}?variant=thumb`]
    const read = async () => {
      const responses = []
      for (let round = 0; round < 3; round += 1)
        for (const target of targets) {
          const response = await get(target)
          await response.bytes()
          responses.push([response.status, response.headers.get('cache-control')])
        }
      return new Set(responses.map(String))
    }
    const open = new Set(['200,public, max-age=86400, immutable'])
    expect(await read()).toEqual(open)
    for (let round = 0; round < 2; round += 1) {
      await set('--private', 'on')
      expect(await read()).toEqual(new Set(['404,no-store']))
      const response = await own.request(url)
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'private, no-cache'])
      await set('--private', 'off')
      expect(await read()).toEqual(open)
    }
  })

  test('Q3 GET /api/bucket and bucket list show the settings', async () => {
    const own = await sharedServer()
    const settings = async () => await (await own.request('/api/bucket')).json()
    expect(await settings()).toMatchObject({ private: false, signed_pages: false })
    await runHere(own.data, 'bucket set', own.bucket, '--private', 'on', '--signed-pages', 'on')
    expect(await settings()).toMatchObject({ private: true, signed_pages: true })
    const { stdout } = await own.command('bucket', 'list', '--json')
    const row = stdout.split('\n').find((line) => line.includes(own.bucket)) ?? '{}'
    expect(JSON.parse(row)).toMatchObject({ private: true, signed_pages: true })
    const name = uniqueName('made')
    await own.command('bucket', 'create', name, '--private', 'on')
    const made = await makeToken(own, '--bucket', name)
    const shown = await own.request('/api/bucket', { headers: { authorization: made.authorization } })
    expect(await shown.json()).toMatchObject({ name, private: true, signed_pages: false })
  })
})

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

describe('H10 lists of a private bucket', () => {
  let own: SharedServer
  let item: Awaited<ReturnType<typeof upload>>
  beforeAll(async () => {
    own = await sharedServer()
    item = await upload(own, picture, { name: 'a.png' })
    await runHere(own.data, 'bucket set', own.bucket, '--private', 'on')
  })
  afterAll(() => runHere(own.data, 'bucket set', own.bucket, '--signed-pages', 'off'))

  const lists = async () => ({
    page: await own.request('/api/media'),
    items: await own.request('/api/items'),
    item: await own.request(`/api/media/${item.id}`),
  })

  test('have plain URLs, or signed ones with signed_pages; the entity tags differ', async () => {
    const plain = await lists()
    expect((await readPage(plain.page)).data).toEqual([item.url])
    expect((await readItems(plain.items)).data).toEqual([item])
    expect(await readMedia(plain.item)).toEqual(item)

    await runHere(own.data, 'bucket set', own.bucket, '--signed-pages', 'on')
    // Pages of both codings, by both paths, from the cache and not.
    const signed = await lists()
    const [url = ''] = (await readPage(signed.page)).data
    const media = await readMedia(signed.item)
    expect((await readItems(signed.items)).data).toEqual([media])
    expect(media).toEqual({ ...item, url: media.url, variants: media.variants })
    for (const target of [url, media.url, media.variants?.thumb ?? '', media.variants?.medium ?? '']) {
      expect(target).toContain('signature=')
      expect((await get(target)).status).toBe(200)
    }
    for (const name of ['page', 'items', 'item'] as const)
      expect(signed[name].headers.get('etag')).not.toBe(plain[name].headers.get('etag'))
    const lines = await own.request('/api/items', { headers: { accept: 'application/x-ndjson' } })
    expect(JSON.parse(await lines.text()).url).toContain('signature=')

    await runHere(own.data, 'bucket set', own.bucket, '--private', 'off')
    expect((await readPage(await own.request('/api/media'))).data).toEqual([item.url])
    await runHere(own.data, 'bucket set', own.bucket, '--private', 'on', '--signed-pages', 'off')
    expect((await readPage(await own.request('/api/media'))).data).toEqual([item.url])
  })

  test('H10 have the URLs that the query selects', async () => {
    for (const setting of ['on', 'off']) {
      await runHere(own.data, 'bucket set', own.bucket, '--signed-pages', setting)
      for (const path of ['/api/items', `/api/media/${item.id}`]) {
        const read = async (query: string) => await (await own.request(path + query)).text()
        expect([await read('?urls=plain'), await read('?urls=signed')]).toEqual([
          expect.not.stringContaining('signature='),
          expect.stringContaining('signature='),
        ])
        for (const query of ['?urls=', '?urls=x', '?urls=plain&urls=signed'])
          await expectProblem(await own.request(path + query), 400, 'parameter-malformed')
      }
    }
    await runHere(own.data, 'bucket set', own.bucket, '--private', 'off')
    expect(await (await own.request('/api/items?urls=signed')).text()).not.toContain('signature=')
    await runHere(own.data, 'bucket set', own.bucket, '--private', 'on')
  })

  test('H10, L16 are the same within a window of 15 minutes, and valid for 15 to 30', async () => {
    await runHere(own.data, 'bucket set', own.bucket, '--signed-pages', 'on')
    const windowOf = () => Math.floor(Date.now() / 900_000)
    for (let before = windowOf(); ; before = windowOf()) {
      const first = await lists()
      const again = await lists()
      const direct = await own.request('/api/links', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ids: [item.id] }),
      })
      const conditional = await Promise.all(
        (['/api/media', '/api/items', `/api/media/${item.id}`] as const).map(async (path, index) => {
          const etag = [first.page, first.items, first.item][index]?.headers.get('etag') ?? ''
          return (await own.request(path, { headers: { 'if-none-match': etag } })).status
        }),
      )
      // The requests belong to two windows once in a long time.
      if (windowOf() !== before) continue
      const [url = ''] = (await readPage(first.page)).data
      expect((await readPage(again.page)).data).toEqual([url])
      expect((await readItems(again.items)).data[0]?.url).toBe(url)
      expect((await readLinks(direct)).links).toEqual([{ id: item.id, url }])
      expect(conditional).toEqual([304, 304, 304])
      const expires = Number(new URL(url).searchParams.get('expires'))
      expect(expires).toBe((before + 2) * 900)
      return
    }
  })

  test('H10, M6 an edit with the entity tag of an item with signed URLs', async () => {
    await runHere(own.data, 'bucket set', own.bucket, '--signed-pages', 'on')
    const etag = (await own.request(`/api/media/${item.id}`)).headers.get('etag') ?? ''
    const edit = (tag: string) =>
      own.request(`/api/media/${item.id}`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json', 'if-match': tag },
        body: JSON.stringify({ caption: 'x' }),
      })
    const later = etag.replace(/\d+"$/, '9999999900"')
    expect((await edit(later)).status).toBe(200)
    expect((await edit(etag)).status).toBe(412)
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
  await sendRaw(server.url, `GET ${url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  const mark = `/mark-${crypto.randomUUID()}`
  await fetch(server.url + mark)
  await until('what was sent is logged', () => server.stderr().includes(mark))
  expect(server.stderr() + metrics).not.toContain(signature)
})
