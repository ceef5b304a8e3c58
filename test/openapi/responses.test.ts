import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listen } from '../client/foreign-service.ts'
import { runHere } from '../harness/commands.ts'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { quarters, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { checksumOf, chunkType, tusOf } from '../harness/tus.ts'
import { upload } from '../harness/upload.ts'
import { readCreatedToken, readCreatedWebhook } from '../harness/wire.ts'
import { readDescription } from './conformance.ts'

/** Statuses that other tests check, because they need other settings, a timeout, a full disk or an exceeded limit. */
const elsewhere = [302, 308, 408, 429, 500, 503, 507]

let server: TestServer
let description: Awaited<ReturnType<typeof readDescription>>
let powerless: string
let reading: string
let item: Awaited<ReturnType<typeof upload>>
const met = new Set<string>()

beforeAll(async () => {
  server = await startServer({
    MEDIABUCKET_MAX_FILE_SIZE: '100kB',
    MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1',
    MEDIABUCKET_URL_UPLOADS: '127.0.0.1',
  })
  description = await readDescription(server)
  powerless = (await makeToken(server, '--bucket', 'default', '--scope', 'tokens:manage')).authorization
  reading = (await makeToken(server, '--bucket', 'default', '--scope', 'media:read')).authorization
  item = await upload(server, 'x'.repeat(50_000), { name: 'notes.txt' })
})
afterAll(() => server[Symbol.asyncDispose]())

const fill = (path: string) =>
  path.replace('{id}', item.id).replace('{name}', `${item.id}.txt`).replace('{code}', 'internal')

async function meet(method: string, path: string, response: Response, status: number): Promise<void> {
  expect([method, path, response.status]).toEqual([method, path, status])
  await description.expectDescribed(method, path, response)
  met.add(`${method} ${path} ${status}`)
}

/** The response to an invalid request has a body, even after HEAD, and closes the connection. */
async function raw(method: string, path: string, headers: string): Promise<Response> {
  const request = `${method} ${fill(path)} HTTP/1.1\r\nConnection: close\r\n${headers}\r\n`
  const response = await sendRaw(server.url, request)
  return responseOf(method === 'HEAD' ? { ...response, body: '' } : response)
}

describe('D1 the common problems of all operations are as described', () => {
  test('D1 a request without Host, and a request with too large headers', async () => {
    for (const { method, path } of description.operations) {
      await meet(method, path, await raw(method, path, ''), 400)
      await meet(method, path, await raw(method, path, `Host: x\r\nX: ${'x'.repeat(17_000)}\r\n`), 431)
    }
  })

  test('D1 no token, two tokens, a malformed one, and one without the scope', async () => {
    for (const { method, path, statuses } of description.operations.filter(({ needsToken }) => needsToken)) {
      await meet(method, path, await raw(method, path, 'Host: x\r\n'), 401)
      await meet(method, path, await raw(method, path, 'Host: x\r\nAuthorization: Bearer x\r\n'), 401)
      const twice = 'Authorization: Bearer x\r\n'.repeat(2)
      await meet(method, path, await raw(method, path, `Host: x\r\n${twice}`), 400)
      const lacking = path.startsWith('/api/tokens') ? reading : powerless
      const response = await raw(method, path, `Host: x\r\nAuthorization: ${lacking}\r\n`)
      // Any token of this service may describe itself; test/http/issuer-users.test.ts receives the 403 of other tokens.
      if (path === '/api/token') met.add('GET /api/token 403')
      else if (statuses.includes(403)) await meet(method, path, response, 403)
    }
  })

  test('D1, ST2, ST3 the name of a bucket: none, that of another bucket, and an unknown one', async () => {
    const { authorization } = await makeToken(server, '--service', '--scope', 'media:read')
    const named = description.operations.filter(({ parameters }) => parameters.includes('Mediabucket-Bucket'))
    expect(named.length).toBeGreaterThan(20)
    for (const { method, path } of named) {
      // Other requests for bytes need no token.
      const at = path.startsWith('/media/') ? path.replace('{name}', 'x').replace('{filename}', 'x') : path
      const send = async (sent: string, bucket: string | null, status: number) => {
        const name = bucket === null ? '' : `Mediabucket-Bucket: ${bucket}\r\n`
        const response = await raw(method, at, `Host: x\r\nAuthorization: ${sent}\r\n${name}`)
        await meet(method, path, response, status)
      }
      await send(authorization, null, 400)
      await send(authorization, 'unknown', 404)
      await send(reading, 'unknown', 403)
    }
    // Only if the new bucket is deleted before the response.
    met.add('POST /api/buckets 404')
  })
})

test('D1, H2 responses with the bytes of a private bucket are as described', async () => {
  const path = '/media/{name}'
  const bucket = 'private'
  const { authorization } = await makeToken(server, '--bucket', bucket)
  await runHere(server.data, 'bucket set', bucket, '--private', 'on')
  const writer = await makeToken(server, '--bucket', bucket, '--scope', 'media:write')
  const { url } = await upload(server, 'x'.repeat(50_000), { name: 'notes.txt', authorization })
  const calls: readonly (readonly [number, Record<string, string>])[] = [
    [200, { authorization }],
    [206, { authorization, range: 'bytes=1-9' }],
    [304, { authorization, 'if-none-match': '*' }],
    [401, { authorization: 'Bearer x' }],
    [401, { authorization: `Bearer mbkt_${'0'.repeat(52)}` }],
    [403, { authorization: writer.authorization }],
    [404, {}],
    [404, { authorization: `Bearer ${server.token}` }],
  ]
  for (const [status, headers] of calls) {
    await meet('GET', path, await fetch(url, { headers }), status)
    const same = status === 206 ? 200 : status
    await meet('HEAD', path, await fetch(url, { method: 'HEAD', headers }), same)
  }
  const name = new URL(url).pathname
  for (const method of ['GET', 'HEAD']) {
    const twice = 'Authorization: Bearer x\r\n'.repeat(2)
    const request = `${method} ${name} HTTP/1.1\r\nConnection: close\r\nHost: x\r\n${twice}\r\n`
    const response = await sendRaw(server.url, request)
    await meet(method, path, responseOf(method === 'HEAD' ? { ...response, body: '' } : response), 400)
  }
  const { security } = description.document.paths[path]?.['get'] ?? {}
  expect(security).toEqual([{}, { bearer: ['media:read'] }])
})

/** A request to `path` and the expected status. */
type Call = readonly [status: number, path: string, init?: () => RequestInit]

const header = (name: string, value: string) => () => ({ headers: { [name]: value } })
const tagged = (path: string) => async () => (await server.request(path)).headers.get('etag') ?? ''

const reads: Readonly<Record<string, readonly Call[]>> = {
  '/api/media': [
    [200, '/api/media'],
    [200, '/api/media?page=99'],
    [304, '/api/media', header('if-none-match', '*')],
    [400, '/api/media?page=0'],
    [200, '/v1/media'],
    [304, '/v1/media', header('if-none-match', '*')],
    [400, '/v1/media?page='],
  ],
  '/api/media/{id}': [
    [200, '/api/media/{id}'],
    [304, '/api/media/{id}', header('if-none-match', '*')],
    [412, '/api/media/{id}', header('if-match', '"x"')],
    [404, '/api/media/nobody'],
  ],
  '/api/items': [
    [200, '/api/items'],
    [200, '/api/items?order=newest&limit=1'],
    [304, '/api/items', header('if-none-match', '*')],
    [400, '/api/items?limit=0'],
    [400, '/api/items?after=x'],
  ],
  '/api/changes': [
    [200, '/api/changes'],
    [400, '/api/changes?wait=x'],
    [410, '/api/changes?after=AAAAAAAAAAAAMQ'],
  ],
  '/api/labels': [
    [200, '/api/labels'],
    [400, '/api/labels?limit=0'],
  ],
  '/api/trash': [
    [200, '/api/trash'],
    [400, '/api/trash?limit=0'],
  ],
  '/api/token': [[200, '/api/token']],
  '/api/bucket': [[200, '/api/bucket']],
  '/media/{name}': [
    [200, '/media/{name}'],
    [206, '/media/{name}', header('range', 'bytes=1-9')],
    [304, '/media/{name}', header('if-none-match', '*')],
    [403, '/media/{name}', header('sec-fetch-dest', 'script')],
    [404, '/media/nobody.jpg'],
    [412, '/media/{name}', header('if-match', '"other"')],
    [416, '/media/{name}', header('range', 'bytes=999999-')],
  ],
  '/problems/{code}': [
    [200, '/problems/{code}'],
    [200, '/problems/{code}', header('accept', 'text/html')],
    [404, '/problems/none-such'],
  ],
  '/healthz': [[200, '/healthz']],
  '/readyz': [[200, '/readyz']],
  '/metrics': [[200, '/metrics']],
  '/openapi.json': [[200, '/openapi.json']],
  '/docs': [[200, '/docs']],
}

test.each(Object.entries(reads))('D1 responses to reads of %s are as described', async (path, calls) => {
  for (const [status, target, init] of calls) {
    const response = await server.request(fill(target), init?.())
    await meet('GET', path, response, status)
    // Range is defined for GET only.
    const same = status === 206 || status === 416 ? 200 : status
    await meet('HEAD', path, await server.request(fill(target), { ...init?.(), method: 'HEAD' }), same)
  }
})

test.each(['/openapi.json', '/docs'])('D1, D3 the 304 of %s is as described', async (path) => {
  const response = await server.request(path, { headers: { 'if-none-match': await tagged(path)() } })
  await meet('GET', path, response, 304)
})

const form = (...parts: Parameters<typeof formBytes>) => ({
  body: formBytes(...parts),
  headers: { 'content-type': formType },
})
const uploads: readonly (readonly [status: number, init: RequestInit])[] = [
  [201, form(filePart('a.txt'))],
  [201, form(filePart('a.txt'), filePart('b.txt'))],
  [201, { body: 'raw', headers: { 'content-type': 'text/plain' } }],
  [400, form()],
  [400, { body: 'no form', headers: { 'content-type': formType } }],
  [400, { body: 'x', headers: { 'content-disposition': 'attachment; filename' } }],
  [413, { body: 'x'.repeat(200_000) }],
  [413, form(...Array.from({ length: 1001 }, () => filePart('a.txt')))],
  [415, { body: 'x', headers: { 'content-encoding': 'gzip' } }],
  [201, { body: 'once', headers: { 'idempotency-key': 'description-000001' } }],
  [422, { body: 'other', headers: { 'idempotency-key': 'description-000001' } }],
]

test.each(['/api/media', '/v1/media'])('D1 responses to uploads to %s are as described', async (path) => {
  for (const [status, init] of uploads) {
    await meet('POST', '/api/media', await server.request(path, { ...init, method: 'POST' }), status)
  }
})

test('D1 responses to uploads from a URL are as described', async () => {
  await using other = await listen((request, response) => {
    if (request.url === '/none') response.writeHead(404)
    response.end(request.url === '/large' ? 'x'.repeat(200_000) : 'x')
  })
  const path = '/api/media/from-url'
  const send = (body: object, type = 'application/json') =>
    server.request(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': type } })
  await meet('POST', path, await send({ url: other.url }), 201)
  await meet('POST', path, await send({}), 400)
  await meet('POST', path, await send({ url: `${other.url}/large` }), 413)
  await meet('POST', path, await send({ url: other.url }, 'text/plain'), 415)
  await meet('POST', path, await send({ url: 'http://10.0.0.1/' }), 422)
  await meet('POST', path, await send({ url: `${other.url}/none` }), 424)
})

test('D1 responses to resumable uploads are as described', async () => {
  const tus = tusOf(server)
  const one = '/api/uploads/{id}'
  const create = (headers: Record<string, string>, body?: string) =>
    tus.send('POST', '/api/uploads', { 'content-type': chunkType, ...headers }, body)
  const creation = await create({ 'upload-length': '9', 'upload-metadata': 'filename YQ==' }, 'abc')
  const url = new URL(creation.headers.get('location') ?? '').pathname
  await meet('POST', '/api/uploads', creation, 201)
  const refusals: readonly (readonly [number, Record<string, string>])[] = [
    [400, { 'upload-length': 'x' }],
    [412, { 'upload-length': '9', 'tus-resumable': '2.0.0' }],
    [413, { 'upload-length': '100001' }],
    [415, { 'upload-length': '9', 'content-encoding': 'gzip' }],
    [460, { 'upload-length': '9', 'upload-checksum': checksumOf('sha1', 'other') }],
  ]
  for (const [status, headers] of refusals) {
    await meet('POST', '/api/uploads', await create(headers, 'abc'), status)
  }

  await meet('HEAD', one, await tus.head(url), 200)
  await meet('HEAD', one, await tus.head('/api/uploads/nobody'), 404)
  await meet('HEAD', one, await tus.send('HEAD', url, { 'tus-resumable': '' }), 412)
  for (const method of ['PATCH', 'POST']) {
    const sendChunk = (offset: number, body: string, headers: Record<string, string> = {}, to = url) => {
      const override: Record<string, string> = method === 'POST' ? { 'x-http-method-override': 'PATCH' } : {}
      const mine = { 'content-type': chunkType, 'upload-offset': `${offset}` }
      return tus.send(method, to, { ...mine, ...override, ...headers }, body)
    }
    const at = await tus.offset(url)
    await meet(method, one, await sendChunk(at, 'abc'), 204)
    await meet(method, one, await sendChunk(at + 3, '', {}, '/api/uploads/nobody'), 404)
    await meet(method, one, await sendChunk(at, ''), 409)
    await meet(method, one, await sendChunk(at + 3, '', { 'tus-resumable': '' }), 412)
    await meet(method, one, await sendChunk(at + 3, 'too much of it'), 413)
    await meet(method, one, await sendChunk(at + 3, '', { 'content-type': 'text/plain' }), 415)
    const checksum = { 'upload-checksum': checksumOf('sha1', 'other') }
    if (method === 'PATCH') await meet(method, one, await sendChunk(at + 3, 'abc', checksum), 460)
  }
  const finished = await tus.send('POST', url, { 'x-http-method-override': 'HEAD' })
  expect(finished.headers.get('content-location')).not.toBeNull()
  const wrong = await tus.createWithLength(3)
  const sent = { 'upload-offset': '0', 'upload-checksum': checksumOf('sha1', 'x'), 'content-type': chunkType }
  await meet(
    'POST',
    one,
    await tus.send('POST', wrong, { ...sent, 'x-http-method-override': 'PATCH' }, 'abc'),
    460,
  )
  await meet('POST', one, await tus.send('POST', url, {}), 405)
  await meet('DELETE', one, await tus.send('DELETE', url, { 'tus-resumable': '' }), 412)
  await meet('DELETE', one, await tus.terminate(url), 204)
  await meet('DELETE', one, await tus.terminate(url), 404)
})

test('D1 refusals of files whose metadata cannot be removed are as described', async () => {
  const bucket = 'metadata'
  const { authorization } = await makeToken(server, '--bucket', bucket)
  await runHere(server.data, 'bucket set', bucket, '--remove-metadata', 'on')
  const tus = tusOf(server, authorization)
  const damaged = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0xff, 0xff])
  const chunk = { 'content-type': chunkType, 'upload-offset': '0' }
  const first = { 'content-type': chunkType, 'upload-length': `${damaged.length}` }
  await meet('POST', '/api/uploads', await tus.send('POST', '/api/uploads', first, damaged), 422)
  for (const [method, override] of [
    ['PATCH', {}],
    ['POST', { 'x-http-method-override': 'PATCH' }],
  ] as const) {
    const url = await tus.createWithLength(damaged.length)
    const response = await tus.send(method, url, { ...chunk, ...override }, damaged)
    await meet(method, '/api/uploads/{id}', response, 422)
  }
})

