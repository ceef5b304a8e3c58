import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import {
  ConnectionError,
  createClient,
  TimeoutError,
  type UploadSource,
} from '../../packages/client/src/index.ts'
import { caught } from './buckets.ts'
import { foreignPage, listen, sendJson, startForeign } from './foreign-service.ts'

const token = 'foreign-token'
const retry = { delay: 1 }
const dialect = { base: 'https://h.example', path: '/api/media', wrapped: false, linkPages: false }
const page = foreignPage([], 1, dialect)
const media = {
  id: 'abc',
  url: 'https://h.example/media/abc',
  filename: 'a.bin',
  content_type: 'application/octet-stream',
  size: 5,
  sha256: '00',
  created_at: '2026-11-21T10:00:00.000Z',
  width: null,
  height: null,
}

test('a request to a failing service is repeated after the time in Retry-After', async () => {
  await using service = await startForeign((_request, response, turn) => {
    if (turn === 0) response.writeHead(503, { 'retry-after': '0' }).end()
    else if (turn === 1)
      response.writeHead(429, { 'retry-after': new Date(0).toUTCString() }).end('slow down')
    else sendJson(response, page)
  })
  const client = createClient({ url: service.url, token, retry })
  expect(await client.listPage(1)).toEqual(page)
  expect(service.requests).toHaveLength(3)
})

test('a request whose connection is reset is repeated', async () => {
  let turn = 0
  await using service = await listen((request, response) => {
    turn += 1
    if (turn === 1) request.socket.destroy()
    else if (turn === 2) {
      response
        .writeHead(200, { 'content-length': '1000' })
        .write('{"current_page":', () => request.socket.destroy())
    } else sendJson(response, page)
  })
  const client = createClient({ url: service.url, token, retry })
  expect(await client.listPage(1)).toEqual(page)
  expect(turn).toBe(3)
})

test('a refused connection is a ConnectionError', async () => {
  const service = await startForeign(() => {})
  await service[Symbol.asyncDispose]()
  const client = createClient({ url: service.url, token, retry: { attempts: 2, delay: 1 } })
  expect(await caught(client.listPage(1))).toBeInstanceOf(ConnectionError)
})

test('a service that does not respond causes a TimeoutError, and its connections are closed', async () => {
  const closed: Promise<unknown>[] = []
  await using service = await listen((request) => {
    closed.push(once(request.socket, 'close'))
  })
  // On a busy machine, a request with a shorter timeout ends before the service receives it.
  const client = createClient({ url: service.url, token, retry: { attempts: 2, delay: 1 }, timeout: 2_000 })
  expect(await caught(client.listPage(1))).toBeInstanceOf(TimeoutError)
  expect(closed).toHaveLength(2)
  await Promise.all(closed)
})

test('a service that stalls during a download causes a TimeoutError', async () => {
  await using service = await listen((_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half')
  })
  const client = createClient({ url: service.url, token, timeout: 1_000 })
  expect(await caught((await client.get('abc')).text())).toBeInstanceOf(TimeoutError)
})

test('a truncated download is an error, not a shorter file', async () => {
  await using service = await listen((_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half', () => response.destroy())
  })
  const client = createClient({ url: service.url, token })
  expect(await caught((await client.get('abc')).text())).toBeInstanceOf(ConnectionError)
})

test('an upload is repeated with the same key and the same bytes', async () => {
  await using service = await startForeign((_request, response, turn) => {
    if (turn === 0) response.writeHead(503).end()
    else if (turn === 1) response.destroy()
    else sendJson(response, media, 201)
  })
  const client = createClient({ url: service.url, token, retry })
  const file = new File(['bytes'], 'a.bin', { type: 'application/x-thing' })
  expect(await client.upload(file)).toEqual(media)
  expect(service.requests).toHaveLength(3)
  expect(
    new Set(service.requests.map(({ headers, body }) => `${headers['idempotency-key']} ${body}`)).size,
  ).toBe(1)
  expect(service.requests[0]).toMatchObject({
    method: 'POST',
    path: '/api/media',
    body: 'bytes',
    headers: {
      'content-type': 'application/x-thing',
      'content-length': '5',
      'content-disposition': 'attachment; filename="a.bin"',
      'idempotency-key': expect.stringMatching(/^[0-9a-f]{32}$/),
    },
  })
})

