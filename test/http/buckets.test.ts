import { randomUUID } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectProblem } from '../harness/problem.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'

let server: SharedServer
let manager: string
beforeAll(async () => {
  server = await sharedServer()
  manager = await makeManager('buckets:manage')
})

const makeManager = async (...scopes: string[]) =>
  (await makeToken(server, '--service', '--name', 'shop', '--scope', scopes.join(','))).authorization

/** A request with a service token that has `buckets:manage`. */
const manage = (path: string, init: RequestInit = {}, authorization = manager) =>
  server.request(path, { ...init, headers: { authorization, ...Object(init.headers) } })

const sendJson = (
  method: string,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
  authorization = manager,
) =>
  manage(
    path,
    { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } },
    authorization,
  )

const create = (body: object, headers: Readonly<Record<string, string>> = {}) =>
  sendJson('POST', '/api/buckets', body, headers)

/** A bucket with a token, both created over HTTP. */
async function createdBucket(settings: object = {}) {
  const name = randomUUID()
  const response = await create({
    ...{ name, ...settings },
    token: { scopes: ['media:read', 'media:write', 'media:delete', 'tokens:manage'] },
  })
  expect(response.status).toBe(201)
  const { token } = Object(await response.json())
  return { name, authorization: `Bearer ${token.token}`, tokenId: token.id }
}