test('D1 responses to deletes are as described', async () => {
  const path = '/api/media/{id}'
  const { id } = await upload(server, 'x')
  const remove = (init?: RequestInit) => server.request(`/api/media/${id}`, { ...init, method: 'DELETE' })
  await meet('DELETE', path, await remove({ body: 'x'.repeat(100_000) }), 413)
  await meet('DELETE', path, await remove(), 204)
  await meet('DELETE', path, await remove(), 404)
})

test('D1 responses to deletes of many are as described', async () => {
  const path = '/api/media'
  const { id } = await upload(server, 'x')
  const json = { 'content-type': 'application/json' }
  const body = JSON.stringify({ ids: [id, 'nobody'] })
  const remove = (init: RequestInit) => server.request(path, { headers: json, ...init, method: 'DELETE' })
  await meet('DELETE', path, await remove({ body: '{}' }), 400)
  await meet('DELETE', path, await remove({ body: 'x'.repeat(200_000) }), 413)
  await meet('DELETE', path, await remove({ body, headers: { 'content-type': 'text/plain' } }), 415)
  await meet('DELETE', path, await remove({ body }), 200)
})

test('D1 responses to changes of the labels of many are as described', async () => {
  const path = '/api/media'
  const { id } = await upload(server, 'x')
  const json = { 'content-type': 'application/json' }
  const body = JSON.stringify({ ids: [id, 'nobody'], labels: { album: '42', user: null } })
  const label = (init: RequestInit) => server.request(path, { headers: json, ...init, method: 'PATCH' })
  await meet('PATCH', path, await label({ body: '{}' }), 400)
  await meet('PATCH', path, await label({ body: 'x'.repeat(200_000) }), 413)
  await meet('PATCH', path, await label({ body, headers: { 'content-type': 'text/plain' } }), 415)
  await meet('PATCH', path, await label({ body }), 200)
})