test('a stream is sent once, in chunks and without a key', async () => {
  await using service = await startForeign((_request, response) => response.writeHead(503).end())
  const client = createClient({ url: service.url, token, retry })
  expect(await caught(client.upload(new Blob(['bytes']).stream()))).toMatchObject({
    status: 503,
    attempts: 1,
  })
  expect(service.requests).toHaveLength(1)
  expect(service.requests[0]?.headers['idempotency-key']).toBeUndefined()
  expect(service.requests[0]?.headers['transfer-encoding']).toBe('chunked')
})

/** An endless source, and whether it was cancelled. */
function endless() {
  let released: (() => void) | undefined
  const done = new Promise<void>((resolve) => {
    released = resolve
  })
  async function* chunks() {
    try {
      for (;;) {
        await setImmediate()
        yield new Uint8Array(65_536)
      }
    } finally {
      released?.()
    }
  }
  return { chunks, done }
}

test.each<[string, (chunks: () => AsyncGenerator<Uint8Array<ArrayBuffer>>) => UploadSource]>([
  ['a stream', (chunks) => chunks()],
  ['a file', (chunks) => Object.assign(new Blob([]), { stream: () => ReadableStream.from(chunks()) })],
])('an upload of %s that is refused before its end is stopped', async (_name, sourceOf) => {
  const { chunks, done } = endless()
  await using service = await listen((request, response) => {
    // Continues to read the body, so that the client can read the response.
    request.resume()
    sendJson(response, { message: 'too large' }, 413)
  })
  const client = createClient({ url: service.url, token, retry })
  const source = sourceOf(chunks)
  if (source instanceof Blob) Object.defineProperty(source, 'size', { value: 2 ** 40 })
  const inOneRequest = { piecesAbove: Number.POSITIVE_INFINITY }
  expect(await caught(client.upload(source, inOneRequest))).toMatchObject({ status: 413 })
  await done
})

test('an abort ends a stalled call with the given reason', async () => {
  const aborter = new AbortController()
  await using service = await listen(() => aborter.abort('enough'))
  const client = createClient({ url: service.url, token, retry })
  expect(await caught(client.listPage(1, { signal: aborter.signal }))).toBe('enough')
})

test('an abort ends the reading of an error response', async () => {
  const aborter = new AbortController()
  await using service = await listen((_request, response) => {
    response.writeHead(400, { 'content-length': '100' }).write('half', () => aborter.abort('enough'))
  })
  const client = createClient({ url: service.url, token, retry })
  expect(await caught(client.listPage(1, { signal: aborter.signal }))).toBe('enough')
})

test('an error response with a truncated body is reported with its status', async () => {
  await using service = await listen((_request, response) => {
    response.writeHead(403, { 'content-length': '100' }).write('half', () => response.destroy())
  })
  const client = createClient({ url: service.url, token, retry })
  expect(await caught(client.listPage(1))).toMatchObject({ name: 'AnswerError', status: 403 })
})

test('an abort ends an iteration between two pages', async () => {
  const aborter = new AbortController()
  await using service = await startForeign((_request, response) => {
    sendJson(response, foreignPage(Array(30).fill('https://h.example/media/x'), 1, dialect))
  })
  const client = createClient({ url: service.url, token, retry })
  const pages = client.pages({ signal: aborter.signal })
  await pages.next()
  aborter.abort('enough')
  expect(await caught(pages.next())).toBe('enough')
  expect(service.requests).toHaveLength(1)
})

test('an abort ends a download', async () => {
  const aborter = new AbortController()
  await using service = await listen((_request, response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half')
  })
  const client = createClient({ url: service.url, token, retry })
  const reader = (await client.get('abc', { signal: aborter.signal })).body?.getReader()
  await reader?.read()
  aborter.abort('enough')
  expect(await caught(Promise.resolve(reader?.read()))).toBe('enough')
})

test('only the start of a very large error body is kept', async () => {
  await using service = await listen((_request, response) => {
    response.writeHead(400, { 'content-type': 'text/plain' })
    const pour = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    }
    response.on('drain', pour)
    pour()
  })
  const client = createClient({ url: service.url, token, retry })
  expect(await caught(client.listPage(1))).toMatchObject({ status: 400, body: 'x'.repeat(65_536) })
})