const upload = (authorization: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
  server.request('/api/media', { method: 'POST', body, headers: { authorization, ...headers } })

const newBucket = {
  ...{ items: 0, bytes: 0, reserved_items: 0, reserved_bytes: 0, trash_items: 0, trash_bytes: 0 },
  ...{ max_items: null, max_bytes: null, max_file_size: null, types: null, trash_days: 0, item_days: null },
  ...{
    private: false,
    signed_pages: false,
    public_keys: false,
    public_list: false,
    url_uploads: true,
    remove_metadata: false,
    keep_taken_at: true,
  },
  ...{ variants: null, public_variants: null, crop: null },
  created_at: expect.any(String),
}

test('BK1, BK4 a bucket with a quota, its first token and the first upload take two requests', async () => {
  const name = randomUUID()
  const response = await create({
    ...{
      name,
      max_items: 5,
      max_bytes: 100,
      trash_days: 7,
      item_days: 30,
      private: true,
      signed_pages: true,
      public_keys: true,
      public_list: true,
      url_uploads: false,
      ...{ variants: ['card=100:cover'], public_variants: ['thumb', 'card'], crop: 'attention' },
    },
    ...{ remove_metadata: true, keep_taken_at: true },
    token: { name: 'app', scopes: ['media:read', 'media:write'], note: 'for the app', limits: null },
  })
  expect(response.status).toBe(201)
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(response.headers.get('location')).toBe(`${server.url}/api/buckets/${name}`)
  const { token, ...bucket } = Object(await response.json())
  expect(bucket).toEqual({
    ...{ ...newBucket, name, max_items: 5, max_bytes: 100, trash_days: 7, item_days: 30 },
    ...{ private: true, signed_pages: true, public_keys: true, public_list: true },
    ...{ url_uploads: false, remove_metadata: true },
    ...{ variants: ['card=100:cover'], public_variants: ['thumb', 'card'], crop: 'attention' },
  })
  expect(token).toMatchObject({ bucket: name, name: 'app', scopes: ['media:read', 'media:write'] })
  const authorization = `Bearer ${token.token}`
  expect((await upload(authorization, 'x'.repeat(100))).status).toBe(201)
  await expectProblem(await upload(authorization, 'x'), 507, 'quota-exceeded')
  const shown = await manage(`/api/buckets/${name}`)
  expect(await shown.json()).toEqual({ ...bucket, items: 1, bytes: 100 })
  const own = await server.request('/api/bucket', { headers: { authorization } })
  const usage_today = expect.objectContaining({ items: 1, bytes: 100 })
  expect(await own.json()).toEqual({ ...bucket, items: 1, bytes: 100, created_at: undefined, usage_today })
})

test('BK4 a bucket without settings and token has the defaults; names and members are checked', async () => {
  const name = randomUUID()
  const response = await create({ name })
  expect(await response.json()).toEqual({ ...newBucket, name, token: null })
  await expectProblem(await create({ name }), 409, 'bucket-exists')
  const refused: readonly [object, string][] = [
    [{}, 'name'],
    [{ name: 'A' }, 'name'],
    [{ name: `${name}/trash` }, 'name'],
    [{ name: randomUUID(), max_items: -1 }, 'max_items'],
    [{ name: randomUUID(), max_bytes: 1.5 }, 'max_bytes'],
    [{ name: randomUUID(), max_file_size: 0 }, 'max_file_size'],
    [{ name: randomUUID(), types: [] }, 'types'],
    [{ name: randomUUID(), types: ['image'] }, 'types'],
    [{ name: randomUUID(), trash_days: '1' }, 'trash_days'],
    [{ name: randomUUID(), item_days: 0 }, 'item_days'],
    [{ name: randomUUID(), private: 1 }, 'private'],
    [{ name: randomUUID(), signed_pages: null }, 'signed_pages'],
    [{ name: randomUUID(), keep_taken_at: true }, 'keep_taken_at'],
    [{ name: randomUUID(), remove_metadata: false, keep_taken_at: false }, 'keep_taken_at'],
    [{ name: randomUUID(), token: {} }, 'token.scopes'],
    [{ name: randomUUID(), token: { scopes: ['buckets:manage'] } }, 'token.scopes'],
    [{ name: randomUUID(), token: { scopes: ['media:read'], bucket: 'x' } }, 'token'],
    [{ name: randomUUID(), token: 'x' }, 'token'],
    [{ name: randomUUID(), owner: 'x' }, 'owner'],
  ]
  for (const [body, parameter] of refused) {
    const problem = await expectProblem(await create(body), 400, 'json-malformed')
    expect(problem, JSON.stringify(body)).toMatchObject({ errors: [{ parameter }] })
    const { name } = Object(body)
    if (typeof name === 'string' && /^[a-z0-9-]+$/.test(name))
      await expectProblem(await manage(`/api/buckets/${name}`), 404, 'bucket-unknown')
  }
})

test('BK5 a repeated request creates one bucket, and has the same token', async () => {
  const name = randomUUID()
  const body = { name, max_items: 3, token: { scopes: ['media:write'], name: 'app' } }
  const key = { 'idempotency-key': randomUUID() }
  const responses = await Promise.all([1, 2, 3, 4].map(() => create(body, key)))
  const created = await Promise.all(responses.map((response) => response.json()))
  expect(responses.map(({ status }) => status)).toEqual([201, 201, 201, 201])
  const tokens = new Set(created.map((one) => Object(one).token.token))
  expect(tokens.size).toBe(1)
  const [token = ''] = tokens
  expect((await upload(`Bearer ${token}`, 'x')).status).toBe(201)
  // The order of the members does not matter.
  const again = await create({ token: { name: 'app', scopes: ['media:write'] }, max_items: 3, name }, key)
  expect(Object(await again.json()).token.token).toBe(token)

  await expectProblem(await create({ ...body, max_items: 4 }, key), 422, 'idempotency-key-reused')
  await expectProblem(await create({ ...body, name: randomUUID() }, key), 422, 'idempotency-key-reused')
  await expectProblem(await create(body), 409, 'bucket-exists')
  await expectProblem(await create(body, { 'idempotency-key': 'ä' }), 400, 'idempotency-key-malformed')
  const other = await makeManager('buckets:manage')
  await expectProblem(await sendJson('POST', '/api/buckets', body, key, other), 409, 'bucket-exists')

  // An upload with the same key is another request.
  const uploader = await makeManager('buckets:manage', 'media:write')
  const shared = { 'idempotency-key': randomUUID() }
  expect((await sendJson('POST', '/api/buckets', { name: `${name}-2` }, shared, uploader)).status).toBe(201)
  const uploaded = await upload(uploader, 'y', { ...shared, 'mediabucket-bucket': name })
  expect(uploaded.status).toBe(201)

  expect((await manage(`/api/buckets/${name}?items=delete`, { method: 'DELETE' })).status).toBe(204)
  const last = Object(await (await create(body, key)).json())
  expect(last).toMatchObject({ name, items: 0 })
  expect(tokens.has(last.token.token)).toBe(false)
})

test('BK5 a repetition after the expiry of the first token has the same bucket and token', async () => {
  const expiry = Date.now() + 5_000
  const body = {
    name: randomUUID(),
    token: { scopes: ['media:read'], expires_at: new Date(expiry).toISOString() },
  }
  const key = { 'idempotency-key': randomUUID() }
  const first = await create(body, key)
  expect(first.status).toBe(201)
  const { token } = Object(await first.json())
  await until('the expiry of the token', () => Date.now() > expiry)
  const again = await create(body, key)
  expect(again.status).toBe(201)
  expect(Object(await again.json()).token).toEqual(token)

  // Only a repetition may state a time that has passed (T6).
  for (const headers of [key, { 'idempotency-key': randomUUID() }, {}]) {
    await manage(`/api/buckets/${body.name}`, { method: 'DELETE' })
    expect(await expectProblem(await create(body, headers), 400, 'json-malformed')).toMatchObject({
      errors: [{ parameter: 'token.expires_at' }],
    })
    await expectProblem(await manage(`/api/buckets/${body.name}`), 404, 'bucket-unknown')
  }
})

test('BK2, BK3 lists have the buckets of a prefix in each order, with totals, page by page', async () => {
  const prefix = randomUUID()
  const sizes = [30, 10, 20, 0, 20]
  for (const [index, size] of sizes.entries()) {
    const { authorization } = await createdBucketNamed(`${prefix}-${index}`)
    for (let count = 0; count < index; count += 1) await upload(authorization, 'x'.repeat(size))
  }
  const list = async (query: string) => {
    const response = await manage(`/api/buckets?name=${prefix}&${query}`)
    expect(response.status).toBe(200)
    return Object(await response.json())
  }
  const bytes = sizes.map((size, index) => size * index)
  const all = await list('')
  expect(all.totals).toEqual({ buckets: 5, items: 10, bytes: bytes.reduce((sum, each) => sum + each, 0) })
  expect(all.next_cursor).toBeNull()
  expect(all.data.map(({ bytes }: { bytes: number }) => bytes)).toEqual(bytes)
  const orders = {
    name: [0, 1, 2, 3, 4],
    'name-desc': [4, 3, 2, 1, 0],
    created: [0, 1, 2, 3, 4],
    'created-desc': [4, 3, 2, 1, 0],
    items: [4, 3, 2, 1, 0],
    'items-asc': [0, 1, 2, 3, 4],
    bytes: [4, 2, 1, 3, 0],
    'bytes-asc': [0, 3, 1, 2, 4],
  }
  for (const [order, expected] of Object.entries(orders)) {
    const names = []
    let after = ''
    do {
      const { data, totals, next_cursor } = await list(`order=${order}&limit=2${after}`)
      expect(totals).toEqual(all.totals)
      names.push(...data.map(({ name }: { name: string }) => Number(name.slice(prefix.length + 1))))
      after = next_cursor === null ? '' : `&after=${next_cursor}`
    } while (after !== '')
    const byKey = (index: number) => (order.startsWith('bytes') ? bytes[index] : index)
    expect(names.map(byKey), order).toEqual(expected.map(byKey))
    expect(names.toSorted()).toEqual([0, 1, 2, 3, 4])
  }
  const { next_cursor } = await list('order=bytes&limit=1')
  for (const query of [`order=name&after=${next_cursor}`, `order=bytes&after=${next_cursor}x`, 'after=x'])
    await expectProblem(await manage(`/api/buckets?name=${prefix}&${query}`), 400, 'cursor-malformed')
  for (const query of ['limit=0', 'limit=501', 'order=size', 'name=A', 'name=a&name=b'])
    await expectProblem(await manage(`/api/buckets?${query}`), 400, 'parameter-malformed')
})

async function createdBucketNamed(name: string) {
  const { token } = Object(await (await create({ name, token: { scopes: ['media:write'] } })).json())
  return { authorization: `Bearer ${token.token}` }
}

test('BK6 the ETag of a bucket identifies its settings, not its contents', async () => {
  const { name, authorization } = await createdBucket()
  const first = await manage(`/api/buckets/${name}`)
  const etag = first.headers.get('etag')
  expect(etag).toMatch(/^"[\w-]{43}"$/)
  await upload(authorization, 'x')
  expect((await manage(`/api/buckets/${name}`)).headers.get('etag')).toBe(etag)
  await sendJson('PATCH', `/api/buckets/${name}`, { trash_days: 3 })
  expect((await manage(`/api/buckets/${name}`)).headers.get('etag')).not.toBe(etag)
  await sendJson('PATCH', `/api/buckets/${name}`, { trash_days: null })
  expect((await manage(`/api/buckets/${name}`)).headers.get('etag')).toBe(etag)
  await expectProblem(await manage('/api/buckets/nobody'), 404, 'bucket-unknown')
  await expectProblem(await manage('/api/buckets/1%2Ftrash'), 404, 'bucket-unknown')
})

test('BK7 with If-Match, of concurrent changes one is made, and no change is lost', async () => {
  const { name } = await createdBucket({ max_items: 0 })
  const path = `/api/buckets/${name}`
  // Each of 8 clients adds 1 to a setting, 5 times.
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let done = 0; done < 5; ) {
        const current = await manage(path)
        const { max_items } = Object(await current.json())
        const ifMatch = current.headers.get('etag') ?? ''
        const changed = await sendJson('PATCH', path, { max_items: max_items + 1 }, { 'if-match': ifMatch })
        if (changed.status === 200) {
          expect(Object(await changed.json()).max_items).toBeGreaterThan(max_items)
          done += 1
        } else await expectProblem(changed, 412, 'precondition-failed')
      }
    }),
  )
  const last = await manage(path)
  expect(await last.json()).toMatchObject({ max_items: 40 })
  const any = await sendJson('PATCH', path, { private: true }, { 'if-match': '*' })
  expect(await any.json()).toMatchObject({ private: true, max_items: 40 })
  expect(any.headers.get('etag')).not.toBe(last.headers.get('etag'))
  await expectProblem(await sendJson('PATCH', '/api/buckets/nobody', {}), 404, 'bucket-unknown')
  const absent = await sendJson('PATCH', '/api/buckets/nobody', {}, { 'if-match': '*' })
  await expectProblem(absent, 404, 'bucket-unknown')
})

