import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems, readPage, readStoredItems } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const base64 = (text: string) => Buffer.from(text).toString('base64')

const raw = (labels: string, headers: Record<string, string> = {}) =>
  server.request('/api/media', {
    method: 'POST',
    body: 'some text',
    headers: { 'mediabucket-labels': labels, ...headers },
  })

/** Sends a form with these fields and files in their order; a field is a pair. */
function form(...parts: (readonly [string, string] | string)[]) {
  const body = new FormData()
  for (const part of parts)
    if (typeof part === 'string') body.append('file', new Blob([part]), `${part}.txt`)
    else body.append(...part)
  return server.request('/api/media', { method: 'POST', body })
}

const tus = (labels: string) =>
  server.request('/api/uploads', {
    method: 'POST',
    headers: {
      'tus-resumable': '1.0.0',
      'upload-length': '3',
      'upload-metadata': `filename ${base64('a.txt')},labels ${base64(labels)}`,
      'content-type': 'application/offset+octet-stream',
    },
    body: 'abc',
  })

const patch = (path: string, body: object, headers: Record<string, string> = {}) =>
  server.request(path, {
    method: 'PATCH',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })

const select = async (query: string) => await readItems(await server.request(`/api/items?${query}`))

test('U14, M7 every way in sets labels, and every response and list has them', async () => {
  const ways: [Record<string, string>, () => Promise<Response>][] = [
    [{ album: '42', user: 'a b', n: '7' }, () => raw('album="42", user="a b", n=7')],
    [{ name: 'Zoë', tok: 'x/y' }, () => raw('name=%"Zo%c3%ab", tok=x/y')],
    [{}, () => raw('')],
    [{ '0': 'Zoë' }, () => raw('{"0":"Zo\\u00eb"}')],
    [{ '0.key': '', user: 'Zoë "\\' }, () => form(['labels', '{"user":"Zoë \\"\\\\","0.key":""}'], 'one')],
    [{}, () => form(['label', 'x'], 'one')],
  ]
  for (const [labels, send] of ways) {
    const response = await send()
    expect(response.status).toBe(201)
    const item = await readItem(response)
    expect(item.labels).toEqual(labels)
    expect((await readItem(await server.request(`/api/media/${item.id}`))).labels).toEqual(labels)
    const { data } = await select('order=newest&limit=1')
    expect(data).toEqual([item])
  }

  const several = await readStoredItems(await form(['labels', '{"a":"1"}'], 'one', 'two'))
  expect(several.map(({ labels }) => labels)).toEqual([{ a: '1' }, { a: '1' }])

  const created = await tus('{"album":"tus"}')
  expect(created.status).toBe(201)
  const { data } = await select('label.album=tus')
  expect(data.map(({ labels, filename }) => [labels, filename])).toEqual([[{ album: 'tus' }, 'a.txt']])

  const lines = await server.request('/api/items?label.album=tus', {
    headers: { accept: 'application/x-ndjson' },
  })
  expect(await lines.text()).toBe(`${JSON.stringify(data[0])}\n`)
})

test('M7, K14 keys that every object has are keys as others, whatever sets, lists, selects and removes them', async () => {
  const pairs = [
    ['__proto__', '1'],
    ['constructor', '2'],
  ] as const
  const labels = Object.fromEntries(pairs)
  const json = JSON.stringify(labels)
  const client = createClient({ url: server.url, token: server.token })
  const scopes = ['--scope', 'media:write', '--scope', 'tokens:manage']
  const { token } = await makeToken(server, '--bucket', server.bucket, ...scopes)
  const limited = await createClient({ url: server.url, token }).tokens.create({
    ...{ scopes: ['media:write'], limits: { labels } },
  })
  const text = () => new Blob(['some text'])
  const ways: Record<string, () => Promise<unknown>> = {
    header: () => raw(json),
    field: () => form(['labels', json], 'one'),
    tus: () => tus(json),
    token: () => createClient({ url: server.url, token: limited.token }).upload(text()),
    upload: () => client.upload(text(), { labels }),
    'resumable upload': () => client.upload(text(), { labels, firstChunkSize: 0 }),
    'upload of several': () => client.uploadAll([{ source: text(), filename: 'a.txt' }], { labels }),
    async edit() {
      const { id } = await client.upload(text())
      await client.update(id, { labels })
    },
    async 'edit of several'() {
      const { id } = await client.upload(text())
      await client.labelMany([id], labels)
    },
  }
  const newest = async () => {
    for await (const media of client.items({ order: 'newest', batchSize: 1 })) return media
    throw new Error('no item')
  }
  for (const [way, send] of Object.entries(ways)) {
    await send()
    const { id } = await newest()
    for (const found of [
      await newest(),
      await client.describe(id),
      await readItem(await server.request(`/api/media/${id}`)),
    ])
      expect([way, ...Object.entries(found.labels ?? {})]).toEqual([way, ...pairs])
    for (const [key, value] of pairs) {
      const { data } = await select(`label.${key}=${value}&order=newest&limit=1`)
      expect([way, data[0]?.id]).toEqual([way, id])
      expect((await select(`label.${key}=other`)).data).toEqual([])
    }
  }
  const known = new Map((await client.labels()).map(({ key, values }) => [key, values[0]]))
  const items = Object.keys(ways).length
  for (const [key, value] of pairs) expect(known.get(key)).toEqual({ value, items })
  const { id } = await newest()
  await client.update(id, { labels: Object.fromEntries(pairs.map(([key]) => [key, null])) })
  expect(Object.entries((await newest()).labels ?? {})).toEqual([])
})

