import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { countStored } from '../harness/resources.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readPage } from '../harness/wire.ts'

let server: SharedServer
let stranger: { authorization: string }
beforeAll(async () => {
  server = await sharedServer()
  const { authorization } = await makeToken(server, '--bucket', uniqueName('other'))
  stranger = { authorization }
})

const call = (method: string, id: string, headers: Record<string, string> = {}) =>
  server.request(`/api/media/${id}`, { method, headers })

/** A well-formed id that no item has. */
const neverUsed = '0'.repeat(26)

test('M1 GET and HEAD return the media object of the upload', async () => {
  const startedAt = Date.now()
  const body = 'some text'
  const response = await server.request('/api/media', {
    method: 'POST',
    body,
    headers: { 'content-type': 'text/plain', 'content-disposition': 'attachment; filename="note.txt"' },
  })
  const item = await readItem(response.clone())
  const found = await call('GET', item.id)
  expect(found.status).toBe(200)
  expect(found.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(found.headers.get('cache-control')).toBe('private, no-cache')
  const text = await found.text()
  expect(text).toBe(await response.text())
  expect(Object.keys(JSON.parse(text))).toEqual([
    'id',
    'url',
    'filename',
    'content_type',
    'size',
    'sha256',
    'created_at',
    'taken_at',
    'expires_at',
    'width',
    'height',
    'thumbhash',
    'duration',
    'alt_text',
    'caption',
    'labels',
    'path',
    'focus',
    'variants',
    'variant_sizes',
  ])
  expect(item).toEqual({
    id: expect.stringMatching(/^[\w-]{22,}$/),
    url: `${server.url}/media/${item.id}.txt`,
    filename: 'note.txt',
    content_type: 'text/plain',
    size: body.length,
    sha256: createHash('sha256').update(body).digest('hex'),
    created_at: expect.any(String),
    taken_at: null,
    expires_at: null,
    width: null,
    height: null,
    thumbhash: null,
    duration: null,
    alt_text: null,
    caption: null,
    labels: {},
    path: null,
    focus: null,
    variants: null,
    variant_sizes: null,
  })
  expect(Date.parse(item.created_at)).toBeGreaterThanOrEqual(startedAt)
  expect(Date.parse(item.created_at)).toBeLessThanOrEqual(Date.now())

  const head = await call('HEAD', item.id)
  expect([head.status, head.headers.get('content-length')]).toEqual([200, `${Buffer.byteLength(text)}`])
  expect(
    await (
      await fetch(response.headers.get('location') ?? '', {
        headers: { authorization: `Bearer ${server.token}` },
      })
    ).text(),
  ).toBe(text)
})

test('M2 a deleted item is neither listed nor served, and a second delete gets a 404 problem', async () => {
  const before = await countStored(server)
  const { id, url } = await upload(server, 'gone soon')
  const deleted = await call('DELETE', id)
  expect([deleted.status, await deleted.text()]).toEqual([204, ''])
  expect((await readPage(await server.request('/api/media'))).total).toBe(before.total)
  for (const path of [url, url.replace(/\.txt$/, '')])
    await expectProblem(await fetch(path), 404, 'media-unknown')
  await expectProblem(await call('DELETE', id), 404, 'media-unknown')
  await expectProblem(await call('GET', id), 404, 'media-unknown')
  await until('its bytes are gone', async () => (await countStored(server)).blobs === before.blobs)
})

test('M2 of many concurrent deletes one gets a 204', async () => {
  const { id } = await upload(server, 'wanted by many')
  const statuses = await Promise.all(
    Array.from({ length: 20 }, async () => (await call('DELETE', id)).status),
  )
  expect(statuses.toSorted()).toEqual([204, ...Array(19).fill(404)])
})

describe('M3, A6 an id that is unknown, deleted, in another bucket or malformed', () => {
  test.each(['GET', 'DELETE'])('gets the same response to %s', async (method) => {
    const item = await upload(server, 'mine')
    const gone = await upload(server, 'mine too')
    await call('DELETE', gone.id)
    const asked: [string, string, Record<string, string>][] = [
      ['unknown', neverUsed, {}],
      ['deleted', gone.id, {}],
      ['unknown to a stranger', neverUsed, stranger],
      ['of another bucket', item.id, stranger],
      ['deleted, of another bucket', gone.id, stranger],
      ['too short', item.id.slice(1), {}],
      ['too long', `${item.id}0`, {}],
      ['with its extension', `${item.id}.txt`, {}],
      ['upper case', item.id.toUpperCase(), {}],
      ['a path', '..%2f..%2fcatalog.db', {}],
      ['NUL', `${item.id}%00`, {}],
      ['a property', '__proto__', {}],
      ['very long', 'x'.repeat(10_000), {}],
    ]
    const responses = await Promise.all(
      asked.map(async ([name, id, headers]) => {
        const response = await call(method, id, headers)
        const { instance, ...problem } = await expectProblem(response, 404, 'media-unknown')
        const shown = [...response.headers].filter(([header]) => header !== 'date')
        return { name, problem, headers: shown, instance }
      }),
    )
    const [first] = responses
    for (const { name, problem, headers } of responses) {
      expect({ name, problem, headers }).toEqual({ name, problem: first?.problem, headers: first?.headers })
    }
    expect(new Set(responses.map(({ instance }) => instance)).size).toBe(asked.length)
    expect((await call('GET', item.id)).status).toBe(200)
    expect(await (await fetch(item.url)).text()).toBe('mine')
  })

  test('A6 a listing does not contain items of other buckets', async () => {
    await upload(server, 'mine')
    expect(await readPage(await server.request('/api/media', { headers: stranger }))).toMatchObject({
      total: 0,
      data: [],
    })
  })
})

test('A3 reading, uploading and deleting need different scopes', async () => {
  const scopes = ['media:read', 'media:write', 'media:delete']
  for (const scope of scopes) {
    const { authorization } = await makeToken(server, '--bucket', server.bucket, '--scope', scope)
    const { id } = await upload(server, 'x')
    const calls: [string, () => Promise<Response>][] = [
      ['media:read', () => call('GET', id, { authorization })],
      ['media:read', () => server.request('/api/media', { headers: { authorization } })],
      [
        'media:write',
        () => server.request('/api/media', { method: 'POST', body: 'x', headers: { authorization } }),
      ],
      ['media:delete', () => call('DELETE', id, { authorization })],
    ]
    for (const [needed, ask] of calls) {
      const response = await ask()
      if (needed === scope) expect(response.ok).toBe(true)
      else {
        await expectProblem(response, 403, 'scope-missing')
        expect(response.headers.get('www-authenticate')).toContain(`scope="${needed}"`)
      }
    }
  }
})

test('L4, L10 each of many concurrent uploads is listed once, in a stable order', async () => {
  const { authorization } = await makeToken(server, '--bucket', uniqueName('crowd'))
  const uploads = Array.from({ length: 64 }, (_, i) => upload(server, `file ${i}`, { authorization }))
  const urls = (await Promise.all(uploads)).map(({ url }) => url)
  const list = async () => {
    const pages = [1, 2, 3, 4, 5, 6, 7].map(async (page) =>
      readPage(await server.request(`/api/media?page=${page}`, { headers: { authorization } })),
    )
    return await Promise.all(pages)
  }
  const pages = await list()
  expect(pages.map(({ total }) => total)).toEqual(Array(7).fill(64))
  const listed = pages.flatMap(({ data }) => data)
  expect(listed.toSorted()).toEqual(urls.toSorted())
  const last = await upload(server, 'last', { authorization })
  expect((await list()).flatMap(({ data }) => data)).toEqual([...listed, last.url])
})
