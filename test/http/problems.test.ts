import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FaultCode } from '../../packages/server/src/core/faults.ts'
import { scopes } from '../../packages/server/src/core/token-rules.ts'
import { problemKinds } from '../../packages/server/src/http/problem-kinds.ts'
import { runHere } from '../harness/commands.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { checksumOf, tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { blobPath, onDisk, upload } from '../harness/upload.ts'
import { readCreatedToken, readLink, readWebhook } from '../harness/wire.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({
    ...onDisk,
    MEDIABUCKET_MAX_FILE_SIZE: '1kB',
    MEDIABUCKET_IDLE_TIMEOUT: '4s',
  })
})
afterAll(() => server[Symbol.asyncDispose]())

const list = (authorization: string) => server.request('/api/media', { headers: { authorization } })
const tus = () => tusOf(server)
const post = (body: string, headers: Record<string, string> = {}) =>
  server.request('/api/media', { method: 'POST', body, headers })
const form = (body: string) => post(body, { 'content-type': 'multipart/form-data; boundary=b' })
const part = (more: string) => `--b\r\nContent-Disposition: form-data; name="a"${more}\r\n\r\nx\r\n`
const raw = async (text: string) => responseOf(await sendRaw(server.url, text))

const withServiceToken = () => makeToken(server, '--service', '--scope', 'buckets:manage,media:read')

async function withToken(...args: string[]) {
  return await makeToken(server, '--bucket', 'default', ...args)
}

/** An upload while the directory of the bytes is replaced by a file. */
async function uploadWithoutDirectory() {
  const blobs = join(server.data, 'blobs')
  await rename(blobs, `${blobs}-aside`)
  await writeFile(blobs, '')
  try {
    return await post('x')
  } finally {
    await rm(blobs)
    await rename(`${blobs}-aside`, blobs)
  }
}

async function manageTokens(method: string, path: string, body?: string) {
  const { authorization } = await withToken(...scopes.flatMap((scope) => ['--scope', scope]))
  return await server.request(`/api/tokens/${path}`, {
    method,
    headers: { authorization, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body } : {}),
  })
}

async function uploadWithLimits(limits: object) {
  const body = JSON.stringify({ scopes: ['media:write'], limits })
  const { authorization } = await withToken('--scope', 'tokens:manage,media:write')
  const headers = { authorization, 'content-type': 'application/json' }
  const created = await server.request('/api/tokens', { method: 'POST', headers, body })
  const { token } = readCreatedToken(await created.json())
  return await server.request('/api/media', {
    method: 'POST',
    body: 'xx',
    headers: { authorization: `Bearer ${token}` },
  })
}

async function manageWebhooks(method: string, path: string, body?: string) {
  const { authorization } = await makeToken(server, '--bucket', 'hooked', '--scope', 'webhooks:manage')
  return await server.request(`/api/webhooks${path}`, {
    method,
    headers: { authorization, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body } : {}),
  })
}

const deleteMany = (body: string, type: string) =>
  server.request('/api/media', { method: 'DELETE', body, headers: { 'content-type': type } })

async function manageBuckets(method: string, path: string, body?: string): Promise<Response> {
  const { authorization } = await withServiceToken()
  return server.request(`/api/buckets${path}`, {
    method,
    headers: { authorization, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body } : {}),
  })
}

