import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { listen } from '../client/foreign-service.ts'
import { bucketWith } from '../harness/bucket.ts'
import { openConnection } from '../harness/connection.ts'
import { quarters } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import { countStored } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { parseItem, parseProblem, readCreatedToken, readItem } from '../harness/wire.ts'

const allowed = { MEDIABUCKET_URL_UPLOADS: 'public, 127.0.0.1' }

let server: TestServer
beforeAll(async () => {
  server = await startServer({ ...allowed, MEDIABUCKET_WORKERS: '2', MEDIABUCKET_MAX_FILE_SIZE: '5MB' })
})
afterAll(() => server[Symbol.asyncDispose]())

const sendTo = (
  { request }: Pick<TestServer, 'request'>,
  body: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
) =>
  request('/api/media/from-url', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  })

const send = (body: unknown, headers?: Record<string, string>, signal?: AbortSignal) =>
  sendTo(server, body, headers, signal)

/** Another server, which responds so. */
async function source(respond: (response: ServerResponse, path: string) => void) {
  const other = await listen((request, response) => respond(response, request.url ?? ''))
  onTestFinished(() => other[Symbol.asyncDispose]())
  return other
}

/** The events of a response. */
const eventsOf = (text: string) =>
  text
    .split('\n\n')
    .filter((block) => block !== '' && block !== ':')
    .map((block) => {
      const [, event = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? []
      return { event, data }
    })

/** A server whose response waits after its first bytes. */
async function pausedSource(bytes: number, length = bytes * 2) {
  const responses: ServerResponse[] = []
  let closed = 0
  const { url } = await source((response) => {
    responses.push(response)
    response.once('close', () => {
      closed += 1
    })
    response.writeHead(200, { 'content-length': length })
    response.write(Buffer.alloc(bytes, 'x'))
  })
  return { url, responses, closed: () => closed }
}

test('FU1, FU2 a file is stored from a URL as if its bytes had been uploaded', async () => {
  const picture = await quarters(90, 60).png().toBuffer()
  const other = await source((response, path) => {
    if (path === '/old') response.writeHead(301, { location: '/pictures/b%C3%A4r.png?size=1' }).end()
    else response.writeHead(200, { 'content-type': 'text/html' }).end(picture)
  })
  const response = await send({ url: `${other.url}/old` })
  expect([response.status, response.headers.get('cache-control')]).toEqual([201, 'private, no-cache'])
  const item = await readItem(response)
  expect(response.headers.get('location')).toBe(`${server.url}/api/media/${item.id}`)
  expect(item).toMatchObject({
    filename: 'bär.png',
    content_type: 'image/png',
    size: picture.length,
    sha256: createHash('sha256').update(picture).digest('hex'),
    ...{ width: 90, height: 60 },
  })
  expect(Buffer.from(await (await fetch(item.url)).arrayBuffer()).equals(picture)).toBe(true)
})

test.each([
  ['mediabucket-labels', 'album="42"'],
  ['mediabucket-focus', '0.3,0.5'],
  ['mediabucket-expires-at', '2090-01-01T00:00:00Z'],
])('U14, FU2 the header %s, which states nothing of a file from a URL, is refused', async (header, value) => {
  const other = await source((response) => response.end('x'))
  await expectProblem(await send({ url: other.url }, { [header]: value }), 400, 'request-malformed')
})

test('FU2 the request states name, type, labels, focus, expiry and checksum', async () => {
  const other = await source((response) => response.end('{"a": 1}'))
  const sha256 = createHash('sha256').update('{"a": 1}').digest('hex')
  const named = {
    filename: 'album/data.json',
    content_type: 'application/json',
    labels: { album: '42' },
    focus: { x: 0.25, y: 1 },
    expires_at: '2100-01-01T00:00:00Z',
  }
  const item = await readItem(await send({ url: other.url, ...named, sha256: sha256.toUpperCase() }))
  expect(item).toMatchObject({
    ...{ filename: 'data.json', path: 'album/data.json', content_type: 'application/json' },
    ...{ labels: { album: '42' }, focus: { x: 0.25, y: 1 }, expires_at: '2100-01-01T00:00:00.000Z', sha256 },
  })
  const before = await countStored(server)
  await expectProblem(await send({ url: other.url, sha256: '0'.repeat(64) }), 422, 'digest-mismatch')
  expect(await countStored(server)).toEqual(before)
})

test('FU1 members that are wrong get a 400 that names them, before any request', async () => {
  for (const url of [
    undefined,
    1,
    '',
    'x',
    'ftp://example.org/a',
    'file:///etc/passwd',
    'http://a:b@example.org/',
    `http://example.org/${'x'.repeat(2_048)}`,
  ]) {
    const problem = await expectProblem(await send({ url }), 400, 'json-malformed')
    expect(problem.errors).toMatchObject([{ parameter: 'url', maximum: 2_048, unit: 'characters' }])
  }
  const wrong = {
    filename: 1,
    content_type: 'x\r\ny',
    labels: { A: 1 },
    focus: { x: 2, y: 0 },
    expires_at: '2001-01-01T00:00:00Z',
    sha256: 'x',
  }
  const problem = await expectProblem(
    await send({ url: 'http://example.org/', ...wrong }),
    400,
    'json-malformed',
  )
  expect(problem.errors?.map(({ parameter }) => parameter)).toEqual(Object.keys(wrong))
  await expectProblem(await send({ url: 'http://example.org/', more: 1 }), 400, 'json-malformed')
  const { authorization } = await makeToken(server, '--bucket', 'default', '--scope', 'media:read')
  await expectProblem(await send({ url: 'http://example.org/' }, { authorization }), 403, 'scope-missing')
})

test('FU3 private addresses get a 422, and uploads from a URL are off by default', async () => {
  for (const url of [
    'http://127.0.0.2/',
    'http://[::1]/',
    'http://169.254.169.254/latest/meta-data/',
    'http://2852039166/',
    'http://0xa.1/',
  ])
    await expectProblem(await send({ url }), 422, 'source-refused')
  const redirecting = await source((response) =>
    response.writeHead(302, { location: 'http://10.0.0.1/' }).end(),
  )
  await expectProblem(await send({ url: redirecting.url }), 422, 'source-refused')
  await using closed = await startServer()
  await expectProblem(await sendTo(closed, { url: redirecting.url }), 403, 'url-uploads-off')
  expect(redirecting.requests).toEqual([])
})

test('FU1, BK7 a bucket without uploads from URLs refuses them at once, and the metrics count the others by outcome', async () => {
  await using own = await startServer({ ...allowed, MEDIABUCKET_WORKERS: '2' })
  const other = await source((response, path) =>
    path === '/gone' ? response.writeHead(404).end() : response.end('text'),
  )
  const counts = async () => {
    const text = await (await fetch(`${own.url}/metrics`)).text()
    const lines = text.matchAll(/^mediabucket_url_uploads_total\{outcome="([\w-]+)"\} (\d+)$/gm)
    return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]))
  }
  const none = {
    ...{ stored: 0, refused: 0, ended: 0, failed: 0 },
    ...{ 'source-refused': 0, 'source-failed': 0, 'source-timeout': 0 },
  }
  expect(await counts()).toEqual(none)
  expect((await sendTo(own, { url: other.url })).status).toBe(201)
  const bucket = async () => Object(await (await own.request('/api/bucket')).json())
  expect((await bucket()).url_uploads).toBe(true)

  await own.command('bucket', 'set', 'default', '--url-uploads', 'off')
  expect((await bucket()).url_uploads).toBe(false)
  const asked = other.requests.length
  await expectProblem(await sendTo(own, { url: other.url }), 403, 'url-uploads-off')
  expect(other.requests).toHaveLength(asked)
  expect((await own.request('/api/media', { method: 'POST', body: 'bytes' })).status).toBe(201)
  const manager = await makeToken(own, '--service', '--scope', 'buckets:manage')
  const patched = await own.request('/api/buckets/default', {
    method: 'PATCH',
    headers: { authorization: manager.authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ url_uploads: true }),
  })
  expect(Object(await patched.json()).url_uploads).toBe(true)

  await expectProblem(await sendTo(own, { url: `${other.url}/gone` }), 424, 'source-failed')
  await expectProblem(await sendTo(own, { url: 'http://10.0.0.1/' }), 422, 'source-refused')
  await expectProblem(await sendTo(own, { url: other.url, sha256: '0'.repeat(64) }), 422, 'digest-mismatch')
  await expect
    .poll(counts)
    .toEqual({ ...none, stored: 1, 'source-failed': 1, 'source-refused': 1, refused: 1 })
})

