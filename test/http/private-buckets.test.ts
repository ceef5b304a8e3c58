import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { expectProblem } from '../harness/problem.ts'
import { sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems, readLinks, readPage } from '../harness/wire.ts'
import { get, privateBucket, smallPicture } from './private-bucket.ts'

let server: SharedServer
let picture: Uint8Array<ArrayBuffer>
beforeAll(async () => {
  server = await privateBucket()
  picture = await smallPicture()
})

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
    const authorization = `Bearer ${server.token}`
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
      expect(small.headers.get('vary')).toMatch(/Authorization, Mediabucket-Bucket, Accept/)
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
    const open = new Set(['200,public, max-age=86400, immutable', '200,public, max-age=86400'])
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
    expect(await readItem(plain.item)).toEqual(item)

    await runHere(own.data, 'bucket set', own.bucket, '--signed-pages', 'on')
    // Pages of both codings, by both paths, from the cache and not.
    const signed = await lists()
    const [url = ''] = (await readPage(signed.page)).data
    const signedItem = await readItem(signed.item)
    expect((await readItems(signed.items)).data).toEqual([signedItem])
    expect(signedItem).toEqual({ ...item, url: signedItem.url, variants: signedItem.variants })
    for (const target of [
      url,
      signedItem.url,
      signedItem.variants?.thumb ?? '',
      signedItem.variants?.medium ?? '',
    ]) {
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
      const ofAll = await own.request('/api/links', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ids: [item.id], variant: '*' }),
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
      const listed = (await readItems(again.items)).data[0]?.url
      expect((await readLinks(ofAll)).links).toEqual([{ id: item.id, url: listed }])
      expect(listed).toMatch(/&variants=all$/)
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