/** The request that causes each problem, or the reason why no request of this test can. */
const provocations: Readonly<Record<FaultCode, (() => Promise<Response>) | string>> = {
  'parameter-malformed': () => server.request('/api/items?limit=0'),
  'cursor-malformed': () => server.request('/api/items?after=x'),
  'cursor-expired': () => server.request('/api/changes?after=AAAAAAAAAAAAMQ'),
  'json-malformed': () => deleteMany('{}', 'application/json'),
  'content-type-unsupported': () => deleteMany('{}', 'text/plain'),
  'page-malformed': () => server.request('/api/media?page=x'),
  'request-malformed': () => raw('GET /media/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
  'authorization-repeated': () =>
    raw(
      'GET /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: b\r\nConnection: close\r\n\r\n',
    ),
  'quota-exceeded': async () => {
    const { authorization } = await makeToken(server, '--bucket', 'small')
    await runHere(server.data, 'bucket set', 'small', '--max-bytes', '1')
    return await server.request('/api/media', { method: 'POST', body: 'xx', headers: { authorization } })
  },
  'token-limit-exceeded': () => uploadWithLimits({ max_bytes: 1 }),
  'type-refused': () => uploadWithLimits({ types: ['image/*'] }),
  'file-unreadable': async () => {
    const { authorization } = await makeToken(server, '--bucket', 'private')
    await runHere(server.data, 'bucket set', 'private', '--remove-metadata', 'on')
    const body = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0xff, 0xff])
    return await server.request('/api/media', { method: 'POST', body, headers: { authorization } })
  },
  'file-refused': 'needs a scanner: test/http/scanned-uploads.test.ts',
  'scanner-unavailable': 'needs a scanner: test/http/scanned-uploads.test.ts',
  'idempotency-key-malformed': () => post('x', { 'idempotency-key': 'two words' }),
  'idempotency-key-reused': async () => {
    await post('x', { 'idempotency-key': 'once' })
    return await post('y', { 'idempotency-key': 'once' })
  },
  'url-uploads-off': () =>
    server.request('/api/media/from-url', {
      method: 'POST',
      body: '{"url":"https://example.org"}',
      headers: { 'content-type': 'application/json' },
    }),
  'url-uploads-too-many': 'needs uploads that wait: test/http/url-uploads.test.ts',
  'source-refused': 'needs MEDIABUCKET_URL_UPLOADS: test/http/url-uploads.test.ts',
  'source-failed': 'needs another server: test/http/url-uploads.test.ts',
  'source-timeout': 'takes 15 seconds: packages/server/test/uploads/url-source.test.ts',
  'digest-mismatch': 'needs another server: test/http/url-uploads.test.ts',
  'upload-unknown': () => tus().terminate('/api/uploads/x'),
  'upload-malformed': () => tus().send('POST', '/api/uploads', { 'upload-length': 'x' }),
  'upload-version-unsupported': () => server.request('/api/uploads', { method: 'POST' }),
  'upload-type-unsupported': async () => tus().send('PATCH', await tus().createWithLength(1), {}, 'x'),
  'upload-offset-conflict': async () => tus().sendChunk(await tus().createWithLength(1), 1, ''),
  'checksum-malformed': async () =>
    tus().sendChunk(await tus().createWithLength(1), 0, 'x', { 'upload-checksum': 'x' }),
  'checksum-mismatch': async () =>
    tus().sendChunk(await tus().createWithLength(1), 0, 'x', { 'upload-checksum': checksumOf('sha1', 'y') }),
  'token-missing': () => fetch(`${server.url}/api/media`),
  'token-malformed': () => list('Bearer x'),
  'token-unknown': async () => {
    await using other = await startServer()
    return await list(`Bearer ${other.token}`)
  },
  'token-expired': async () => {
    const { authorization } = await withToken('--expires', '1ms')
    return await list(authorization)
  },
  'token-revoked': async () => {
    const { id, authorization } = await withToken()
    await runHere(server.data, 'token revoke', id)
    return await list(authorization)
  },
  'token-refused': 'needs an issuer: issuer.test.ts',
  'bucket-missing': 'needs an issuer: issuer-users.test.ts',
  'bucket-required': async () => list((await withServiceToken()).authorization),
  'bucket-forbidden': () => server.request('/api/media', { headers: { 'mediabucket-bucket': 'other' } }),
  'bucket-unknown': async () => {
    const { authorization } = await withServiceToken()
    return server.request('/api/media', { headers: { authorization, 'mediabucket-bucket': 'none' } })
  },
  'bucket-exists': async () => {
    await makeToken(server, '--bucket', 'existing')
    return await manageBuckets('POST', '', '{"name":"existing"}')
  },
  'bucket-not-empty': async () => {
    const { authorization } = await makeToken(server, '--bucket', 'with-items')
    await server.request('/api/media', { method: 'POST', body: 'x', headers: { authorization } })
    return await manageBuckets('DELETE', '/with-items')
  },
  'issuer-unavailable': 'needs an issuer: issuer-users.test.ts',
  'scope-missing': async () => list((await withToken('--scope', 'media:write')).authorization),
  'managed-token-unknown': async () => manageTokens('DELETE', 'x'),
  'managed-token-inactive': async () => {
    const { id } = await withToken('--expires', '1ms')
    return await manageTokens('POST', `${id}/rotate`, '{"expires_at":null}')
  },
  'key-unknown': async () => {
    const { authorization } = await withServiceToken()
    return server.request('/api/keys/none', { method: 'DELETE', headers: { authorization } })
  },
  'webhook-unknown': async () => manageWebhooks('GET', '/x'),
  'webhook-delivery-unknown': async () => {
    const created = await manageWebhooks('POST', '', '{"url":"https://example.org"}')
    const { id } = readWebhook(await created.json())
    return await manageWebhooks('POST', `/${id}/deliveries/1/redeliver`)
  },
  'webhooks-too-many': async () => {
    for (let count = 0; count < 10; count += 1)
      await manageWebhooks('POST', '', '{"url":"https://example.org"}')
    return await manageWebhooks('POST', '', '{"url":"https://example.org"}')
  },
  'webhook-deliveries-too-many': 'test/http/webhooks.test.ts has a receiver that does not respond',
  'signature-invalid': () => fetch(`${server.url}/media/x?signature=x`),
  'link-expired': async () => {
    const { id } = await upload(server, 'x')
    const headers = { 'content-type': 'application/json' }
    const body = '{"expires_in":1}'
    const link = await server.request(`/api/media/${id}/links`, { method: 'POST', headers, body })
    const { url } = await readLink(link)
    return await until('the expiry', async () => {
      const response = await fetch(url)
      return response.status === 403 && response
    })
  },
  'destination-refused': () => fetch(`${server.url}/media/x`, { headers: { 'sec-fetch-dest': 'script' } }),
  'origin-refused': 'needs MEDIABUCKET_MCP: test/http/mcp.test.ts',
  'route-unknown': () => fetch(`${server.url}/nowhere`),
  'media-unknown': () => fetch(`${server.url}/media/x`),
  'method-not-allowed': () => fetch(`${server.url}/healthz`, { method: 'PUT' }),
  'request-timeout': () => raw('GET /healthz HTTP/1.1\r\n'),
  'precondition-failed': async () =>
    fetch((await upload(server, 'x')).url, { headers: { 'if-match': '"x"' } }),
  'file-too-large': () => post('x'.repeat(1001)),
  'parts-too-many': () => form(`${part('; filename="f"').repeat(1001)}--b--\r\n`),
  'body-too-large': () => server.request('/api/media/x', { method: 'DELETE', body: 'x'.repeat(100_000) }),
  'content-coding-unsupported': () => post('x', { 'content-encoding': 'gzip' }),
  'range-unsatisfiable': async () =>
    fetch((await upload(server, 'x')).url, { headers: { range: 'bytes=5-' } }),
  'variant-unknown': () => fetch(`${server.url}/media/x?variant=x`),
  'variant-unavailable': async () => fetch(`${(await upload(server, 'x')).url}?variant=thumb`),
  'variants-busy': 'needs pictures that take long: test/http/variants-bounds.test.ts',
  'rate-limited': 'needs a server with a low limit: test/http/rate-limits.test.ts',
  'streams-too-many':
    'needs streams that stay open: test/http/items-stream.test.ts, test/http/changes.test.ts',
  'headers-too-large': () => raw(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
  'form-malformed': () => form('junk'),
  'form-without-file': () => form(`${part('')}--b--\r\n`),
  'upload-incomplete': () => form(part('; filename="f"')),
  'filename-malformed': () => post('x', { 'content-disposition': 'attachment; filename="' }),
  'bytes-missing': async () => {
    const { id, url } = await upload(server, 'x')
    await rm(blobPath(server, id))
    return await fetch(url)
  },
  internal: uploadWithoutDirectory,
  'method-unsupported': () => raw('PLAY rtsp://x/ RTSP/1.0\r\nHost: x\r\n\r\n'),
  'transfer-coding-unsupported': () =>
    raw('POST /api/media HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'),
  'http-version-unsupported': () => raw('GET / HTTP/2.0\r\nHost: x\r\n\r\n'),
  'connections-too-many': 'needs a server with a low limit; see test/http/connection-limits.test.ts',
  'read-only': 'see test/operations/reload.test.ts',
  'shutting-down': 'see test/operations/shutdown.test.ts',
  'not-ready': 'see test/operations/health.test.ts, full-disk.test.ts and unmounted.test.ts',
  'catalog-busy':
    'takes ten seconds of a held catalog; see packages/server/test/storage/catalog/sqlite.test.ts',
  'catalog-unavailable': 'see test/postgres/outage.test.ts',
  'storage-full': 'needs a full disk; see packages/server/test/storage/blobs/failing-disk.test.ts',
  'storage-unavailable': 'see test/operations/unmounted.test.ts',
  overloaded: 'test/operations/shortages.test.ts lowers the limit of open files',
}

