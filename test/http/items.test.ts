import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { seededRandom } from '../harness/random.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { readItem, readItems, readStoredItems } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

type Headers = Readonly<Record<string, string>>

/** A new bucket. */
async function newBucket() {
  const { authorization } = await makeToken(server, '--bucket', uniqueName('items'))
  const call = (path: string, init: RequestInit & { headers?: Headers } = {}) =>
    server.request(path, { ...init, headers: { authorization, ...init.headers } })
  const list = (query = '', headers: Headers = {}) => call(`/api/items${query}`, { headers })
  return {
    authorization,
    call,
    list,
    /** Uploads two or more files with one request. */
    async add(count: number) {
      const body = new FormData()
      for (let i = 0; i < count; i += 1) body.append('file', new File([`${i}`], `${i}.txt`))
      return await readStoredItems(await call('/api/media', { method: 'POST', body }))
    },
    remove: ({ id }: { id: string }) => call(`/api/media/${id}`, { method: 'DELETE' }),
    /** The items of all responses. */
    async all(query: string) {
      const found = []
      for (let after = ''; ; ) {
        const { data, next_cursor } = await readItems(await list(`?${query}${after}`))
        found.push(...data)
        if (next_cursor === null) return found
        after = `&after=${next_cursor}`
      }
    },
  }
}

const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)