test('BK10 with If-Match, a bucket whose settings somebody else has changed is not deleted', async () => {
  const { name } = await createdBucket({})
  const path = `/api/buckets/${name}`
  const read = (await manage(path)).headers.get('etag') ?? ''
  const remove = (ifMatch: string) => manage(path, { method: 'DELETE', headers: { 'if-match': ifMatch } })
  await sendJson('PATCH', path, { trash_days: 3 })
  await expectProblem(await remove(read), 412, 'precondition-failed')
  const now = (await manage(path)).headers.get('etag') ?? ''
  // The change and the deletion were made for the same state: one of them is done.
  const [changed, removed] = await Promise.all([
    sendJson('PATCH', path, { trash_days: 5 }, { 'if-match': now }),
    remove(now),
  ])
  expect([
    [200, 412],
    [404, 204],
    [412, 204],
  ]).toContainEqual([changed.status, removed.status])
  if (removed.status === 412) expect((await remove('*')).status).toBe(204)
  await expectProblem(await remove('*'), 404, 'bucket-unknown')
})

test('BK8 members that are left out stay as they are, and null removes a limit', async () => {
  const { name } = await createdBucket({ max_items: 5, max_bytes: 9, item_days: 2 })
  const patch = async (body: object) => {
    const response = await sendJson('PATCH', `/api/buckets/${name}`, body, {
      'content-type': 'application/merge-patch+json',
    })
    return { status: response.status, ...Object(await response.json()) }
  }
  expect(await patch({})).toMatchObject({ status: 200, max_items: 5, max_bytes: 9, item_days: 2 })
  expect(await patch({ max_items: null, item_days: null })).toMatchObject({
    ...{ max_items: null, max_bytes: 9, item_days: null },
  })
  expect(await patch({ remove_metadata: true })).toMatchObject({
    remove_metadata: true,
    keep_taken_at: false,
  })
  expect(await patch({ remove_metadata: true, keep_taken_at: true })).toMatchObject({ keep_taken_at: true })
  expect(await patch({ remove_metadata: false })).toMatchObject({
    remove_metadata: false,
    keep_taken_at: true,
  })
  expect(await patch({ keep_taken_at: false })).toMatchObject({ status: 400, code: 'json-malformed' })
  expect(await patch({ name: 'other' })).toMatchObject({ status: 400, code: 'json-malformed' })
})

