import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { hollowPng } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { catalogRows } from '../harness/rows.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { chunkType, metadataOf, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { readCreatedToken, readItem, readToken } from '../harness/wire.ts'

type Bytes = Uint8Array<ArrayBuffer>

let server: SharedServer
let bucket: Awaited<ReturnType<typeof bucketWith>>
let manager: { readonly authorization: string }
beforeAll(async () => {
  server = await sharedServer()
  bucket = await bucketWith(server)
  manager = await makeToken(
    server,
    '--bucket',
    bucket.name,
    '--scope',
    'tokens:manage,media:write,media:read',
  )
})

const post = (path: string, body: unknown, authorization = manager.authorization) =>
  server.request(path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

async function limited(limits: object, fields: object = {}) {
  const response = await post('/api/tokens', { scopes: ['media:write'], limits, ...fields })
  expect(response.status).toBe(201)
  const { token, ...described } = readCreatedToken(await response.json())
  const authorization = `Bearer ${token}`
  return {
    ...described,
    authorization,
    tus: tusOf(server, authorization),
    state: async () =>
      readToken(await (await server.request('/api/token', { headers: { authorization } })).json()),
  }
}
type Limited = Pick<Awaited<ReturnType<typeof limited>>, 'authorization' | 'tus'>

const raw = ({ authorization }: Limited, body: RequestInit['body'], headers: Record<string, string> = {}) =>
  server.request('/api/media', {
    method: 'POST',
    body,
    headers: { authorization, ...headers },
    duplex: 'half',
  } as RequestInit)

/** Sends the last request for a file of tus; the first one that is refused is the last one. */
async function bySteps(created: Response, send: (url: string) => Promise<Response>): Promise<Response> {
  return created.ok ? await send(created.headers.get('location') ?? '') : created
}

/** Every way in which a file is uploaded. `type` is the declared one. */
const ways: Readonly<
  Record<string, (token: Limited, bytes: Bytes, name: string, type: string) => Promise<Response>>
> = {
  'a form': (token, bytes, name, type) =>
    raw(token, formBytes(filePart(name, bytes, type)), { 'content-type': formType }),
  'a raw body': (token, bytes, name, type) =>
    raw(token, bytes, {
      'content-type': type,
      'content-disposition': `attachment; filename="${name}"`,
    }),
  'a raw body of unknown length': (token, bytes, name, type) =>
    raw(token, new Blob([bytes]).stream(), {
      'content-type': type,
      'content-disposition': `attachment; filename="${name}"`,
    }),
  'an idempotent request': (token, bytes, name, type) =>
    raw(token, bytes, {
      'content-type': type,
      'content-disposition': `attachment; filename="${name}"`,
      'idempotency-key': `"${randomBytes(8).toString('hex')}"`,
    }),
  'a resumable upload in two chunks': async ({ tus }, bytes, name, type) => {
    const half = Math.ceil(bytes.length / 2)
    return bySteps(
      await tus.send('POST', '/api/uploads', {
        'upload-length': `${bytes.length}`,
        'upload-metadata': metadataOf({ filename: name, filetype: type }),
      }),
      async (url) => {
        const first = await tus.sendChunk(url, 0, bytes.subarray(0, half))
        return first.ok && half < bytes.length ? tus.sendChunk(url, half, bytes.subarray(half)) : first
      },
    )
  },
  'a resumable upload with its creation': ({ tus }, bytes, name, type) =>
    tus.send(
      'POST',
      '/api/uploads',
      {
        'upload-length': `${bytes.length}`,
        'content-type': chunkType,
        'upload-metadata': metadataOf({ filename: name, filetype: type }),
      },
      bytes,
    ),
  'a resumable upload of deferred length': async ({ tus }, bytes, name, type) =>
    bySteps(
      await tus.send('POST', '/api/uploads', {
        'upload-defer-length': '1',
        'upload-metadata': metadataOf({ filename: name, filetype: type }),
      }),
      async (url) => {
        const sent = await tus.sendChunk(url, 0, bytes)
        return sent.ok ? tus.sendChunk(url, bytes.length, '', { 'upload-length': `${bytes.length}` }) : sent
      },
    ),
}

const text = (length: number): Bytes => new Uint8Array(Buffer.alloc(length, 'text '))

describe.each(Object.entries(ways))('T10 %s', (_way, send) => {
  const sendText = (token: Limited, length: number) => send(token, text(length), 'a.txt', 'text/plain')

  test('of more than max_items is refused, and what is left is named', async () => {
    const token = await limited({ max_items: 2 })
    for (const _ of [1, 2]) expect((await sendText(token, 10)).status).toBeLessThan(300)
    expect(await token.state()).toMatchObject({
      uploaded: { items: 2, bytes: 20 },
      left: { items: 0, bytes: null },
    })
    const problem = await expectProblem(await sendText(token, 10), 507, 'token-limit-exceeded')
    expect(problem.errors).toEqual([
      {
        parameter: 'max_items',
        detail: 'The token may upload 2 items; 0 are left.',
        ...{ maximum: 2, unit: 'items', left: 0 },
      },
    ])
  })

  test('of more than max_bytes is refused, and a smaller one is not', async () => {
    const token = await limited({ max_bytes: 100 })
    expect((await sendText(token, 60)).status).toBeLessThan(300)
    const problem = await expectProblem(await sendText(token, 41), 507, 'token-limit-exceeded')
    expect(problem.errors).toEqual([
      {
        parameter: 'max_bytes',
        detail: 'The token may upload 100 bytes; 40 are left.',
        ...{ maximum: 100, unit: 'bytes', left: 40 },
      },
    ])
    expect((await sendText(token, 40)).status).toBeLessThan(300)
    expect(await token.state()).toMatchObject({
      uploaded: { items: 2, bytes: 100 },
      left: { items: null, bytes: 0 },
    })
  })

  test('of a file above max_file_size is refused', async () => {
    const token = await limited({ max_file_size: 50 })
    const problem = await expectProblem(await sendText(token, 51), 413, 'file-too-large')
    expect(problem.errors).toMatchObject([{ parameter: 'max_file_size' }])
    expect((await sendText(token, 50)).status).toBeLessThan(300)
    expect(await token.state()).toMatchObject({ uploaded: { items: 1, bytes: 50 } })
  })

  test('of another type than the bytes of `types` is refused, whatever is declared', async () => {
    const token = await limited({ types: ['image/*', 'application/json'] })
    const picture = new Uint8Array(hollowPng(3, 2))
    const problem = await expectProblem(
      await send(token, text(300), 'a.png', 'image/png'),
      415,
      'type-refused',
    )
    expect(problem.errors).toEqual([
      {
        parameter: 'types',
        detail: 'With this token, a file must be one of: image/*, application/json.',
        accepted: ['image/*', 'application/json'],
      },
    ])
    const svg = new Uint8Array(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'))
    const unlisted = await expectProblem(
      await send(token, svg, 'a.svg', 'image/svg+xml'),
      415,
      'type-refused',
    )
    expect(unlisted.detail).toContain('The bytes do not show the type image/svg+xml, so it must be listed')
    expect(problem.detail).not.toContain('listed by its name')
    expect((await send(token, picture, 'a.txt', 'text/plain')).status).toBeLessThan(300)
    const json = new Uint8Array(Buffer.from('{}'))
    expect((await send(token, json, 'a.json', 'application/json')).status).toBeLessThan(300)
    expect(await token.state()).toMatchObject({ uploaded: { items: 2, bytes: picture.length + 2 } })
    // A refused file holds nothing.
    expect((await token.state()).left).toEqual({ items: null, bytes: null })
  })

  test('gets the expiry of item_days', async () => {
    const token = await limited({ item_days: 3 })
    const sent = await sendText(token, 10)
    const named = sent.headers.get('content-location') ?? sent.headers.get('location') ?? ''
    const { authorization } = manager
    const item = await readItem(await server.request(new URL(named).pathname, { headers: { authorization } }))
    expect(Date.parse(item.expires_at ?? '') - Date.parse(item.created_at)).toBeCloseTo(3 * 86_400_000, -4)
  })

  test('gets the labels of the token', async () => {
    const token = await limited({ labels: { album: '42', 'sent.by': 'guest' } })
    const sent = await sendText(token, 10)
    const named = sent.headers.get('content-location') ?? sent.headers.get('location') ?? ''
    const { authorization } = manager
    const item = await readItem(await server.request(new URL(named).pathname, { headers: { authorization } }))
    expect(item.labels).toEqual({ album: '42', 'sent.by': 'guest' })
  })

  test('in parallel stays within the limits', async () => {
    const token = await limited({ max_items: 3, max_bytes: 1_000 })
    const responses = await Promise.all(Array.from({ length: 9 }, () => sendText(token, 200)))
    const statuses = responses.map(({ status }) => (status < 300 ? 'stored' : status))
    const stored = statuses.filter((status) => status === 'stored').length
    expect(stored).toBe(3)
    expect(statuses.filter((status) => status !== 'stored' && status !== 507)).toEqual([])
    expect((await token.state()).uploaded).toEqual({ items: stored, bytes: stored * 200 })
  })
})

test('T10 uploads of all ways in parallel stay within the limits', async () => {
  const token = await limited({ max_items: 5, max_bytes: 1_000 })
  const all = Object.values(ways)
  await Promise.all(
    Array.from({ length: 21 }, (_, index) =>
      all[index % all.length]?.(token, text(190), 'a.txt', 'text/plain'),
    ),
  )
  const { uploaded, left } = await token.state()
  expect(uploaded?.items).toBeLessThanOrEqual(5)
  expect(uploaded?.bytes).toBe((uploaded?.items ?? 0) * 190)
  expect((left?.items ?? 0) + (uploaded?.items ?? 0)).toBeLessThanOrEqual(5)
})

test('T10 a form of more files than are left stores none', async () => {
  const token = await limited({ max_items: 2 })
  const parts = ['a', 'b', 'c'].map((name) => filePart(`${name}.txt`))
  await expectProblem(
    await raw(token, formBytes(...parts), { 'content-type': formType }),
    507,
    'token-limit-exceeded',
  )
  expect(await token.state()).toMatchObject({ uploaded: { items: 0, bytes: 0 }, left: { items: 2 } })
})

test('T10 a repeated request counts once', async () => {
  const token = await limited({ max_items: 1 })
  const send = () => raw(token, 'same', { 'idempotency-key': '"once"' })
  const first = await readItem(await send())
  expect((await readItem(await send())).id).toBe(first.id)
  expect(await token.state()).toMatchObject({ uploaded: { items: 1, bytes: 4 }, left: { items: 0 } })
})

test('T10 an unfinished upload reserves its length, and its removal releases it', async () => {
  const token = await limited({ max_items: 2, max_bytes: 100 })
  const url = await token.tus.createWithLength(70)
  expect(await token.state()).toMatchObject({ uploaded: { items: 0 }, left: { items: 1, bytes: 30 } })
  await expectProblem(await raw(token, text(31)), 507, 'token-limit-exceeded')
  await token.tus.terminate(url)
  expect(await token.state()).toMatchObject({ left: { items: 2, bytes: 100 } })
  expect((await raw(token, text(100))).status).toBe(201)
})

const stream = (length: number) => new Blob([text(length)]).stream()

test.each<[string, object, number, (token: Limited, url: string) => Promise<Response>]>([
  [
    'a chunk above max_file_size',
    { max_file_size: 10 },
    413,
    ({ tus }, url) => tus.sendChunk(url, 0, text(11)),
  ],
  [
    'a chunk of undeclared length above max_file_size',
    { max_file_size: 10 },
    413,
    ({ tus }, url) => tus.sendChunk(url, 0, stream(11)),
  ],
  [
    'a length above max_file_size',
    { max_file_size: 10 },
    413,
    ({ tus }, url) => tus.sendChunk(url, 0, '', { 'upload-length': '11' }),
  ],
  [
    'a chunk above max_file_size after others',
    { max_file_size: 10 },
    413,
    async ({ tus }, url) => {
      expect((await tus.sendChunk(url, 0, text(6))).status).toBe(204)
      return await tus.sendChunk(url, 6, text(6))
    },
  ],
  ['a chunk above max_bytes', { max_bytes: 10 }, 507, ({ tus }, url) => tus.sendChunk(url, 0, text(11))],
  [
    'a length above max_bytes',
    { max_bytes: 10 },
    507,
    ({ tus }, url) => tus.sendChunk(url, 0, '', { 'upload-length': '11' }),
  ],
])('T10 an upload of deferred length is removed by %s', async (_what, limits, status, send) => {
  const token = await limited({ max_items: 1, ...limits })
  const url = await token.tus.create({ 'upload-defer-length': '1' })
  const [parameter] = Object.keys(limits)
  const code = status === 413 ? 'file-too-large' : 'token-limit-exceeded'
  const problem = await expectProblem(await send(token, url), status, code)
  expect(problem.errors).toMatchObject([{ parameter }])
  expect((await token.tus.head(url)).status).toBe(404)
  expect((await raw(token, text(10))).status).toBe(201)
})

test.each<[string, (token: Limited, url: string) => Promise<Response>, number]>([
  ['at another offset', ({ tus }, url) => tus.sendChunk(url, 7, text(11)), 409],
  [
    'above the declared length',
    ({ tus }, url) => tus.sendChunk(url, 0, stream(6), { 'upload-length': '5' }),
    413,
  ],
])('T10 an upload of deferred length continues after a chunk %s', async (_what, send, status) => {
  const token = await limited({ max_items: 1, max_file_size: 10 })
  const url = await token.tus.create({ 'upload-defer-length': '1' })
  expect((await send(token, url)).status).toBe(status)
  expect((await token.tus.sendChunk(url, 0, text(5), { 'upload-length': '5' })).status).toBe(204)
})

test('T10 a deleted item is not given back', async () => {
  const token = await limited({ max_items: 1 })
  const item = await readItem(await raw(token, 'x'))
  const { authorization } = bucket
  await server.request(`/api/media/${item.id}`, { method: 'DELETE', headers: { authorization } })
  await expectProblem(await raw(token, 'x'), 507, 'token-limit-exceeded')
})

test('T9 a stated expiry is not after that of the token', async () => {
  const token = await limited({ item_days: 1 })
  const expiryWith = async (days: number) => {
    const at = new Date(Date.now() + days * 86_400_000).toISOString()
    const item = await readItem(await raw(token, 'x', { 'mediabucket-expires-at': at }))
    return (Date.parse(item.expires_at ?? '') - Date.parse(item.created_at)) / 86_400_000
  }
  expect(await expiryWith(9)).toBeCloseTo(1, 2)
  expect(await expiryWith(0.5)).toBeCloseTo(0.5, 2)
})

test('T9 the labels of the token replace sent ones, and are at most 16 together with them', async () => {
  const token = await limited({ labels: { album: '42' } })
  const send = (labels: object) => raw(token, 'x', { 'mediabucket-labels': JSON.stringify(labels) })
  expect((await readItem(await send({ album: '1', user: '7' }))).labels).toEqual({ album: '42', user: '7' })
  const many = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`l${index}`, 'x']))
  const problem = await expectProblem(await send(many), 400, 'request-malformed')
  expect(problem.errors).toMatchObject([{ parameter: 'labels' }])
  const created = await token.tus.send('POST', '/api/uploads', {
    'upload-length': '1',
    'upload-metadata': metadataOf({ labels: JSON.stringify(many) }),
  })
  await expectProblem(created, 400, 'request-malformed')
})