test('D1 responses to requests for links are as described', async () => {
  for (const [path, target, body, status] of [
    ['/api/media/{id}/links', `/api/media/${item.id}/links`, '{"variant":"thumb"}', 201],
    ['/api/links', '/api/links', JSON.stringify({ ids: [item.id, 'x'], expires_in: 60 }), 200],
  ] as const) {
    const send = (body: string, type = 'application/json', to: string = target) =>
      server.request(to, { method: 'POST', body, headers: { 'content-type': type } })
    await meet('POST', path, await send(body), status)
    await meet('POST', path, await send('{"x":1}'), 400)
    await meet('POST', path, await send('x'.repeat(200_000)), 413)
    await meet('POST', path, await send(body, 'text/plain'), 415)
    if (status === 201)
      await meet('POST', path, await send(body, 'application/json', '/api/media/x/links'), 404)
  }
  const signed = `/media/${item.id}.txt?expires=1&key=a&signature=${'a'.repeat(43)}`
  await meet('GET', '/media/{name}', await fetch(server.url + signed), 403)
})

test('D1 responses to requests that manage tokens are as described', async () => {
  const scopes = ['tokens:manage', 'media:read'].flatMap((scope) => ['--scope', scope])
  const { authorization } = await makeToken(server, '--bucket', 'default', ...scopes)
  const [list, one, rotation] = ['/api/tokens', '/api/tokens/{id}', '/api/tokens/{id}/rotate'] as const
  const send = (method: string, path: string, body?: string, type = 'application/json') =>
    server.request(path, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body }),
    })
  const created = await send('POST', list, '{"scopes":["media:read"]}')
  const { id } = readCreatedToken(await created.clone().json())
  await meet('POST', list, created, 201)
  await meet('GET', list, await send('GET', list), 200)
  await meet('GET', list, await send('GET', `${list}?limit=0`), 400)
  await meet('POST', list, await send('POST', list, '{"scopes":["media:delete"]}'), 403)
  const path = `${list}/${id}`
  const body = '{"expires_at":null}'
  await meet('POST', rotation, await send('POST', `${path}/rotate`, body), 201)
  await meet('POST', rotation, await send('POST', `${list}/x/rotate`, body), 404)
  for (const [described, target] of [
    [list, list],
    [rotation, `${path}/rotate`],
  ] as const) {
    await meet('POST', described, await send('POST', target, '{'), 400)
    await meet('POST', described, await send('POST', target, 'x'.repeat(200_000)), 413)
    await meet('POST', described, await send('POST', target, '{}', 'text/plain'), 415)
  }
  await meet('DELETE', one, await send('DELETE', path), 204)
  await meet('DELETE', one, await send('DELETE', `${list}/x`), 404)
  await meet('POST', rotation, await send('POST', `${path}/rotate`, body), 409)
})

