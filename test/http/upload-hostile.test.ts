import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { flood } from '../harness/flood.ts'
import { fieldPart, formBytes, formType } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf } from '../harness/raw-http.ts'
import { countStored, forgetPeak, memory } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { readItem } from '../harness/wire.ts'

const megabyte = 1_000_000
const limit = 150 * megabyte
let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: `${limit}` })
})
afterAll(() => server[Symbol.asyncDispose]())

let before = 0
/** The bytes that the test sends. */
let bodySize = limit
beforeEach(async () => {
  await forgetPeak(server)
  before = (await memory(server)).now
})
afterEach(async () => {
  const { peak } = await memory(server)
  expect(peak - before).toBeLessThan((bodySize * 2) / 3)
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
  expect((await countStored(server)).temporary).toBe(0)
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
function* repeat(bytes: Uint8Array, total: number) {
  for (let sent = 0; sent < total; sent += bytes.length) yield bytes.subarray(0, total - sent)
}

test('U1, U3 a random file of 30 MB is returned byte for byte', async () => {
  const bytes = randomBytes(30 * megabyte)
  const item = await readItem(await server.request('/api/media', { method: 'POST', body: bytes }))
  expect(item).toMatchObject({ size: bytes.length, sha256: sha256(bytes) })
  expect(sha256(new Uint8Array(await (await fetch(item.url)).arrayBuffer()))).toBe(item.sha256)
})

test('U6, U12 a file larger than the available memory is streamed', async () => {
  const body = Readable.toWeb(Readable.from(repeat(Buffer.alloc(megabyte), limit)))
  const response = await server.request('/api/media', { method: 'POST', body, duplex: 'half' })
  expect((await readItem(response)).size).toBe(limit)
})

test.each([
  ['field', formBytes(fieldPart('a', '')).subarray(0, -20)],
  ['preamble', Buffer.alloc(0)],
  ['epilogue', formBytes(fieldPart('a', 'x'))],
])('U1, U10 a %s of 150 MB is not kept in memory', async (_, start) => {
  const bytes = [start, ...repeat(Buffer.alloc(megabyte), limit)]
  const response = await server.request('/api/media', {
    method: 'POST',
    body: Readable.toWeb(Readable.from(bytes)),
    duplex: 'half',
    headers: { 'content-type': formType },
  })
  expect(response.status).toBe(400)
})

const head = (line: string, options: { method?: string; path?: string; token?: string } = {}) => {
  const { method = 'POST', path = '/api/media', token = server.token } = options
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${line}\r\n\r\n`
}
const length = 'Content-Length: 9000000000'
const chunked = 'Transfer-Encoding: chunked'
const closing = 'Connection: close'
const json = 'Content-Type: application/json'
const stranger = { token: 'x' }
const one = { method: 'DELETE', path: '/api/media/x' }

describe('a client that continues to send after a refusal can read the response', () => {
  beforeAll(() => {
    // Somewhat more than the limit of a file.
    bodySize = limit + 10 * megabyte
  })
  test.each([
    ['A2 a stranger', 401, 'token-malformed', () => head(length, stranger)],
    ['A2 a stranger, closing', 401, 'token-malformed', () => head(`${length}\r\n${closing}`, stranger)],
    ['A2 a stranger, chunked', 401, 'token-malformed', () => head(chunked, stranger)],
    [
      'A2 without a token, chunked, closing',
      401,
      'token-malformed',
      () => head(`${chunked}\r\n${closing}`, stranger),
    ],
    ['U6 a file too long', 413, 'file-too-large', () => head(length)],
    ['U6 a file too long, closing', 413, 'file-too-large', () => head(`${length}\r\n${closing}`)],
    ['U6 a file too long, chunked', 413, 'file-too-large', () => head(chunked)],
    ['U6 a file too long, chunked, closing', 413, 'file-too-large', () => head(`${chunked}\r\n${closing}`)],
    ['U9 gzip', 415, 'content-coding-unsupported', () => head(`${chunked}\r\nContent-Encoding: gzip`)],
    [
      'U10 a form without boundary',
      400,
      'form-malformed',
      () => head(`${length}\r\nContent-Type: multipart/form-data`),
    ],
    [
      'U11 without waiting for 100 Continue',
      413,
      'file-too-large',
      () => head(`${length}\r\nExpect: 100-continue`),
    ],
    ['P1 JSON to a DELETE', 413, 'body-too-large', () => head(`${length}\r\n${json}`, one)],
    ['P1 JSON to a DELETE, chunked', 413, 'body-too-large', () => head(`${chunked}\r\n${json}`, one)],
    [
      'N5 JSON to a GET',
      413,
      'body-too-large',
      () => head(`${length}\r\n${json}`, { ...one, method: 'GET' }),
    ],
    ['P4 JSON to nowhere', 404, 'route-unknown', () => head(`${length}\r\n${json}`, { path: '/nowhere' })],
    [
      'P4 JSON by another method',
      405,
      'method-not-allowed',
      () => head(`${length}\r\n${json}`, { method: 'PUT' }),
    ],
  ])('%s', async (_, status, code, lines) => {
    const response = await flood(server.url, lines(), { total: bodySize, chunked: lines().includes(chunked) })
    await expectProblem(responseOf(response), status, code)
  })
})