test('FU5 what the other server responds is in the problem, without its body', async () => {
  const other = await source((response) =>
    response.writeHead(404, { 'content-type': 'text/html' }).end('a secret'),
  )
  const before = await countStored(server)
  const problem = await expectProblem(await send({ url: other.url }), 424, 'source-failed')
  expect(problem).toMatchObject({ source_status: 404, detail: 'The server of the URL responded with 404.' })
  const broken = await source((response) => {
    response.writeHead(200, { 'content-length': 400_000 })
    response.write(Buffer.alloc(200_000), () => response.destroy())
  })
  await expectProblem(await send({ url: broken.url }), 424, 'source-failed')
  expect(await countStored(server)).toEqual(before)
})

test('FU5 sizes are limited as for bytes: by the declared length at once, and while bytes arrive', async () => {
  const before = await countStored(server)
  let sent = 0
  const endless = await source((response, path) => {
    if (path === '/declared') response.writeHead(200, { 'content-length': 10_000_000_000 })
    const chunk = Buffer.alloc(65_536)
    const more = (error?: Error | null) => {
      if (error || response.destroyed) return
      sent += chunk.length
      response.write(chunk, more)
    }
    if (path === '/declared') response.flushHeaders()
    else more()
  })
  await expectProblem(await send({ url: `${endless.url}/declared` }), 413, 'file-too-large')
  await expectProblem(await send({ url: `${endless.url}/endless` }), 413, 'file-too-large')
  expect(sent).toBeLessThan(30_000_000)
  const { authorization } = await bucketWith(server, '--max-bytes', '1MB')
  await expectProblem(
    await send({ url: `${endless.url}/declared` }, { authorization }),
    413,
    'file-too-large',
  )
  await expectProblem(await send({ url: `${endless.url}/endless` }, { authorization }), 507, 'quota-exceeded')
  const megabytes = await source((response) =>
    response.writeHead(200, { 'content-length': 2_000_000 }).flushHeaders(),
  )
  await expectProblem(await send({ url: megabytes.url }, { authorization }), 507, 'quota-exceeded')
  await until('nothing is left', async () => (await countStored(server)).temporary === 0)
  expect(await countStored(server)).toEqual(before)
})

