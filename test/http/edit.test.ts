import { beforeAll, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const mergePatch = 'application/merge-patch+json'

const patch = (id: string, body: string | object, headers: Record<string, string> = {}) =>
  server.request(`/api/media/${id}`, {
    method: 'PATCH',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'content-type': mergePatch, ...headers },
  })

const edit = async (id: string, body: object, headers?: Record<string, string>) => {
  const response = await patch(id, body, headers)
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'private, no-cache'])
  return { state: await readItem(response), etag: response.headers.get('etag') ?? '' }
}

const get = async (id: string) => {
  const response = await server.request(`/api/media/${id}`)
  return { state: await readItem(response), etag: response.headers.get('etag') ?? '' }
}

const tagOf = async (path: string) => (await server.request(path)).headers.get('etag')

test('M5 an edit changes the given texts, null removes one, and lists and their ETags change', async () => {
  const item = await upload(server, 'some text', { name: 'note.txt' })
  expect([item.alt_text, item.caption]).toEqual([null, null])
  const tags = () => Promise.all(['/api/media', '/api/items?order=newest'].map(tagOf))
  const before = await tags()
  const texts = { alt_text: 'Drei Boote\r\n\tim Hafen ⛵️', caption: '' }
  const first = await edit(item.id, texts)
  expect(first.state).toEqual({ ...item, ...texts })
  expect(await get(item.id)).toEqual(first)
  const after = await tags()
  for (const [index, tag] of after.entries()) expect(tag).not.toBe(before[index])
  const { data } = await readItems(await server.request('/api/items?order=newest&limit=1'))
  expect(data).toEqual([first.state])

  const second = await edit(item.id, { alt_text: null, filename: 'Café.html' }, {})
  expect(second.state).toEqual({ ...item, caption: '', filename: 'Café.html' })
  expect(second.etag).not.toBe(first.etag)
  // The same request has no further effect.
  const quiet = await tags()
  expect(await edit(item.id, { alt_text: null, filename: 'Café.html' })).toEqual(second)
  expect(await edit(item.id, {}, { 'content-type': 'application/json' })).toEqual(second)
  expect(await tags()).toEqual(quiet)
})

test('M5, U8 a name is sanitized as that of an upload, and type, URL and bytes stay', async () => {
  const item = await upload(server, 'some text', { name: 'note.txt' })
  const { state } = await edit(item.id, { filename: '..\\evil/\u202epage.html\u0000' })
  expect(state).toEqual({ ...item, filename: 'page.html' })
  expect((await edit(item.id, { filename: `${'ä'.repeat(300)}.txt` })).state.filename).toBe(
    `${'ä'.repeat(125)}.txt`,
  )
  const bytes = await fetch(item.url)
  expect([bytes.headers.get('content-type'), await bytes.text()]).toEqual([
    'text/plain; charset=utf-8',
    'some text',
  ])
})

test('M5, B6 the next response with the bytes has the new name, also if the bytes are in memory', async () => {
  const dispositionOf = async (url: string) => (await fetch(url)).headers.get('content-disposition')
  const item = await upload(server, 'bytes in memory', { name: 'one.txt' })
  for (let round = 0; round < 3; round++) expect(await dispositionOf(item.url)).toContain('one.txt')
  for (const filename of ['two.txt', 'three.txt', 'one.txt']) {
    const { etag } = Object.fromEntries((await fetch(item.url)).headers)
    await edit(item.id, { filename })
    for (let round = 0; round < 3; round++) expect(await dispositionOf(item.url)).toContain(filename)
    expect(Object.fromEntries((await fetch(item.url)).headers)['etag']).toBe(etag)
  }
  await edit(item.id, { filename: null })
  expect(await dispositionOf(item.url)).toBe('inline')
})

test('M6 GET has an ETag; If-None-Match gets a 304, and If-Match of another state a 412', async () => {
  const { id } = await upload(server, 'x')
  const { etag, state } = await get(id)
  expect(etag).toMatch(/^"[\w-]{43}"$/)
  const ask = (headers: Record<string, string>) => server.request(`/api/media/${id}`, { headers })
  const same = await ask({ 'if-none-match': `"x", W/${etag}` })
  expect([same.status, await same.text(), same.headers.get('etag')]).toEqual([304, '', etag])
  expect((await ask({ 'if-none-match': '"x"' })).status).toBe(200)
  expect((await ask({ 'if-match': etag })).status).toBe(200)
  await expectProblem(await ask({ 'if-match': '"x"' }), 412, 'precondition-failed')

  await expectProblem(await patch(id, { caption: 'x' }, { 'if-match': '"x"' }), 412, 'precondition-failed')
  await expectProblem(
    await patch(id, { caption: 'x' }, { 'if-match': `W/${etag}` }),
    412,
    'precondition-failed',
  )
  expect((await get(id)).state).toEqual(state)
  const first = await edit(id, { caption: 'first' }, { 'if-match': `"x", ${etag}` })
  await expectProblem(await patch(id, { caption: 'y' }, { 'if-match': etag }), 412, 'precondition-failed')
  expect(await get(id)).toEqual(first)
  await edit(id, { caption: 'any' }, { 'if-match': '*' })
  // A request that is refused anyway is refused for that reason (RFC 9110, section 13.2.1).
  await expectProblem(await patch(id, { caption: 1 }, { 'if-match': '"x"' }), 400, 'json-malformed')
})

