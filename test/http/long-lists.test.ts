import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { random, testSeed } from '../harness/random.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { upload } from '../harness/upload.ts'

/** Bytes of the items of one response (docs/interface.md N7), and those of one item with the longest texts. */
const maxBytes = 1_048_576
const longestItem = 130_000

const List = Type.Object({
  data: Type.Array(Type.Object({ id: Type.String() })),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
})

let server: TestServer
let seed: number
beforeAll(async () => {
  server = await startServer()
  seed = testSeed()
  await server.command('bucket', 'set', 'default', '--trash-days', '30')
  const below = random(seed)
  const text = (length: number) => '🖼'.repeat(below(length))
  for (let index = 0; index < 130; index += 1) {
    const name = `${text(20)} ${['cat', 'dog'][below(2)]} ${below(1_000)}.txt`
    const { id } = await upload(server, `${below(40)}`, { name })
    // The length of some texts differs much: batches of short ones follow long ones.
    const long = below(3) > 0
    const labels = Object.fromEntries(
      Array.from({ length: long ? 14 : 1 }, (_, at) => [`key-${at}`, text(200)]),
    )
    const edit = {
      caption: text(long ? 5_000 : 50),
      alt_text: text(long ? 1_000 : 50),
      labels: { ...labels, kind: `${below(2)}` },
    }
    const response = await server.request(`/api/media/${id}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: JSON.stringify(edit),
    })
    expect(response.status).toBe(200)
  }
}, 120_000)
afterAll(() => server[Symbol.asyncDispose]())

/** The ids of all items of a list, whose pages have as many as `limit`, and the sizes of its pages. */
async function follow(path: string, limit: number) {
  const ids: string[] = []
  const pages: { readonly items: number; readonly bytes: number }[] = []
  for (let after: string | null = ''; after !== null; ) {
    const response = await server.request(`${path}&limit=${limit}${after === '' ? '' : `&after=${after}`}`)
    const text = await response.text()
    const { data, next_cursor } = Value.Parse(List, JSON.parse(text))
    ids.push(...data.map(({ id }) => id))
    pages.push({ items: data.length, bytes: Buffer.byteLength(text) })
    expect(/[?&]after=([^&>]+)/.exec(response.headers.get('link') ?? '')?.[1] ?? null).toBe(next_cursor)
    after = next_cursor
  }
  return { ids, pages }
}

const orders = ['oldest', 'newest', 'taken', 'taken-desc', 'name', 'name-desc']
const filters = ['', 'name=dog', 'kind=document', 'label.kind=1', 'from=2020-01-01T00:00:00Z', 'path=']

test.each(orders.flatMap((order) => filters.map((filter) => [order, filter] as const)))(
  'N7, K4, K5 a list that ends early by its bytes continues with the next item: %s, %s',
  async (order, filter) => {
    const path = `/api/items?order=${order}${filter && `&${filter}`}`
    const { ids, pages } = await follow(path, 500)
    const { ids: all } = await follow(path, 7)
    expect(ids, `TEST_SEED=${seed}`).toEqual(all)
    for (const { bytes } of pages) expect(bytes).toBeLessThanOrEqual(maxBytes + 1_000)
    if (filter === '') {
      expect(ids).toHaveLength(130)
      expect(pages.length).toBeGreaterThan(1)
      // Full pages: only an item that has no room ends a page.
      for (const { bytes } of pages.slice(0, -1)) expect(bytes).toBeGreaterThan(maxBytes - longestItem)
    }
    const lines = await server.request(path, { headers: { accept: 'application/x-ndjson' } })
    const objects = (await lines.text()).trimEnd().split('\n').filter(Boolean)
    expect(objects.map((line) => JSON.parse(line).id)).toEqual(all)
  },
)

test.each(['', 'kind=document&', 'order=name&'])(
  'N7, K18 a numbered page has its exact size: %s',
  async (filter) => {
    const sizes: number[] = []
    for (const page of [1, 2]) {
      const response = await server.request(`/api/items?${filter}per_page=100&page=${page}`)
      sizes.push(
        Value.Parse(Type.Object({ data: Type.Array(Type.Unknown()) }), await response.json()).data.length,
      )
    }
    expect(sizes).toEqual([100, 30])
  },
)

test('N7, FE2 a list of changes ends early by its bytes, and continues', async () => {
  const Changes = Type.Object({
    data: Type.Array(Type.Object({ cursor: Type.String() })),
    next_cursor: Type.String(),
    has_more: Type.Boolean(),
  })
  async function read(limit: number) {
    const cursors: string[] = []
    let requests = 0
    for (let after: string | null = null; ; requests += 1) {
      const response = await server.request(
        `/api/changes?limit=${limit}${after === null ? '' : `&after=${after}`}`,
      )
      const text = await response.text()
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes + 1_000)
      const { data, next_cursor, has_more } = Value.Parse(Changes, JSON.parse(text))
      cursors.push(...data.map(({ cursor }) => cursor))
      after = next_cursor
      if (!has_more) return { cursors, requests }
    }
  }
  const { cursors, requests } = await read(500)
  expect(requests).toBeGreaterThan(1)
  expect(cursors).toHaveLength(260)
  expect(cursors).toEqual((await read(7)).cursors)
})

test('N7, K15 labels with many long values have fewer values of each key', async () => {
  const Labels = Type.Object({
    data: Type.Array(
      Type.Object({ key: Type.String(), values: Type.Array(Type.Unknown()), has_more: Type.Boolean() }),
    ),
  })
  const response = await server.request('/api/labels?limit=500')
  const text = await response.text()
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes)
  const { data } = Value.Parse(Labels, JSON.parse(text))
  expect(data).toHaveLength(15)
  for (const { key, values, has_more } of data) {
    if (key === 'kind') expect([values.length, has_more]).toEqual([2, false])
    else expect(values.length).toBeGreaterThan(50)
  }
})

test('N7, Z2 a list of the trash ends early by its bytes, and continues', async () => {
  const { ids } = await follow('/api/items?order=oldest', 500)
  const response = await server.request('/api/media', {
    method: 'DELETE',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ids }),
  })
  expect(response.status).toBe(200)
  const read = async (limit: number) => {
    const found: string[] = []
    let requests = 0
    for (let after: string | null = ''; after !== null; requests += 1) {
      const list = await server.request(`/api/trash?limit=${limit}${after === '' ? '' : `&after=${after}`}`)
      const text = await list.text()
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes + 1_000)
      const { data, next_cursor } = Value.Parse(List, JSON.parse(text))
      found.push(...data.map(({ id }) => id))
      after = next_cursor
    }
    return { found, requests }
  }
  const { found, requests } = await read(500)
  expect(requests).toBeGreaterThan(1)
  expect([...found].sort()).toEqual([...ids].sort())
  expect(found).toEqual((await read(7)).found)
})