describe('a bucket of seven items', () => {
  let bucket: Awaited<ReturnType<typeof newBucket>>
  let items: Awaited<ReturnType<typeof bucket.add>>
  beforeAll(async () => {
    bucket = await newBucket()
    items = await bucket.add(7)
  })

  test('K1 the items are the media objects of their uploads', async () => {
    const response = await bucket.list()
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    const text = await response.text()
    expect(text).toBe(JSON.stringify({ data: items, next_cursor: null }))
    const [first] = items
    const details = await (await bucket.call(`/api/media/${first?.id}`)).text()
    expect(text.startsWith(`{"data":[${details},`)).toBe(true)
  })

  test('K2 the order is that of the uploads, or its reverse', async () => {
    const orders = { '': items, '?order=oldest': items, '?order=newest': items.toReversed() }
    for (const [query, expected] of Object.entries(orders))
      expect((await readItems(await bucket.list(query))).data).toEqual(expected)
  })

  test.each(['limit=1', 'limit=3', 'limit=7', 'limit=500', 'limit=2&order=newest'])(
    'K3, K4 the cursors lead through all items: %s',
    async (query) => {
      const expected = query.includes('newest') ? items.toReversed() : items
      expect(await bucket.all(query)).toEqual(expected)
    },
  )

  test('K4 Link has the absolute URL of the items that follow, and is absent at the end', async () => {
    const response = await bucket.list('?limit=4&order=newest&unknown=1')
    const link = response.headers.get('link') ?? ''
    const { next_cursor } = await readItems(response)
    expect(link).toBe(`<${server.url}/api/items?limit=4&order=newest&after=${next_cursor}>; rel="next"`)
    const next = await bucket.list(new URL(link.slice(1, link.indexOf('>'))).search)
    expect(next.headers.get('link')).toBeNull()
    expect((await readItems(next)).data).toEqual(items.toReversed().slice(4))
  })

  test('K4, L18 Host changes no URL', async () => {
    const head = `Host: evil.example\r\nAuthorization: ${bucket.authorization}\r\nConnection: close\r\n`
    const response = await sendRaw(server.url, `GET /api/items?limit=1 HTTP/1.1\r\n${head}\r\n`)
    expect(responseOf(response).headers.get('link')).toContain(`<${server.url}/api/items?`)
    expect(response.body).not.toContain('evil')
  })

  test.each([
    ['limit=0', ['limit']],
    ['limit=501', ['limit']],
    ['limit=', ['limit']],
    ['limit=1.5', ['limit']],
    ['limit=01', ['limit']],
    ['limit=1&limit=2', ['limit']],
    ['order=Oldest', ['order']],
    ['order=', ['order']],
    ['order=newest&order=newest', ['order']],
    ['after=a&after=b', ['after']],
    ['kind=images', ['kind']],
    ['from=2026-05-01', ['from']],
    ['to=2026-05-01T00:00:00+02:00', ['to']],
    ['name=', ['name']],
    ['name=%20', ['name']],
    ['name=%CC%81', ['name']],
    ['name=a&name=b', ['name']],
    [`name=${'a'.repeat(201)}`, ['name']],
    ['name=1+2+3+4+5+6+7+8+9', ['name']],
    ['limit=x&order=y', ['limit', 'order']],
    // PostgreSQL refuses the character in a text.
    ['name=a%00', ['name']],
    ['path=%00', ['path']],
    ['order=name&start_name=%00', ['start_name']],
    ['order=name&start_name=a%00b', ['start_name']],
  ])('K3 %s gets a problem that names each parameter', async (query, parameters) => {
    const problem = await expectProblem(await bucket.list(`?${query}`), 400, 'parameter-malformed')
    expect(problem.errors?.map(({ parameter }) => parameter)).toEqual(parameters)
    for (const { detail } of problem.errors ?? []) expect(detail).toMatch(/^\w+ accepts one/)
  })

  test('K4, K11 name selects items, and is part of the URL of those that follow', async () => {
    const response = await bucket.list('?name=txt%203')
    expect(await readItems(response)).toEqual({ data: [items[3]], next_cursor: null })
    const link = (await bucket.list('?limit=3&name=.T%26')).headers.get('link')
    expect(link).toBeNull()
    const first = await bucket.list('?limit=3&name=.T%20x')
    const { next_cursor } = await readItems(first)
    expect(first.headers.get('link')).toContain(`/api/items?limit=3&name=.T+x&after=${next_cursor}>`)
    expect(await bucket.all('limit=3&name=.T%20x')).toEqual(items)
    expect(await bucket.all('limit=2&order=newest&kind=document&name=.T')).toEqual(items.toReversed())
    const other = await bucket.list(`?limit=3&name=.T&after=${next_cursor}`)
    await expectProblem(other, 400, 'cursor-malformed')
  })

  test('K10, K11 the items with a name are sent as lines', async () => {
    const lines = (query: string) => bucket.list(query, { accept: 'application/x-ndjson' })
    expect(await (await lines('?name=5.txt')).text()).toBe(`${JSON.stringify(items[5])}\n`)
    expect(await (await lines('?name=nothing')).text()).toBe('')
  })

  test('K7 the ETag of a search is that of its name', async () => {
    const etag = async (query: string) => (await bucket.list(query)).headers.get('etag') ?? ''
    const one = await etag('?name=1')
    expect(one).not.toBe(await etag('?name=2'))
    expect((await bucket.list('?name=1', { 'if-none-match': one })).status).toBe(304)
  })

  test('K6 a malformed or foreign cursor gets a problem, also with If-None-Match: *', async () => {
    const { next_cursor } = await readItems(await bucket.list('?limit=2'))
    const cursor = next_cursor ?? ''
    const other = await newBucket()
    await other.add(3)
    const foreign = (await readItems(await other.list('?limit=2'))).next_cursor
    const malformed = [
      '',
      'x',
      cursor.slice(1),
      `${cursor}A`,
      `${cursor}==`,
      'A'.repeat(10_000),
      '%00',
      foreign,
    ]
    const queries = [
      ...malformed.map((text) => `?limit=2&after=${text}`),
      `?limit=2&after=${cursor}&order=newest`,
    ]
    for (const query of queries) {
      const problem = await expectProblem(await bucket.list(query), 400, 'cursor-malformed')
      expect(problem.errors).toEqual([{ parameter: 'after', detail: problem.detail }])
      await expectProblem(await bucket.list(query, { 'if-none-match': '*' }), 400, 'cursor-malformed')
    }
  })

  test('K7 an unchanged list is a 304 with the same headers, from an ETag, a list of them, or *', async () => {
    const query = '?limit=3'
    const response = await bucket.list(query)
    const etag = response.headers.get('etag') ?? ''
    expect(etag).toMatch(/^"[^"]+"$/)
    expect(response.headers.get('cache-control')).toBe('private, no-cache')
    expect(response.headers.get('vary')).toBe('Authorization, Mediabucket-Bucket, Accept, Accept-Encoding')
    for (const value of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const same = await bucket.list(query, { 'if-none-match': value })
      expect([value, same.status, await same.text()]).toEqual([value, 304, ''])
      for (const name of ['etag', 'cache-control', 'vary'])
        expect(same.headers.get(name)).toBe(response.headers.get(name))
    }
    for (const other of ['?limit=4', '?limit=3&order=newest'])
      expect((await bucket.list(other, { 'if-none-match': etag })).status).toBe(200)
    const another = await newBucket()
    expect((await another.list(query, { 'if-none-match': etag })).status).toBe(200)
  })

  test('K7 a list is compressed for clients that accept gzip, with an ETag of its own', async () => {
    const plain = await bucket.list('', { 'accept-encoding': 'identity' })
    const head = `Host: x\r\nAuthorization: ${bucket.authorization}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n`
    const response = await sendRaw(server.url, `GET /api/items HTTP/1.0\r\n${head}\r\n`)
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(response.headers.get('etag')).not.toBe(plain.headers.get('etag'))
    expect(gunzipSync(Buffer.from(response.body, 'latin1')).toString()).toBe(await plain.text())
    const short = await bucket.list('?limit=1', { 'accept-encoding': 'gzip' })
    expect(short.headers.get('content-encoding')).toBeNull()
    expect((await readItems(short)).data).toEqual(items.slice(0, 1))
  })

  test('K1 HEAD has the headers of GET and no body', async () => {
    const get = await bucket.list('?limit=3')
    const head = await bucket.call('/api/items?limit=3', { method: 'HEAD' })
    const shown = (response: Response) =>
      [...response.headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name))
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect(shown(head)).toEqual(shown(get))
  })

  test('A3, K1 the list requires media:read', async () => {
    const { authorization } = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:write')
    await expectProblem(
      await server.request('/api/items', { headers: { authorization } }),
      403,
      'scope-missing',
    )
  })
})