for (const [code, provoke] of Object.entries(provocations)) {
  if (typeof provoke === 'string') continue
  const { status, title } = problemKinds[code as FaultCode]
  test(`P1, P2, P5 ${code} has the status ${status}, and a type that links to its page`, async () => {
    const problem = await expectProblem(await provoke(), status, code)
    expect(Object.keys(problem).slice(0, 6)).toEqual([
      'type',
      'title',
      'status',
      'detail',
      'instance',
      'code',
    ])
    expect(problem.title).toBe(title)
    expect(problem.detail).not.toBe('')
    expect(problem.instance).toMatch(/^[0-9a-f]{32}$/)
    expect(problem.type).toBe(`${server.url}/problems/${code}`)
    const page = await (await fetch(problem.type)).text()
    expect(page).toContain(title)
    const logged = () => server.log().some(({ requestId }) => requestId === problem.instance)
    await until('it is logged under its instance', logged)
  })
}

test('P2 every code has a page with its cause and remedy', async () => {
  for (const [code, { status, title, cause, cure }] of Object.entries(problemKinds)) {
    const response = await fetch(`${server.url}/problems/${code}`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    const text = await response.text()
    for (const shown of [code, String(status), title, cause, cure]) expect(text).toContain(shown)
  }
})

test.each(['unknown', 'constructor', '__proto__', 'Internal', ''])(
  'P2, P4 a request for the page of the unknown code "%s" gets a 404 problem',
  async (code) => {
    await expectProblem(await fetch(`${server.url}/problems/${code}`), 404, 'route-unknown')
  },
)

test('P3 the response to an unexpected error has no details; the log has all of them', async () => {
  const response = await uploadWithoutDirectory()
  const { instance, detail, errors } = await expectProblem(response, 500, 'internal')
  expect([detail, errors]).toEqual(['The service met an unexpected error and has logged it.', undefined])
  const line = await until('it is logged', () =>
    server.log().find(({ requestId, level }) => requestId === instance && level === 50),
  )
  expect(line['err']).toMatchObject({ stack: expect.stringMatching(/\.[jt]s:/) })
  expect((await post('x')).status).toBe(201)
})

test('P1 an error response to HEAD has the headers of the problem and no body', async () => {
  const response = await server.request('/api/media?page=x', { method: 'HEAD' })
  expect([response.status, await response.text()]).toEqual([400, ''])
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(response.headers.get('cache-control')).toBe('no-store')
})