const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(50)])

test('BK13 every way to upload obeys the largest file and the types of the bucket', async () => {
  const { name, authorization } = await createdBucket({
    max_file_size: 100,
    types: ['image/*', 'text/plain'],
  })
  const tus = tusOf(server, authorization)
  const form = (body: Uint8Array<ArrayBuffer>) => {
    const data = new FormData()
    data.append('file', new Blob(['x'], { type: 'text/plain' }), 'x.txt')
    data.append('file', new Blob([body]), 'y.bin')
    return server.request('/api/media', { method: 'POST', body: data, headers: { authorization } })
  }
  const resumable = async (body: Uint8Array<ArrayBuffer>, extra: Record<string, string>) => {
    const created = await tus.send('POST', '/api/uploads', extra)
    if (created.status !== 201) return created
    const path = new URL(created.headers.get('location') ?? '').pathname
    return await tus.sendChunk(
      path,
      0,
      body,
      extra['upload-length'] ? {} : { 'upload-length': `${body.length}` },
    )
  }
  const ways = {
    raw: (body: Uint8Array<ArrayBuffer>) =>
      server.request('/api/media', { method: 'POST', body, headers: { authorization } }),
    'raw with a key': (body: Uint8Array<ArrayBuffer>) =>
      server.request('/api/media', {
        ...{ method: 'POST', body, headers: { authorization, 'idempotency-key': randomUUID() } },
      }),
    form: (body: Uint8Array<ArrayBuffer>) => form(body),
    resumable: (body: Uint8Array<ArrayBuffer>) => resumable(body, { 'upload-length': `${body.length}` }),
    'resumable of unknown length': (body: Uint8Array<ArrayBuffer>) =>
      resumable(body, { 'upload-defer-length': '1' }),
  }
  const [large, other] = [Buffer.concat([png, Buffer.alloc(60)]), Buffer.from('%PDF-1.7\n')]
  for (const [way, send] of Object.entries(ways)) {
    expect([201, 204], way).toContain((await send(png)).status)
    const tooLarge = await expectProblem(await send(large), 413, 'file-too-large')
    expect(tooLarge, way).toMatchObject({ errors: [{ parameter: 'max_file_size', maximum: 100 }] })
    const refused = await expectProblem(await send(other), 415, 'type-refused')
    expect(refused, way).toMatchObject({
      errors: [{ parameter: 'types', accepted: ['image/*', 'text/plain'] }],
    })
  }
  const count = async () => Object(await (await manage(`/api/buckets/${name}`)).json())
  expect(await count()).toMatchObject({ items: 6, max_file_size: 100, types: ['image/*', 'text/plain'] })

  // The limits of a token hold too.
  const grant = await makeManager('tokens:manage', 'media:write')
  const body = { scopes: ['media:write'], limits: { max_file_size: 80, types: ['text/*'] } }
  const granted = await sendJson('POST', `/api/buckets/${name}/tokens`, body, {}, grant)
  const limited = `Bearer ${Object(await granted.json()).token}`
  expect((await upload(limited, 'text')).status).toBe(201)
  await expectProblem(await upload(limited, 'x'.repeat(90)), 413, 'file-too-large')
  await sendJson('PATCH', `/api/buckets/${name}`, { types: ['image/png'], max_file_size: 10 })
  await expectProblem(await upload(limited, 'text'), 415, 'type-refused')
  await expectProblem(await upload(limited, 'x'.repeat(20)), 413, 'file-too-large')

  // What has begun obeys later limits too.
  await sendJson('PATCH', `/api/buckets/${name}`, { types: null, max_file_size: null })
  const path = await tus.createWithLength(200)
  await tus.sendChunk(path, 0, 'x'.repeat(5))
  await sendJson('PATCH', `/api/buckets/${name}`, { max_file_size: 10 })
  await expectProblem(await tus.sendChunk(path, 5, 'x'.repeat(195)), 413, 'file-too-large')
  await sendJson('PATCH', `/api/buckets/${name}`, { types: null, max_file_size: null })
  expect((await upload(authorization, 'x'.repeat(200))).status).toBe(201)
})