const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'x']))

test.each<[string, () => Promise<Response>, string]>([
  ['a header that is no dictionary', () => raw('album='), 'request-malformed'],
  ['a header that is no JSON', () => raw('{"a":"1"'), 'request-malformed'],
  ['a header with other characters than ASCII', () => raw('{"a":"ë"}'), 'request-malformed'],
  ['a key with a capital', () => raw('Album="42"'), 'request-malformed'],
  ['a value that is true', () => raw('album'), 'request-malformed'],
  ['a decimal', () => raw('album=1.5'), 'request-malformed'],
  ['a decimal that is a whole number', () => raw('album="2.0", version=1.0'), 'request-malformed'],
  ['a parameter', () => raw('album="1";x=1'), 'request-malformed'],
  ['a long value', () => raw(`album="${'x'.repeat(201)}"`), 'request-malformed'],
  ['too many labels', () => raw(Object.keys(many).join('=1, ')), 'request-malformed'],
  ['a field that is no JSON', () => form(['labels', '{'], 'one'), 'form-malformed'],
  ['a field with a number', () => form(['labels', '{"a":1}'], 'one'), 'form-malformed'],
  ['a field after a file', () => form('one', ['labels', '{"a":"1"}']), 'form-malformed'],
  ['two fields', () => form(['labels', '{}'], ['labels', '{}'], 'one'), 'form-malformed'],
  ['a large field', () => form(['labels', `{"a":"${'x'.repeat(70_000)}"}`], 'one'), 'form-malformed'],
  ['metadata with too many labels', () => tus(JSON.stringify(many)), 'upload-malformed'],
  ['metadata with an array', () => tus('[]'), 'upload-malformed'],
])('U14, R11 an upload with %s gets a 400 problem, and stores nothing', async (_name, send, code) => {
  const total = async () => (await readPage(await server.request('/api/media'))).total
  const before = await total()
  await expectProblem(await send(), 400, code)
  expect(await total()).toBe(before)
})

test.each([
  ['mediabucket-labels', 'album="42"'],
  ['mediabucket-focus', '0.3,0.5'],
  ['mediabucket-expires-at', '2090-01-01T00:00:00Z'],
])(
  'U14 a resumable upload with the header %s, which states nothing of it, is refused',
  async (header, value) => {
    const headers = { 'tus-resumable': '1.0.0', 'upload-length': '0', [header]: value }
    const created = await server.request('/api/uploads', { method: 'POST', headers })
    await expectProblem(created, 400, 'request-malformed')
  },
)

test('I2 a key that is sent again with other labels gets a 422 problem, with the same ones the same item', async () => {
  const key = { 'idempotency-key': uniqueName('key') }
  const first = await readItem(await raw('a="1"', key))
  expect(await readItem(await raw('a="1"', key))).toEqual(first)
  await expectProblem(await raw('a="2"', key), 422, 'idempotency-key-reused')
  await expectProblem(await raw('', key), 422, 'idempotency-key-reused')
})

test('M7 an edit sets and removes labels, and changes the ETags of the item and the lists', async () => {
  const item = await readItem(await raw('album="42", user="7"'))
  const tags = () =>
    Promise.all(
      [`/api/media/${item.id}`, '/api/items', '/api/media'].map(
        async (path) => (await server.request(path)).headers.get('etag') ?? '',
      ),
    )
  const before = await tags()
  const edited = await readItem(
    await patch(`/api/media/${item.id}`, { labels: { user: null, x: 'y' }, caption: 'c' }),
  )
  expect(edited).toEqual({ ...item, caption: 'c', labels: { album: '42', x: 'y' } })
  const after = await tags()
  for (const [index, tag] of after.entries()) expect(tag).not.toBe(before[index])
  await expectProblem(
    await patch(`/api/media/${item.id}`, { labels: { x: 'z' } }, { 'if-match': before[0] ?? '' }),
    412,
    'precondition-failed',
  )
  for (const labels of [null, [], 'x', { X: 'y' }, { x: 1 }, { x: 'a\u0000' }, { x: '\ud83d' }, many]) {
    const problem = await expectProblem(
      await patch(`/api/media/${item.id}`, { labels }),
      400,
      'json-malformed',
    )
    expect(problem.errors?.map(({ parameter }) => parameter)).toEqual(['labels'])
  }
  expect(await tags()).toEqual(after)
})

test('M8, A3 labels of many items change in one request: all or none, and only those of the bucket', async () => {
  const [one, two] = [await upload(server, 'x'), await upload(server, 'y')]
  const other = await makeToken(server, '--bucket', uniqueName('other'))
  const foreign = await readItem(
    await server.request('/api/media', {
      method: 'POST',
      body: 'x',
      headers: { authorization: other.authorization },
    }),
  )
  const group = uniqueName('group')
  const ids = [two.id, 'nobody', one.id, foreign.id, two.id]
  const response = await patch('/api/media', { ids, labels: { group, gone: null } })
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(await response.json()).toEqual({ labelled: [two.id, one.id], missing: ['nobody', foreign.id] })
  expect((await select(`label.group=${group}`)).data.map(({ id }) => id)).toEqual([one.id, two.id])

  await patch(`/api/media/${one.id}`, { labels: Object.fromEntries(Object.entries(many).slice(0, 15)) })
  const full = await expectProblem(
    await patch('/api/media', { ids, labels: { b: '1' } }),
    400,
    'json-malformed',
  )
  expect(full.detail).toContain(one.id)
  expect((await select(`label.group=${group}&label.b=1`)).data).toEqual([])
  for (const body of [
    { ids },
    { labels: {} },
    { ids: [], labels: {} },
    { ids, labels: { b: 1 } },
    { ids, caption: 'x' },
  ])
    await expectProblem(await patch('/api/media', body), 400, 'json-malformed')
  const reader = await makeToken(server, '--bucket', server.bucket, '--scope', 'media:read')
  const headers = { authorization: reader.authorization }
  await expectProblem(await patch('/api/media', { ids, labels: {} }, headers), 403, 'scope-missing')
})

test('K14 labels select items together with kind, time, name and order, page by page', async () => {
  const group = uniqueName('group')
  const ids: string[] = []
  for (let index = 0; index < 6; index += 1) {
    const labels = `group="${group}", half="${index % 2}"`
    const name = { 'content-disposition': `attachment; filename="${index < 3 ? 'harbour' : 'boat'}.txt"` }
    ids.push((await readItem(await raw(labels, name))).id)
  }
  const found = async (query: string) => {
    const all: string[] = []
    for (let next: string | null = `/api/items?label.group=${group}&limit=2&${query}`; next !== null; ) {
      const response = await server.request(next)
      all.push(...(await readItems(response)).data.map(({ id }) => id))
      next = /^<[^>]*(\/api\/items[^>]*)>/.exec(response.headers.get('link') ?? '')?.[1] ?? null
    }
    return all
  }
  const at = (...indexes: number[]) => indexes.map((index) => ids[index])
  expect(await found('')).toEqual(ids)
  expect(await found('order=newest')).toEqual(ids.toReversed())
  expect(await found('label.half=1&order=newest')).toEqual(at(5, 3, 1))
  expect(await found('label.half=0&kind=document&name=HARBOUR')).toEqual(at(0, 2))
  expect(await found('kind=image')).toEqual([])
  expect(await found('label.half=2')).toEqual([])
  const { created_at } = await readItem(await server.request(`/api/media/${ids[3]}`))
  expect(await found(`from=${created_at}`)).toEqual(at(3, 4, 5))
  expect(await found(`to=${created_at}&label.half=1`)).toEqual(at(1))

  const first = await select(`label.group=${group}&limit=1`)
  const foreign = `label.group=other&limit=1&after=${first.next_cursor}`
  await expectProblem(await server.request(`/api/items?${foreign}`), 400, 'cursor-malformed')
  const tooMany = Array.from({ length: 9 }, (_, index) => `label.k${index}=1`).join('&')
  for (const query of ['label.A=1', 'label.=1', 'label.a=1&label.a=2', `label.a=${'x'.repeat(201)}`, tooMany])
    await expectProblem(await server.request(`/api/items?${query}`), 400, 'parameter-malformed')
  await server.request(`/api/media/${ids[0]}`, { method: 'DELETE' })
  expect(await found('')).toEqual(ids.slice(1))
})

test('K15 the labels of a bucket are listed with the numbers of their items, most frequent first', async () => {
  const bucket = uniqueName('labels')
  const { authorization } = await makeToken(server, '--bucket', bucket)
  const store = (labels: string) => raw(labels, { authorization })
  for (const labels of ['album="1", b="x"', 'album="2"', 'album="2"', 'album="3"']) await store(labels)
  const list = async (query = '') => {
    const response = await server.request(`/api/labels${query}`, { headers: { authorization } })
    return await response.json()
  }
  const album = {
    key: 'album',
    values: [
      { value: '2', items: 2 },
      { value: '1', items: 1 },
    ],
    has_more: true,
  }
  const b = { key: 'b', values: [{ value: 'x', items: 1 }], has_more: false }
  expect(await list('?limit=2')).toEqual({ data: [album, b], has_more: false })
  expect(await list('?key=b')).toEqual({ data: [b], has_more: false })
  expect(await list('?key=none')).toEqual({ data: [], has_more: false })
  for (const query of ['?limit=0', '?key=A'])
    await expectProblem(await server.request(`/api/labels${query}`), 400, 'parameter-malformed')
})