test('D1 responses to requests that manage keys, and read the audit log, are as described', async () => {
  const { authorization } = await makeToken(server, '--service', '--scope', 'buckets:manage,media:read')
  const send = (method: string, path: string) => server.request(path, { method, headers: { authorization } })
  const created = await send('POST', '/api/keys')
  const { id } = Object(await created.clone().json())
  await meet('POST', '/api/keys', created, 201)
  await meet('GET', '/api/keys', await send('GET', '/api/keys'), 200)
  await meet('DELETE', '/api/keys/{id}', await send('DELETE', `/api/keys/${id}`), 204)
  await meet('DELETE', '/api/keys/{id}', await send('DELETE', `/api/keys/${id}`), 404)
  await meet('GET', '/api/audit', await send('GET', '/api/audit'), 200)
  await meet('GET', '/api/audit', await send('GET', '/api/audit?bucket=never'), 404)
  await meet('GET', '/api/audit', await send('GET', '/api/audit?limit=0'), 400)
})

test('D1 responses to requests that manage buckets are as described', async () => {
  const scopes = 'buckets:manage,tokens:manage,media:read'
  const { authorization } = await makeToken(server, '--service', '--scope', scopes)
  const [list, one, tokens] = ['/api/buckets', '/api/buckets/{name}', '/api/buckets/{name}/tokens'] as const
  const send = (method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
    server.request(path, {
      method,
      headers: {
        authorization,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body }),
    })
  const key = { 'idempotency-key': 'bucket' }
  const body = '{"name":"described","token":{"scopes":["media:write"]}}'
  const created = await send('POST', list, body, key)
  const { token } = Object(await created.clone().json())
  await meet('POST', list, created, 201)
  await meet('POST', list, await send('POST', list, body), 409)
  await meet('POST', list, await send('POST', list, '{"name":"other"}', key), 422)
  await meet('GET', list, await send('GET', list), 200)
  await meet('GET', list, await send('GET', `${list}?limit=0`), 400)
  const path = `${list}/described`
  await meet('GET', one, await send('GET', path), 200)
  await meet('GET', one, await send('GET', `${list}/nobody`), 404)
  await meet('PATCH', one, await send('PATCH', path, '{"max_items":2}'), 200)
  await meet('PATCH', one, await send('PATCH', path, '{"max_items":3}', { 'if-match': '"x"' }), 412)
  await meet('PATCH', one, await send('PATCH', `${list}/nobody`, '{}'), 404)
  await meet('DELETE', one, await send('DELETE', path, undefined, { 'if-match': '"x"' }), 412)
  await meet('POST', tokens, await send('POST', `${path}/tokens`, '{"scopes":["media:read"]}'), 201)
  await meet('POST', tokens, await send('POST', `${path}/tokens`, '{"scopes":["media:write"]}'), 403)
  await meet('POST', tokens, await send('POST', `${list}/nobody/tokens`, '{"scopes":["media:read"]}'), 404)
  const usage = '/api/buckets/{name}/usage'
  await meet('GET', usage, await send('GET', `${path}/usage`), 200)
  await meet('GET', usage, await send('GET', `${list}/nobody/usage`), 404)
  await meet('GET', '/api/usage', await send('GET', '/api/usage'), 200)
  for (const [method, described, target] of [
    ['POST', list, list],
    ['PATCH', one, path],
    ['POST', tokens, `${path}/tokens`],
  ] as const) {
    await meet(method, described, await send(method, target, '{'), 400)
    await meet(method, described, await send(method, target, 'x'.repeat(200_000)), 413)
    await meet(method, described, await send(method, target, '{}', { 'content-type': 'text/plain' }), 415)
  }
  const writer = { authorization: `Bearer ${token.token}` }
  await server.request('/api/media', { method: 'POST', body: 'x', headers: writer })
  await meet('DELETE', one, await send('DELETE', path), 409)
  await meet('DELETE', one, await send('DELETE', `${path}?items=all`), 400)
  await meet('DELETE', one, await send('DELETE', `${path}?items=delete`), 204)
  await meet('DELETE', one, await send('DELETE', path), 404)
})