test('K1, A6 a new bucket has no items', async () => {
  const bucket = await newBucket()
  const response = await bucket.list()
  expect(response.headers.get('link')).toBeNull()
  expect(await response.json()).toEqual({ data: [], next_cursor: null })
})

test('K7 the ETag changes with every upload and delete', async () => {
  const bucket = await newBucket()
  const tagNow = async () => (await bucket.list()).headers.get('etag')
  const seen = new Set([await tagNow()])
  const [first] = await bucket.add(2)
  seen.add(await tagNow())
  if (first) await bucket.remove(first)
  seen.add(await tagNow())
  expect(seen.size).toBe(3)
})

test('K1 a picture is listed with its variants', async () => {
  const bucket = await newBucket()
  const svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'
  const body = (text: string, type: string) => ({
    method: 'POST',
    body: text,
    headers: { 'content-type': type },
  })
  const gif = await readItem(await bucket.call('/api/media', body('GIF89a\x01\0\x01\0\0\0\0;', 'image/gif')))
  await bucket.call('/api/media', body(svg, 'image/svg+xml'))
  const { data } = await readItems(await bucket.list())
  expect(data.map(({ variants }) => variants)).toEqual([
    { thumb: `${gif.url}?variant=thumb`, medium: `${gif.url}?variant=medium` },
    null,
  ])
})

test('K8, K9 kind, from and to select items', async () => {
  const bucket = await newBucket()
  const store = async (body: string, type: string) =>
    readItem(await bucket.call('/api/media', { method: 'POST', body, headers: { 'content-type': type } }))
  const gif = await store('GIF89a\x01\0\x01\0\0\0\0;', 'image/gif')
  const pdf = await store('%PDF-1.7', 'application/pdf')
  const data = await store('\0\x01\x02', 'application/octet-stream')
  // The clock of the service may not advance between two uploads.
  const all = [gif, pdf, data].toSorted(
    (one, next) => Date.parse(one.created_at) - Date.parse(next.created_at),
  )
  const before = (time: string) => all.filter(({ created_at }) => created_at < time)
  const atLeast = (time: string) => all.filter(({ created_at }) => created_at >= time)
  const queries = {
    'kind=image': [gif],
    'kind=document': [pdf],
    'kind=other': [data],
    'kind=video': [],
    [`from=${pdf.created_at}`]: atLeast(pdf.created_at),
    [`to=${pdf.created_at}`]: before(pdf.created_at),
    [`to=${pdf.created_at}&order=newest`]: before(pdf.created_at).toReversed(),
    'from=2000-01-01T00:00:00Z&to=2999-01-01T00:00:00%2B01:00&limit=1': all,
    'to=2000-01-01T00:00:00Z': [],
    [`from=${pdf.created_at}&kind=document`]: [pdf],
  }
  for (const [query, expected] of Object.entries(queries))
    expect([query, idsOf(await bucket.all(query))]).toEqual([query, idsOf(expected)])

  const response = await bucket.list('?limit=1&kind=image&from=2000-01-01T00:00:00Z')
  expect(response.headers.get('link')).toBeNull()
  await store('GIF89a\x01\0\x01\0\0\0\0;', 'image/gif')
  const followed = await bucket.list('?limit=1&kind=image&from=2000-01-01T00:00:00Z')
  const link = new URL(/<(.*)>/.exec(followed.headers.get('link') ?? '')?.[1] ?? '')
  expect([...link.searchParams].slice(0, -1)).toEqual([
    ['limit', '1'],
    ['kind', 'image'],
    ['from', '2000-01-01T00:00:00Z'],
  ])
  const cursor = link.searchParams.get('after')
  for (const query of ['kind=video&from=2000-01-01T00:00:00Z', 'kind=image', 'from=2000-01-01T00:00:00Z'])
    await expectProblem(await bucket.list(`?after=${cursor}&${query}`), 400, 'cursor-malformed')
})

describe('K5 while others upload and delete', () => {
  test.each(['oldest', 'newest'])('each item that stays is listed exactly once: %s first', async (order) => {
    const random = seededRandom()
    const bucket = await newBucket()
    const [kept, doomed] = [await bucket.add(20), await bucket.add(20)]
    const more = await bucket.add(20)
    const staying = idsOf([...kept, ...more])
    const expected = order === 'oldest' ? staying : staying.toReversed()
    let isOver = false
    const change = async () => {
      const mine = [...doomed]
      while (!isOver) {
        mine.push(...(await bucket.add(2 + random(3))))
        for (const item of mine.splice(random(mine.length), 3)) await bucket.remove(item)
      }
    }
    const changing = Promise.all([change(), change()])
    try {
      for (let round = 0; round < 3; round += 1) {
        const found = idsOf(await bucket.all(`order=${order}&limit=${3 + random(8)}`))
        expect(new Set(found).size).toBe(found.length)
        const wanted = new Set(expected)
        expect(found.filter((id) => wanted.has(id))).toEqual(expected)
      }
    } finally {
      isOver = true
      await changing
    }
  })
})