test('BK10 a bucket with items is deleted only on request, and then gone at once for everybody', async () => {
  const { name, authorization } = await createdBucket({ trash_days: 1 })
  const large = 'x'.repeat(200_000)
  const item = Object(await (await upload(authorization, large)).json())
  const remove = (query = '') => manage(`/api/buckets/${name}${query}`, { method: 'DELETE' })
  await expectProblem(await remove(), 409, 'bucket-not-empty')
  const { id, url } = item.data?.[0] ?? item
  await server.request(`/api/media/${id}`, { method: 'DELETE', headers: { authorization } })
  // The item is in the trash.
  await expectProblem(await remove(), 409, 'bucket-not-empty')
  await expectProblem(await remove('?items=keep'), 400, 'parameter-malformed')
  const shown = Object(await (await upload(authorization, large)).json())
  const path = new URL((shown.data?.[0] ?? shown).url).pathname
  expect((await server.request(path)).status).toBe(200)
  const stream = await server.request('/api/changes', {
    headers: { authorization, accept: 'text/event-stream' },
  })
  expect((await remove('?items=delete')).status).toBe(204)

  expect((await server.request(path)).status).toBe(404)
  expect((await server.request(new URL(url).pathname)).status).toBe(404)
  // Its row may be removed already.
  expect((await upload(authorization, 'x')).status).toBe(401)
  await expectProblem(await manage(`/api/buckets/${name}`), 404, 'bucket-unknown')
  await expectProblem(await remove('?items=delete'), 404, 'bucket-unknown')
  const listed = Object(await (await manage(`/api/buckets?name=${name}`)).json())
  expect(listed).toMatchObject({ data: [], totals: { buckets: 0, items: 0, bytes: 0 } })
  // The stream ends.
  for await (const _ of stream.body ?? []);

  const again = await create({ name, token: { scopes: ['media:write', 'media:read'] } })
  const { token } = Object(await again.json())
  expect((await upload(`Bearer ${token.token}`, 'x')).status).toBe(201)
  const page = await server.request('/api/media', { headers: { authorization: `Bearer ${token.token}` } })
  expect(await page.json()).toMatchObject({ total: 1 })
  await until('the bytes of the items are removed', async () => {
    const files = await readdir(join(server.data, 'blobs'), { recursive: true })
    return !files.some((file) => file.includes(id))
  })
})