test('D1 responses to requests that manage webhooks are as described', async () => {
  const { authorization } = await makeToken(server, '--bucket', 'default', '--scope', 'webhooks:manage')
  const send = (method: string, path: string, body?: string, type = 'application/json') =>
    server.request(path, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body }),
    })
  const [list, one] = ['/api/webhooks', '/api/webhooks/{id}'] as const
  // Nothing listens there.
  const body = '{"url":"http://127.0.0.1:1/"}'
  const created = await send('POST', list, body)
  const { id } = readCreatedWebhook(await created.clone().json())
  await meet('POST', list, created, 201)
  await meet('GET', list, await send('GET', list), 200)
  const calls: readonly (readonly [method: string, path: string, body?: string])[] = [
    ['GET', ''],
    ['PATCH', '', '{"state":"off"}'],
    ['POST', '/rotate', '{}'],
    ['POST', '/test'],
    ['GET', '/deliveries'],
    ['POST', '/deliveries/1/redeliver'],
    ['DELETE', ''],
  ]
  for (const [method, path, content] of calls) {
    const described = `${one}${path.replace('1', '{number}')}`
    await meet(method, described, await send(method, `${list}/x${path}`, content), 404)
    if (content !== undefined) {
      const target = `${list}/${id}${path}`
      await meet(method, described, await send(method, target, '{'), 400)
      await meet(method, described, await send(method, target, 'x'.repeat(200_000)), 413)
      await meet(method, described, await send(method, target, '{}', 'text/plain'), 415)
    }
    const status = method === 'DELETE' ? 204 : 200
    await meet(method, described, await send(method, `${list}/${id}${path}`, content), status)
  }
  await meet('POST', list, await send('POST', list, '{}'), 400)
  await meet('POST', list, await send('POST', list, 'x'.repeat(200_000)), 413)
  await meet('POST', list, await send('POST', list, body, 'text/plain'), 415)
  for (let count = 0; count < 10; count += 1) await send('POST', list, body)
  await meet('POST', list, await send('POST', list, body), 409)
})

