import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { readEvents } from '../harness/events.ts'
import { quarters, renderCount, storedVariants } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { seededRandom } from '../harness/random.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems } from '../harness/wire.ts'

let server: TestServer
let picture: Uint8Array<ArrayBuffer>
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_ADDRESS_RATE: 'off', MEDIABUCKET_RENDER_AHEAD: 'off' })
  picture = Uint8Array.from(await quarters(90, 60).png().toBuffer())
})
afterAll(() => server[Symbol.asyncDispose]())

const storePicture = (name = 'Tag 1 am See.png') => upload(server, picture, { name, type: 'image/png' })

const shared = [
  'content-type',
  'content-length',
  'etag',
  'cache-control',
  'content-disposition',
  'vary',
  'last-modified',
]

describe('B13 a URL with a name', () => {
  test('has the bytes and headers of the short one, which is its canonical URL', async () => {
    const { id, url } = await storePicture()
    // The second response comes from memory.
    for (const [query, canonical] of [
      ['', url],
      ['?variant=thumb', `${url}?variant=thumb`],
      ['?w=300', `${url}?variant=thumb`],
      ['?download', url],
      ['?utm=1', url],
    ] as const)
      for (const name of [
        'any-name.png',
        'any-name.png',
        'noch%20ein%2FName.png',
        'ohne',
        '%2e%2e%2f%2e%2e%2fetc.png',
      ]) {
        const [named, short] = [
          await fetch(`${server.url}/media/${id}/${name}${query}`),
          await fetch(`${url}${query}`),
        ]
        expect([name, query, named.status]).toEqual([name, query, 200])
        expect(named.headers.get('link')).toBe(`<${canonical}>; rel="canonical"`)
        expect(short.headers.get('link')).toBeNull()
        for (const header of shared)
          expect([header, named.headers.get(header)]).toEqual([header, short.headers.get(header)])
        expect(await named.bytes()).toEqual(await short.bytes())
      }
    const named = `${server.url}/media/${id}/x.png`
    const range = await fetch(named, { headers: { range: 'bytes=0-3' } })
    expect([range.status, range.headers.get('link')]).toEqual([206, `<${url}>; rel="canonical"`])
    const etag = range.headers.get('etag') ?? ''
    const unchanged = await fetch(named, { headers: { 'if-none-match': etag } })
    expect([unchanged.status, unchanged.headers.get('link')]).toEqual([304, `<${url}>; rel="canonical"`])
    const head = await fetch(named, { method: 'HEAD' })
    expect([head.status, head.headers.get('link')]).toEqual([200, `<${url}>; rel="canonical"`])
  })

  test.each(['x.jpg', 'x.png.jpg', '', 'x.', 'a/b.png'])('gets a 404 problem with %o', async (name) => {
    const { id } = await storePicture()
    expect((await fetch(`${server.url}/media/${id}/${name}`)).status).toBe(404)
    expect((await fetch(`${server.url}/media/${id}.png/${name}`)).status).toBe(404)
  })

  test('that cannot be decoded gets a 400 problem', async () => {
    const { id } = await storePicture()
    await expectProblem(await fetch(`${server.url}/media/${id}/%ff.png`), 400, 'request-malformed')
  })

  test('can be signed: the name is not a part of the signature', async () => {
    await using other = await startServer()
    const item = await upload(other, picture, { name: 'a.png', type: 'image/png' })
    await runHere(other.data, 'bucket set', 'default', '--private', 'on')
    const signedOf = async (body: object) => {
      const response = await other.request(`/api/media/${item.id}/links`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      })
      return String(Object(await response.json()).url)
    }
    const named = (url: string, name: string) =>
      url.replace(`/media/${item.id}.png`, `/media/${item.id}/${name}`)
    for (const url of [
      await signedOf({}),
      await signedOf({ variant: 'thumb' }),
      `${await signedOf({ variant: '*' })}&w=100`,
    ]) {
      const response = await fetch(named(url, 'any.png'))
      expect(response.status).toBe(200)
      // Without the signature, which is for those who have it.
      expect(response.headers.get('link')).toMatch(
        new RegExp(`^<${item.url}(\\?variant=thumb)?>; rel="canonical"$`),
      )
      await expectProblem(await fetch(named(url, 'any.jpg')), 403, 'signature-invalid')
      await expectProblem(await fetch(`${named(url, 'any.png')}x`), 403, 'signature-invalid')
    }
  })

  test('H7 is written in links that ask for it', async () => {
    const { id, url } = await storePicture('Tag 1 am See.png')
    const named = url.replace(/\.png$/, '/Tag-1-am-See.png')
    const post = async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json' }
      const response = await server.request(path, { method: 'POST', body: JSON.stringify(body), headers })
      return Object(await response.json())
    }
    for (const [names, start] of [
      [true, `${named}?`],
      [false, `${url}?`],
      [undefined, `${url}?`],
    ] as const) {
      const one = await post(`/api/media/${id}/links`, { names })
      const many = await post('/api/links', { ids: [id], names })
      for (const link of [String(one.url), String(Object(many.links[0]).url)]) {
        expect(link.slice(0, start.length)).toBe(start)
        expect((await fetch(link)).status).toBe(200)
      }
    }
  })

  test('10,000 hostile names store and render nothing, and add no header', async () => {
    const { id, url } = await storePicture()
    for (const name of ['thumb', 'medium']) await (await fetch(`${url}?variant=${name}`)).arrayBuffer()
    const before = [await renderCount(server), storedVariants(server)]
    const next = seededRandom()
    const parts = [
      '..',
      '%2f',
      '%0d%0aSet-Cookie:%20a=b',
      '%00',
      '<script>',
      '">;',
      '%22%3E; rel=%22stylesheet',
      '.png',
      '%',
      '%e2%80%ae',
      'a'.repeat(500),
      '?w=300&',
      ';',
      '\\\\',
      '%c3%28',
      '&variant=thumb',
      '//',
      '#',
    ]
    const drawn = () => Array.from({ length: 1 + next(5) }, () => parts[next(parts.length)] ?? '').join('')
    for (let round = 0; round < 200; round += 1)
      await Promise.all(
        Array.from({ length: 50 }, async () => {
          const response = await fetch(`${server.url}/media/${id}/${drawn()}.png`, { redirect: 'manual' })
          await response.arrayBuffer()
          expect([200, 400, 404]).toContain(response.status)
          expect(response.headers.get('set-cookie')).toBeNull()
          const link = response.headers.get('link')
          if (link !== null)
            expect([`<${url}>; rel="canonical"`, `<${url}?variant=thumb>; rel="canonical"`]).toContain(link)
        }),
      )
    expect([await renderCount(server), storedVariants(server)]).toEqual(before)
    // As a target that fetch would encode.
    const raw = await sendRaw(
      server.url,
      `GET /media/${id}/a">;x="<b>.png HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    expect(raw.headers.get('link')).toBe(`<${url}>; rel="canonical"`)
    const log = server.stdout() + server.stderr()
    expect(log).not.toContain('stylesheet')
    expect(log).toContain(`/media/${id}/…`)
  })
})

describe('B13 URLs in responses', () => {
  test('have names where a request asks for them', async () => {
    const { id, url } = await storePicture()
    const named = `${server.url}/media/${id}/Tag-1-am-See.png`
    const [plain, asked] = [
      await server.request('/api/items?order=newest&limit=1'),
      await server.request('/api/items?order=newest&limit=1&names'),
    ]
    expect((await readItems(plain.clone())).data[0]?.url).toBe(url)
    const listed = (await readItems(asked.clone())).data[0]
    expect(listed).toMatchObject({ url: named, variants: { thumb: `${named}?variant=thumb` } })
    expect(asked.headers.get('etag')).not.toBe(plain.headers.get('etag'))
    expect(asked.headers.get('link')).toMatch(/[?&]names=/)
    for (const one of [named, `${named}?variant=thumb`]) expect((await fetch(one)).status).toBe(200)

    // The first render changes the item.
    await until('the placeholder', async () => {
      const { thumbhash } = await readItem(await server.request(`/api/media/${id}`))
      return thumbhash !== null
    })
    const described = await server.request(`/api/media/${id}?names=on`)
    expect((await readItem(described.clone())).url).toBe(named)
    // The name is not a part of the state that an edit expects.
    const edited = await server.request(`/api/media/${id}`, {
      method: 'PATCH',
      body: JSON.stringify({ filename: 'Neu.png' }),
      headers: { 'content-type': 'application/json', 'if-match': described.headers.get('etag') ?? '' },
    })
    expect((await readItem(edited)).url).toBe(url)
    expect((await readItem(await server.request(`/api/media/${id}?names`))).url).toBe(
      `${server.url}/media/${id}/Neu.png`,
    )
    expect((await fetch(named)).status).toBe(200)
    const { data } = Object(await (await server.request('/api/changes?names=on&limit=500')).json())
    expect(data.at(-1).item.url).toBe(`${server.url}/media/${id}/Neu.png`)
    const since = Object(await (await server.request('/api/changes?since=now')).json()).next_cursor
    const stream = readEvents(
      await server.request('/api/changes?names', {
        headers: { accept: 'text/event-stream', 'last-event-id': since },
      }),
    )
    await server.request(`/api/media/${id}`, {
      method: 'PATCH',
      body: JSON.stringify({ caption: 'again' }),
      headers: { 'content-type': 'application/json' },
    })
    expect((await stream.first(1))[0]?.change.item?.url).toBe(`${server.url}/media/${id}/Neu.png`)
    const lines = await server.request('/api/items?names', { headers: { accept: 'application/x-ndjson' } })
    expect(await lines.text()).toContain(`/media/${id}/Neu.png`)
    const { errors } = await expectProblem(
      await server.request('/api/items?names=yes'),
      400,
      'parameter-malformed',
    )
    expect(errors?.[0]).toMatchObject({ parameter: 'names', accepted: ['', 'on', 'off'] })
    const page = Object(await (await server.request('/api/media')).json())
    for (const one of page.data) expect(one).toMatch(/\/media\/[a-z0-9]+\.png$/)
  })

  test('have names with MEDIABUCKET_NAMES=on, in links too', async () => {
    await using other = await startServer({ MEDIABUCKET_NAMES: 'on' })
    const item = await upload(other, picture, { name: '海 1.png', type: 'image/png' })
    const named = `${other.url}/media/${item.id}/${encodeURIComponent('海-1')}.png`
    expect(item.url).toBe(named)
    const without = await readItem(await other.request(`/api/media/${item.id}?names=off`))
    expect(without.url).toBe(`${other.url}/media/${item.id}.png`)
    await runHere(other.data, 'bucket set', 'default', '--private', 'on', '--signed-pages', 'on')
    const listed = (await readItems(await other.request('/api/items'))).data[0]
    expect(listed?.url).toMatch(/\.png\?expires=.*&variants=all$/)
    const body = JSON.stringify({ ids: [item.id], variant: 'thumb' })
    const headers = { 'content-type': 'application/json' }
    const { links } = Object(
      await (await other.request('/api/links', { method: 'POST', body, headers })).json(),
    )
    for (const url of [listed?.url, listed?.variants?.thumb, links[0].url]) {
      expect(url).toContain(`/media/${item.id}/${encodeURIComponent('海-1')}.png?`)
      expect((await fetch(String(url))).status).toBe(200)
    }
  })
})