test('T9 a token with limits and media:write uploads, and edits nothing', async () => {
  const token = await limited({ max_items: 1 })
  const item = await readItem(await raw(token, 'x'))
  const { authorization } = token
  const edit = await server.request(`/api/media/${item.id}`, {
    method: 'PATCH',
    headers: { authorization, 'content-type': 'application/merge-patch+json' },
    body: '{"caption":"x"}',
  })
  await expectProblem(edit, 403, 'scope-missing')
  const labels = await server.request('/api/media', {
    method: 'PATCH',
    headers: { authorization, 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ ids: [item.id], labels: { a: 'b' } }),
  })
  await expectProblem(labels, 403, 'scope-missing')
  await expectProblem(
    await server.request('/api/media', { headers: { authorization } }),
    403,
    'scope-missing',
  )
})

test('T9 the token describes its note and its limits, and the list has what arrived', async () => {
  const token = await limited({ max_items: 3, types: ['image/*'] }, { name: 'Party', note: 'Hello\nthere' })
  const limits = {
    max_items: 3,
    max_bytes: null,
    max_file_size: null,
    types: ['image/*'],
    item_days: null,
    labels: null,
  }
  expect(await token.state()).toMatchObject({ name: 'Party', note: 'Hello\nthere', limits })
  const { authorization } = manager
  const list = await (await server.request('/api/tokens?limit=500', { headers: { authorization } })).json()
  expect(list).toMatchObject({
    data: expect.arrayContaining([
      expect.objectContaining({ id: token.id, limits, uploaded: { items: 0, bytes: 0 } }),
    ]),
  })
})