test('BK10 a bucket whose items were deleted is deleted without further conditions', async () => {
  const { name, authorization } = await createdBucket()
  const item = Object(await (await upload(authorization, 'x')).json())
  const { id } = item.data?.[0] ?? item
  await server.request(`/api/media/${id}`, { method: 'DELETE', headers: { authorization } })
  expect((await manage(`/api/buckets/${name}`, { method: 'DELETE' })).status).toBe(204)
})

test('BK9 changes of buckets are events with the service token as actor, and a read-only service refuses them', async () => {
  await using directory = await temporaryDirectory()
  await using audited = await startServer({ MEDIABUCKET_AUDIT: 'changes' }, directory.path)
  const { authorization, id } = await makeToken(
    audited,
    ...['--service', '--scope', 'buckets:manage,tokens:manage,media:read'],
  )
  const send = (at: SharedServer, method: string, path: string, body?: object) =>
    at.request(`/api/buckets${path}`, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  const changes: readonly (readonly [method: string, path: string, body?: object])[] = [
    ['POST', '', { name: 'audited', max_items: 5, token: { scopes: ['media:write'], name: 'app' } }],
    ['PATCH', '/audited', { types: ['image/*'], trash_days: 2 }],
    ['PATCH', '/audited', { trash_days: 2 }],
    ['POST', '/audited/tokens', { scopes: ['media:read'] }],
    ['DELETE', '/audited'],
  ]
  for (const [method, path, body] of changes)
    expect((await send(audited, method, path, body)).status).toBeLessThan(300)
  const { stdout } = await audited.command('audit', '--json')
  const events = stdout
    .split('\n')
    .filter((line) => line.includes(id) && !line.includes(`"target":"${id}`))
    .map((line) => /"event_code":"([\w-]+)"/.exec(line)?.[1])
  expect(events.slice(-5)).toEqual([
    ...['bucket-create', 'token-create', 'bucket-set', 'token-create', 'bucket-delete'],
  ])
  expect(stdout).toContain('image/*')
  expect(stdout).not.toMatch(/mbk[ts]_/)
  await audited.stop()
  await using readOnly = await startServer({ MEDIABUCKET_READ_ONLY: 'on' }, directory.path)
  for (const [method, path, body] of changes)
    await expectProblem(await send(readOnly, method, path, body), 503, 'read-only')
  expect((await send(readOnly, 'GET', '')).status).toBe(200)
})

test('BK12 a service token creates tokens of a bucket with scopes that it has', async () => {
  const { name } = await createdBucket()
  const granter = await makeManager('tokens:manage', 'media:read')
  const grant = (bucket: string, body: object, authorization: string) =>
    sendJson('POST', `/api/buckets/${bucket}/tokens`, body, {}, authorization)
  const granted = await grant(name, { scopes: ['media:read'], name: 'website' }, granter)
  expect(granted.status).toBe(201)
  const { token, ...members } = Object(await granted.json())
  expect(members).toMatchObject({ bucket: name, name: 'website', scopes: ['media:read'] })
  const listed = await server.request('/api/media', { headers: { authorization: `Bearer ${token}` } })
  expect(listed.status).toBe(200)
  await expectProblem(await grant(name, { scopes: ['media:write'] }, granter), 403, 'scope-missing')
  await expectProblem(await grant(name, { scopes: ['media:read'] }, manager), 403, 'scope-missing')
  await expectProblem(await grant('nobody', { scopes: ['media:read'] }, granter), 404, 'bucket-unknown')
  await expectProblem(await grant(name, { scopes: ['buckets:manage'] }, granter), 400, 'json-malformed')
})

test('BK1 routes of buckets need a service token with buckets:manage', async () => {
  const { name, authorization } = await bucketWith(server)
  const reader = await makeManager('media:read')
  for (const each of [authorization, reader])
    for (const [method, path] of [
      ['GET', '/api/buckets'],
      ['POST', '/api/buckets'],
      ['GET', `/api/buckets/${name}`],
      ['PATCH', `/api/buckets/${name}`],
      ['DELETE', `/api/buckets/${name}?items=delete`],
      ['POST', `/api/buckets/${name}/tokens`],
    ] as const)
      await expectProblem(await manage(path, { method }, each), 403, 'scope-missing')
})