test('D1 responses to restores and deletes of the trash are as described', async () => {
  const json = { 'content-type': 'application/json' }
  const [trash, restore] = ['/api/trash', '/api/trash/restore'] as const
  for (const [method, path] of [
    ['DELETE', trash],
    ['POST', restore],
  ] as const) {
    const send = (body: string, headers: Record<string, string> = json) =>
      server.request(path, { method, body, headers })
    await meet(method, path, await send('{"ids":["nobody"]}'), 200)
    await meet(method, path, await send('{}'), 400)
    await meet(method, path, await send('x'.repeat(200_000)), 413)
    await meet(method, path, await send('{}', { 'content-type': 'text/plain' }), 415)
    if (method === 'DELETE') await meet(method, path, await send('{"all":true}'), 204)
  }
})

test('D1, V17 responses to requests for a variant that is not rendered yet are as described', async () => {
  const { id } = await uploadPicture(server, quarters(3000, 2000).webp().toBuffer(), 'image/webp')
  for (const method of ['GET', 'HEAD'])
    await meet(
      method,
      '/media/{name}',
      await fetch(`${variantUrl(server, id, 'medium')}&wait=0`, { method }),
      202,
    )
})

test('D1, B13 responses to requests for bytes by URLs with a name are as described', async () => {
  const path = '/media/{name}/{filename}'
  const { id } = await uploadPicture(server, quarters(2900, 2000).webp().toBuffer(), 'image/webp')
  const named = `${server.url}/media/${id}/any.webp`
  const calls: readonly (readonly [number, string, Record<string, string>])[] = [
    [202, `${named}?variant=medium&wait=0`, {}],
    [200, named, {}],
    [206, named, { range: 'bytes=1-9' }],
    [304, named, { 'if-none-match': '*' }],
    [401, `${server.url}/media/nobody/a.webp`, { authorization: 'Bearer x' }],
    [403, named, { 'sec-fetch-dest': 'script' }],
    [404, `${server.url}/media/nobody/a.webp`, {}],
    [412, named, { 'if-match': '"other"' }],
    [416, named, { range: 'bytes=999999999-' }],
  ]
  for (const [status, url, headers] of calls) {
    await meet('GET', path, await fetch(url, { headers }), status)
    // Range is defined for GET only. The variant may be rendered by now.
    if (![202, 206, 416].includes(status))
      await meet('HEAD', path, await fetch(url, { method: 'HEAD', headers }), status)
  }
})

test('D1 responses to edits are as described', async () => {
  const path = '/api/media/{id}'
  const { id } = await upload(server, 'x')
  const edit = (body: string, headers: Record<string, string> = {}, target = id) =>
    server.request(`/api/media/${target}`, {
      method: 'PATCH',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
  await meet('PATCH', path, await edit('{"caption":"x"}'), 200)
  await meet('PATCH', path, await edit('{"caption":1}'), 400)
  await meet('PATCH', path, await edit('{}', {}, 'nobody'), 404)
  await meet('PATCH', path, await edit('{}', { 'if-match': '"x"' }), 412)
  const unless = { method: 'DELETE', headers: { 'if-match': '"x"' } }
  await meet('DELETE', path, await server.request(`/api/media/${id}`, unless), 412)
  await meet('PATCH', path, await edit('x'.repeat(200_000)), 413)
  await meet('PATCH', path, await edit('{}', { 'content-type': 'text/plain' }), 415)
})

test('D1 a wrapped listing is described as wrapped', async () => {
  await using wrapped = await startServer({ MEDIABUCKET_ENVELOPE: 'wrapped' })
  const { expectDescribed } = await readDescription(wrapped)
  for (const path of ['/api/media', '/v1/media']) {
    await expectDescribed('GET', '/api/media', await wrapped.request(path))
    const bare = await server.request(path)
    await expect(expectDescribed('GET', '/api/media', bare)).rejects.toThrow('to be null')
  }
})

test('D1 the tests above received every described response', () => {
  const described = description.operations.flatMap(({ method, path, statuses }) =>
    statuses.filter((status) => !elsewhere.includes(status)).map((status) => `${method} ${path} ${status}`),
  )
  expect(described.filter((one) => !met.has(one))).toEqual([])
})