test('M6 of concurrent edits with one ETag, one succeeds', async () => {
  const { id } = await upload(server, 'x')
  const { etag } = await get(id)
  const statuses = await Promise.all(
    Array.from(
      { length: 10 },
      async (_, index) => (await patch(id, { caption: `${index}` }, { 'if-match': etag })).status,
    ),
  )
  expect(statuses.toSorted()).toEqual([200, ...Array(9).fill(412)])
})

test('M6 DELETE with If-Match deletes an item only in the state that the client has seen', async () => {
  const { id } = await upload(server, 'x')
  const { etag } = await get(id)
  const remove = (tag: string) =>
    server.request(`/api/media/${id}`, { method: 'DELETE', headers: { 'if-match': tag } })
  await expectProblem(await remove('"x"'), 412, 'precondition-failed')
  await edit(id, { caption: 'new' })
  await expectProblem(await remove(etag), 412, 'precondition-failed')
  expect((await remove((await get(id)).etag)).status).toBe(204)
  await expectProblem(await remove('*'), 404, 'media-unknown')
})

test('M6 of a delete and an edit with one ETag at the same time, one succeeds', async () => {
  for (let round = 0; round < 5; round += 1) {
    const { id } = await upload(server, 'x')
    const { etag } = await get(id)
    const headers = { 'if-match': etag }
    const [edited, removed] = await Promise.all([
      patch(id, { caption: 'y' }, headers),
      server.request(`/api/media/${id}`, { method: 'DELETE', headers }),
    ])
    expect([
      [200, 412],
      [404, 204],
      [412, 204],
    ]).toContainEqual([edited.status, removed.status])
  }
})

const textOf = (limit: number) =>
  `Null, or a string of at most ${limit} characters, without control characters except tabs and line ends.`
const nameText = 'Null, or a string with the name of a file.'

test.each<[string, string | object, [string, string][]]>([
  [
    'an unknown member',
    { caption: 'x', title: 'x' },
    [['title', expect.stringContaining('filename, alt_text, caption')]],
  ],
  [
    'a number',
    { caption: 1, alt_text: {} },
    [
      ['alt_text', textOf(1000)],
      ['caption', textOf(5000)],
    ],
  ],
  ['a too long text', { alt_text: '⛵'.repeat(1001) }, [['alt_text', textOf(1000)]]],
  ['a too long caption', { caption: 'x'.repeat(5001) }, [['caption', textOf(5000)]]],
  ['a control character', { caption: 'a\u0000b' }, [['caption', textOf(5000)]]],
  ['half a character', '{"caption":"\\ud83d"}', [['caption', textOf(5000)]]],
  ['a name without characters', { filename: '../' }, [['filename', nameText]]],
  ['a name that is no string', { filename: ['x'] }, [['filename', nameText]]],
  ['an array', '[]', []],
  ['no JSON', '{', []],
])('M5 an edit with %s gets a 400 problem that names what is wrong', async (_name, body, errors) => {
  const { id } = await upload(server, 'x')
  const before = await get(id)
  const problem = await expectProblem(await patch(id, body), 400, 'json-malformed')
  expect((problem.errors ?? []).map(({ parameter, detail }) => [parameter, detail])).toEqual(errors)
  expect(await get(id)).toEqual(before)
})

test('M5 the longest texts are stored, with every character escaped', async () => {
  const { id } = await upload(server, 'x')
  const texts = { alt_text: '⛵'.repeat(1000), caption: '🛶'.repeat(5000) }
  const escaped = JSON.stringify(texts).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  const response = await patch(id, escaped)
  expect(await readItem(response)).toMatchObject(texts)
})

test('M3, M5, A3 an edit requires an item of the bucket, media:write and a JSON body', async () => {
  const { id } = await upload(server, 'x')
  const tokens = (scope: string, bucket = server.bucket) =>
    makeToken(server, '--bucket', bucket, '--scope', scope)
  const { authorization: reader } = await tokens('media:read')
  const { authorization: writer } = await tokens('media:write')
  const { authorization: stranger } = await tokens('media:write', uniqueName('other'))
  const refused = await patch(id, { caption: 'x' }, { authorization: reader })
  await expectProblem(refused, 403, 'scope-missing')
  expect(refused.headers.get('www-authenticate')).toContain('scope="media:write"')
  for (const [target, authorization] of [
    [id, stranger],
    ['nobody', writer],
    ['0'.repeat(26), writer],
  ] as const)
    for (const headers of [{ authorization }, { authorization, 'if-match': '*' }])
      await expectProblem(await patch(target, { caption: 'x' }, headers), 404, 'media-unknown')
  const typed = await patch(id, '{}', { 'content-type': 'application/json-patch+json' })
  await expectProblem(typed, 415, 'content-type-unsupported')
  await edit(id, { caption: 'x' }, { authorization: writer })
})