test('FU5, T10 the limits of a token apply: size, types, number', async () => {
  const manager = await makeToken(
    server,
    '--bucket',
    uniqueName('limited'),
    '--scope',
    'tokens:manage',
    '--scope',
    'media:write',
  )
  const created = await server.request('/api/tokens', {
    method: 'POST',
    headers: { authorization: manager.authorization, 'content-type': 'application/json' },
    body: JSON.stringify({
      scopes: ['media:write'],
      limits: { max_items: 1, max_file_size: 1_000, types: ['image/*'] },
    }),
  })
  const authorization = `Bearer ${readCreatedToken(await created.json()).token}`
  const picture = await quarters(20, 20).png().toBuffer()
  const other = await source((response, path) =>
    response.end(path === '/text' ? 'text' : path === '/long' ? 'x'.repeat(2_000) : picture),
  )
  await expectProblem(await send({ url: `${other.url}/text` }, { authorization }), 415, 'type-refused')
  await expectProblem(await send({ url: `${other.url}/long` }, { authorization }), 413, 'file-too-large')
  expect((await send({ url: other.url }, { authorization })).status).toBe(201)
  await expectProblem(await send({ url: other.url }, { authorization }), 507, 'token-limit-exceeded')
})

test('FU6 a repetition with the same key returns the same item, also if the file has changed or is gone', async () => {
  let content: string | null = 'first'
  let requests = 0
  const other = await source((response) => {
    requests += 1
    if (content === null) response.writeHead(410).end()
    else response.end(content)
  })
  const key = { 'idempotency-key': randomUUID() }
  content = null
  await expectProblem(await send({ url: other.url }, key), 424, 'source-failed')
  content = 'first'
  const item = await readItem(await send({ url: other.url }, key))
  for (const later of ['second', null]) {
    content = later
    const again = await send({ url: other.url }, key)
    expect([again.status, await readItem(again)]).toEqual([201, item])
  }
  expect(requests).toBe(2)
  await expectProblem(await send({ url: `${other.url}/other` }, key), 422, 'idempotency-key-reused')
  const media = await server.request('/api/media', { method: 'POST', body: 'first', headers: key })
  await expectProblem(media, 422, 'idempotency-key-reused')
})

test('FU6 ten requests at once with one key store one item', async () => {
  const other = await source((response) => response.end(randomBytes(100_000)))
  const before = await countStored(server)
  const key = { 'idempotency-key': randomUUID() }
  const items = await Promise.all(
    Array.from({ length: 10 }, async () => {
      for (;;) {
        const response = await send({ url: other.url }, key)
        if (response.status !== 429) return readItem(response)
        await response.text()
      }
    }),
  )
  expect(new Set(items.map(({ id }) => id)).size).toBe(1)
  const after = await countStored(server)
  expect([after.total - before.total, after.blobs - before.blobs, after.temporary]).toEqual([1, 1, 0])
})