test('T9 other names of types are replaced by those that are stored, once each', async () => {
  const token = await limited({ types: ['image/jpg', 'image/jpeg', 'audio/mp3', 'image/*', 'text/x-own'] })
  expect((await token.state()).limits?.types).toEqual(['image/jpeg', 'audio/mpeg', 'image/*', 'text/x-own'])
})

test.each([
  ['limits', {}],
  ['limits', 'x'],
  ['limits.max_items', { max_items: 0 }],
  ['limits.max_bytes', { max_bytes: 1.5 }],
  ['limits.max_file_size', { max_file_size: '1' }],
  ['limits.types', { types: [] }],
  ['limits.types', { types: ['image'] }],
  ['limits.types', { types: ['*/*'] }],
  ['limits.item_days', { item_days: 36_501 }],
  ['limits.labels', { labels: { 'A b': 'x' } }],
  ['limits.other', { other: 1 }],
])('T9 %s that are not valid are refused', async (parameter, limits) => {
  const problem = await expectProblem(
    await post('/api/tokens', { scopes: ['media:write'], limits: limits }),
    400,
    'json-malformed',
  )
  expect(problem.errors).toMatchObject([{ parameter }])
})

test('T9 a token with limits manages no tokens', async () => {
  const body = { scopes: ['tokens:manage'], limits: { max_items: 1 } }
  const problem = await expectProblem(await post('/api/tokens', body), 400, 'json-malformed')
  expect(problem.errors).toMatchObject([{ parameter: 'limits' }])
})

test('T9 a token and its successor share what is left', async () => {
  const token = await limited({ max_items: 3 }, { note: 'n' })
  await raw(token, 'x')
  const url = await token.tus.createWithLength(2)
  const response = await post(`/api/tokens/${token.id}/rotate`, { expires_at: null })
  const successor = readCreatedToken(await response.json())
  expect(successor).toMatchObject({ note: 'n', uploaded: { items: 1, bytes: 1 }, left: { items: 1 } })
  const next = { authorization: `Bearer ${successor.token}`, tus: tusOf(server, `Bearer ${successor.token}`) }
  expect((await next.tus.sendChunk(url, 0, 'xy')).status).toBe(204)
  expect((await raw(next, 'x')).status).toBe(201)
  await expectProblem(await raw(token, 'x'), 507, 'token-limit-exceeded')
  expect((await token.state()).uploaded).toEqual({ items: 3, bytes: 4 })
})

test('T10 an upload is continued only within the limits with which it began', async () => {
  const one = await limited({ max_items: 1 })
  const other = await limited({ max_items: 1 })
  const url = await one.tus.createWithLength(2)
  for (const token of [other, bucket])
    await expectProblem(await token.tus.sendChunk(url, 0, 'xy'), 404, 'upload-unknown')
  const unlimited = await bucket.tus.createWithLength(2)
  await expectProblem(await one.tus.sendChunk(unlimited, 0, 'xy'), 404, 'upload-unknown')
  expect((await one.tus.sendChunk(url, 0, 'xy')).status).toBe(204)
})

test('R15 a token without media:read reads the items of its own resumable uploads', async () => {
  const token = await limited({ max_items: 5 })
  const other = await limited({ max_items: 5 })
  const url = await token.tus.createWithLength(2)
  const sent = await token.tus.sendChunk(url, 0, 'xy')
  const path = new URL(sent.headers.get('content-location') ?? '').pathname
  const read = (authorization: string) => server.request(path, { headers: { authorization } })
  expect(await readItem(await read(token.authorization))).toMatchObject({ size: 2 })
  await expectProblem(await read(other.authorization), 403, 'scope-missing')
  const stored = await readItem(await raw(token, 'x'))
  const { authorization } = token
  const refused = await server.request(`/api/media/${stored.id}`, { headers: { authorization } })
  await expectProblem(refused, 403, 'scope-missing')
})

test('R14 an upload that began before its token expired is finished within an hour, and nothing else is', async () => {
  const token = await limited(
    { max_items: 5 },
    { expires_at: new Date(Date.now() + 3_600_000).toISOString() },
  )
  const url = await token.tus.createWithLength(4)
  const other = await bucket.tus.createWithLength(4)
  expect((await token.tus.sendChunk(url, 0, 'ab')).status).toBe(204)
  // As if an hour had passed: on a busy machine, a token of a few seconds would expire before these requests.
  const rows = await catalogRows(server.data)
  await rows.change(`UPDATE tokens SET expires_at = ${Date.now()} WHERE id = '${token.id}'`)
  await until('the expiry', async () => (await raw(token, 'x')).status === 401)
  expect(await token.tus.offset(url)).toBe(2)
  expect((await token.tus.sendChunk(url, 2, 'cd')).status).toBe(204)
  await expectProblem(await token.tus.sendChunk(other, 0, 'abcd'), 401, 'token-expired')
  await expectProblem(
    await token.tus.send('POST', '/api/uploads', { 'upload-length': '1' }),
    401,
    'token-expired',
  )
})
