import { createHash } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { readItem, readItems, readStoredItems } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const pathsOf = (items: readonly { readonly path: string | null }[]) => items.map(({ path }) => path)

/** A new bucket. */
async function newBucket() {
  const { authorization } = await makeToken(server, '--bucket', uniqueName('paths'))
  const call = (path: string, init: RequestInit & { headers?: Record<string, string> } = {}) =>
    server.request(path, { ...init, headers: { authorization, ...init.headers } })
  return {
    call,
    form: (...names: string[]) =>
      call('/api/media', {
        method: 'POST',
        body: formBytes(...names.map((name) => filePart(name, name))),
        headers: { 'content-type': formType },
      }),
    raw: (name: string) =>
      call('/api/media', {
        method: 'POST',
        body: name,
        headers: { 'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(name)}` },
      }),
    async tus(metadata: Readonly<Record<string, string>>) {
      const pairs = Object.entries(metadata).map(([key, value]) => `${key} ${base64(value)}`)
      const created = await call('/api/uploads', {
        method: 'POST',
        headers: {
          'tus-resumable': '1.0.0',
          'upload-length': '3',
          'upload-metadata': pairs.join(),
          'content-type': 'application/offset+octet-stream',
        },
        body: 'abc',
      })
      expect(created.status).toBe(201)
      const [item] = (await readItems(await call('/api/items?order=newest&limit=1'))).data
      return item
    },
    select: async (query: string) => (await readItems(await call(`/api/items?${query}`))).data,
  }
}

test('U15, R11 every way in keeps the path of a file, and every response and list has it', async () => {
  const bucket = await newBucket()
  const form = await readItem(await bucket.form('summer/day 1/a.jpg'))
  expect(form).toMatchObject({ filename: 'a.jpg', path: 'summer/day 1/a.jpg' })
  expect(await readItem(await bucket.call(`/api/media/${form.id}`))).toEqual(form)
  expect(await bucket.select('path=summer')).toEqual([form])
  expect(pathsOf(await readStoredItems(await bucket.form('a.jpg', 'b/../c/a.jpg', './a.jpg')))).toEqual([
    null,
    'b/c/a.jpg',
    'a.jpg',
  ])
  expect(await readItem(await bucket.raw('é/b.txt'))).toMatchObject({ filename: 'b.txt', path: 'é/b.txt' })

  const uppy = { filename: 'a.jpg', name: 'a.jpg' }
  const cases: [Record<string, string>, string | null][] = [
    [{ ...uppy, relativePath: 'tus/a.jpg' }, 'tus/a.jpg'],
    [{ ...uppy, relativePath: 'null' }, null],
    [{ ...uppy, relativePath: '' }, null],
    [{ filename: 'tus/b/a.jpg' }, 'tus/b/a.jpg'],
    [{ relativePath: '../x/a.jpg' }, 'x/a.jpg'],
  ]
  for (const [metadata, path] of cases)
    expect(await bucket.tus(metadata)).toMatchObject({ filename: 'a.jpg', path })
})

test('K16, K17, K4 items are selected by their bytes, and by the start of their paths in order', async () => {
  const bucket = await newBucket()
  await bucket.form('b/2', 'a/1', 'b/1', 'plain', 'a/1')
  const hash = createHash('sha256').update('a/1').digest('hex')
  for (const sha256 of [hash, hash.toUpperCase()])
    expect(pathsOf(await bucket.select(`sha256=${sha256}`))).toEqual(['a/1', 'a/1'])
  expect(await bucket.select(`sha256=${'0'.repeat(64)}`)).toEqual([])
  expect(pathsOf(await bucket.select('path='))).toEqual(['a/1', 'a/1', 'b/1', 'b/2'])
  expect(pathsOf(await bucket.select('path=b/&order=newest'))).toEqual(['b/2', 'b/1'])

  const found: (string | null)[] = []
  for (let query: string | null = '/api/items?path=&limit=1'; query !== null; ) {
    const response: Response = await bucket.call(query)
    const { data, next_cursor } = await readItems(response)
    found.push(...pathsOf(data))
    expect(response.headers.get('link')?.includes('path=') ?? false).toBe(next_cursor !== null)
    query = next_cursor === null ? null : `/api/items?path=&limit=1&after=${next_cursor}`
  }
  expect(found).toEqual(['a/1', 'a/1', 'b/1', 'b/2'])

  const lines = await bucket.call('/api/items?path=b', { headers: { accept: 'application/x-ndjson' } })
  const texts = (await lines.text()).trim().split('\n')
  expect(texts.map((line) => String(JSON.parse(line).path))).toEqual(['b/1', 'b/2'])
})

test.each([
  'sha256=',
  'sha256=xyz',
  `sha256=${'0'.repeat(63)}g`,
  `path=${'a'.repeat(1_025)}`,
  'path=a&path=b',
])('K3, K16, K17 %s gets a 400 problem', async (query) => {
  const response = await server.request(`/api/items?${query}`)
  await expectProblem(response, 400, 'parameter-malformed')
})

test('K6 a cursor of a list of paths is of no other list', async () => {
  const bucket = await newBucket()
  await bucket.form('a/1', 'a/2')
  const { next_cursor } = await readItems(await bucket.call('/api/items?path=a&limit=1'))
  for (const query of ['path=b', 'path=', 'limit=1', `sha256=${'0'.repeat(64)}`])
    await expectProblem(
      await bucket.call(`/api/items?${query}&after=${next_cursor}`),
      400,
      'cursor-malformed',
    )
})