test('FU7 a token has four uploads from URLs at once', async () => {
  const { authorization } = await makeToken(server, '--bucket', uniqueName('bucket'))
  const { url, responses } = await pausedSource(10)
  const running = Array.from({ length: 4 }, () => send({ url }, { authorization }))
  await until('four requests', () => responses.length === 4)
  // The count of another process arrives some hundredths of a second later.
  const refused = await until('a refusal by either process', async () => {
    const gone = new AbortController()
    const response = await Promise.race([
      send({ url }, { authorization }, gone.signal),
      until('a further request', () => responses.length > 4).then(() => null),
    ]).catch(() => null)
    if (response !== null) return response
    gone.abort()
    await until('its end', () => responses.at(-1)?.closed)
    responses.pop()
    return null
  })
  expect(refused.headers.get('retry-after')).not.toBeNull()
  expect(await expectProblem(refused, 429, 'url-uploads-too-many')).toMatchObject({ maximum: 4 })
  const another = await source((response) => response.end('x'))
  expect((await send({ url: another.url })).status).toBe(201)
  for (const response of responses) response.end(Buffer.alloc(10))
  for (const one of running) expect((await one).status).toBe(201)
})

test('FU5 a client that closes its connection ends the request to the other server, and nothing is stored', async () => {
  const before = await countStored(server)
  const { url, closed } = await pausedSource(200_000)
  const connection = await openConnection(server.url)
  const body = JSON.stringify({ url })
  connection.send(
    `POST /api/media/from-url HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  await until('a temporary file', async () => (await countStored(server)).temporary === 1)
  connection[Symbol.dispose]()
  await until('the end of the other request', () => closed() === 1)
  await until('nothing is left', async () => (await countStored(server)).temporary === 0)
  expect(await countStored(server)).toEqual(before)
})

test('FU4 progress is sent as events, and the last one is the item or a problem', async () => {
  const events = { accept: 'text/event-stream' }
  const { url, responses } = await pausedSource(200_000)
  const response = await send({ url }, events)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  responses[0]?.end(Buffer.alloc(200_000))
  const received = eventsOf(await response.text())
  expect(received[0]).toEqual({ event: 'progress', data: '{"received":0,"size":400000}' })
  expect(received.at(-1)?.event).toBe('stored')
  expect(parseItem(received.at(-1)?.data ?? '')).toMatchObject({ size: 400_000 })
  const broken = await pausedSource(10)
  const ended = await send({ url: broken.url }, events)
  broken.responses[0]?.destroy()
  const last = eventsOf(await ended.text()).at(-1)
  expect([last?.event, parseProblem(last?.data ?? '{}').code]).toEqual(['problem', 'source-failed'])
  // What is refused before the other server has responded is a problem as of any request.
  await expectProblem(await send({ url: 'http://10.0.0.1/' }, events), 422, 'source-refused')
})

test('FU4, S2 a stop ends an upload from a URL with nothing stored, and a kill leaves nothing', async () => {
  const { url, responses } = await pausedSource(200_000)
  const stopped = await startServer(allowed)
  const response = sendTo(stopped, { url })
  await until('a temporary file', async () => (await countStored(stopped)).temporary === 1)
  const stopping = stopped.stop()
  await expectProblem(await response, 503, 'shutting-down')
  expect(await stopping).toBe(0)
  await using again = await startServer(allowed, stopped.data)
  const withToken = { ...again, request: withTokenOf(again, stopped.token) }
  expect(await countStored(withToken)).toEqual({ total: 0, blobs: 0, temporary: 0 })
  const killed = sendTo(withToken, { url }).catch(() => null)
  await until('a temporary file', async () => (await countStored(withToken)).temporary === 1)
  await again.kill()
  expect(await killed).toBeNull()
  await using last = await startServer(allowed, stopped.data)
  expect(await countStored({ ...last, request: withTokenOf(last, stopped.token) })).toEqual({
    ...{ total: 0, blobs: 0, temporary: 0 },
  })
  expect(responses).toHaveLength(2)
})

const withTokenOf =
  ({ url }: TestServer, token: string): TestServer['request'] =>
  (path, init = {}) =>
    fetch(url + path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } })
