import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { random, testSeed } from '../harness/random.ts'
import { parseResponse, responseOf, sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_IDLE_TIMEOUT: '4s' })
})
afterAll(() => server[Symbol.asyncDispose]())

/** Warnings and errors, except for hints about refused origins. */
const failures = () => server.log().filter(({ level, origin }) => Number(level) >= 40 && origin === undefined)

const head = (line: string, ...headers: string[]) => [line, 'Host: x', ...headers, '', ''].join('\r\n')
const withCoding = (coding: string) =>
  `${head('POST /api/media HTTP/1.1', `Transfer-Encoding: ${coding}`)}0\r\n\r\n`
const tlsHello = Buffer.concat([Buffer.from('1603010200010001fc0303', 'hex'), Buffer.alloc(500, 7)])

// Without `Connection: close`: sendRaw waits until the server closes the connection.
test.each<[string, string | Uint8Array, number, string]>([
  ['RTSP: DESCRIBE', 'DESCRIBE rtsp://x/media RTSP/1.0\r\nCSeq: 1\r\n\r\n', 501, 'method-unsupported'],
  ['RTSP: PLAY', head('PLAY rtsp://x/ RTSP/1.0'), 501, 'method-unsupported'],
  ['RTSP: OPTIONS', 'OPTIONS rtsp://x/ RTSP/1.0\r\nCSeq: 1\r\n\r\n', 400, 'request-malformed'],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505, 'http-version-unsupported'],
  ['HTTP/2.0', head('GET /healthz HTTP/2.0'), 505, 'http-version-unsupported'],
  [
    'a listing of HTTP/2.0',
    head('GET /api/media HTTP/2.0', 'Authorization: x'),
    505,
    'http-version-unsupported',
  ],
  ['HTTP/2', head('GET /healthz HTTP/2'), 505, 'http-version-unsupported'],
  ['HTTP/0.9', 'GET /healthz\r\n\r\n', 505, 'http-version-unsupported'],
  ['a TLS client hello', tlsHello, 400, 'request-malformed'],
  ['SSH', 'SSH-2.0-OpenSSH_9.2\r\n', 400, 'request-malformed'],
  ['SOCKS', Uint8Array.of(5, 1, 0), 400, 'request-malformed'],
  [
    'the PROXY protocol',
    `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${head('GET / HTTP/1.1')}`,
    400,
    'request-malformed',
  ],
  ['gzip, chunked', withCoding('gzip, chunked'), 501, 'transfer-coding-unsupported'],
  ['identity', withCoding('identity'), 501, 'transfer-coding-unsupported'],
  ['xchunked', withCoding('xchunked'), 501, 'transfer-coding-unsupported'],
  ['chunked, chunked', withCoding('chunked, chunked'), 400, 'request-malformed'],
  ['chunked twice', withCoding('chunked\r\nTransfer-Encoding: chunked'), 400, 'request-malformed'],
  [
    'chunked in HTTP/1.0',
    `${head('POST /api/media HTTP/1.0', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
    400,
    'request-malformed',
  ],
  ['CONNECT', head('CONNECT x:443 HTTP/1.1'), 501, 'method-unsupported'],
  ['lines that end with LF alone', 'GET /healthz HTTP/1.1\nHost: x\n\n', 400, 'request-malformed'],
  ['* of a GET', head('GET * HTTP/1.1'), 400, 'request-malformed'],
  ['another scheme', head('GET ftp://x/healthz HTTP/1.1'), 400, 'request-malformed'],
  ['101 headers', head('GET /healthz HTTP/1.1', ...Array(100).fill('A: b')), 431, 'headers-too-large'],
])('N4, P1 %s gets a problem, and the connection is closed', async (_, bytes, status, code) => {
  await expectProblem(responseOf(await sendRaw(server.url, bytes)), status, code)
  expect(failures()).toEqual([])
})

test('N4 CONNECT after another request does not change the response to that request', async () => {
  const { body } = await sendRaw(server.url, head('GET /docs HTTP/1.1') + head('CONNECT x:443 HTTP/1.1'))
  expect(body).not.toContain('method-unsupported')
  expect(failures()).toEqual([])
})

test.each([
  ['h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__'],
  ['websocket', 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13'],
])('N4 an Upgrade to %s is ignored, and the connection stays open', async (_, lines) => {
  using connection = await openConnection(server.url)
  const responseCount = () => connection.received().match(/HTTP\/1\.1 2/g)?.length ?? 0
  connection.send(head('GET /healthz HTTP/1.1', lines))
  await until('the first response', () => responseCount() === 1)
  const upload = head(
    'POST /api/media HTTP/1.1',
    lines,
    `Authorization: Bearer ${server.token}`,
    'Content-Length: 2',
  )
  connection.send(`${upload}hi`)
  await until('the second response', () => responseCount() === 2)
  connection.send(head('GET /healthz HTTP/1.1'))
  await until('the third response', () => responseCount() === 3)
})

test('N4 up to 100 headers are accepted', async () => {
  const lines = Array.from({ length: 98 }, (_, index) => `A${index}: b`)
  const { status } = await sendRaw(server.url, head('GET /healthz HTTP/1.1', ...lines, 'Connection: close'))
  expect(status).toBe(200)
})

test('N4, P3 no mutated request gets a 500 or stops the service', async () => {
  const next = random(testSeed())
  const pick = <T>(from: readonly T[]): T => from[next(from.length)] ?? expect.unreachable()
  const authorization = `Authorization: Bearer ${server.token}`
  const whole = [
    head('GET /api/media?page=1 HTTP/1.1', authorization, 'Accept-Encoding: gzip, br'),
    `${head('POST /api/media HTTP/1.1', authorization, 'Content-Length: 5', 'Content-Type: text/plain')}hello`,
    `${head('POST /api/media HTTP/1.1', authorization, 'Transfer-Encoding: chunked')}5\r\nhello\r\n0\r\n\r\n`,
    head('POST /api/uploads HTTP/1.1', authorization, 'Tus-Resumable: 1.0.0', 'Upload-Length: 5'),
    head('OPTIONS rtsp://x/media RTSP/1.0', 'CSeq: 1'),
    head('GET /media/x HTTP/1.1', 'Range: bytes=0-1', 'If-None-Match: "x"', 'Expect: 100-continue'),
    head('DELETE /api/media/x HTTP/1.1', authorization, 'Connection: Upgrade', 'Upgrade: h2c'),
    head('GET /problems/internal HTTP/1.1', 'Accept: text/html', 'Origin: https://x'),
  ]
  const inserted = [
    ...[
      '\0',
      '\r',
      '\n',
      '\r\n',
      '\r\n\r\n',
      ' ',
      '\t',
      ':',
      '%',
      '%00',
      '%zz',
      '..',
      '//',
      '?',
      '#',
      ';',
      '"',
      '\\',
    ],
    ...[
      'HTTP/1.0',
      'HTTP/2.0',
      'RTSP/1.0',
      '\xff',
      '\x80',
      '\x7f',
      '0',
      '-1',
      '9'.repeat(30),
      'chunked',
      'a'.repeat(17_000),
    ],
    ...[
      '\r\nContent-Length: 3',
      '\r\nTransfer-Encoding: gzip',
      '\r\nHost: y',
      '\r\nExpect: x',
      '\r\nUpgrade: x',
    ],
  ]
  const methods = ['CONNECT', 'PLAY', 'SOURCE', 'PRI', 'TRACE', 'M-SEARCH', 'get', 'HEAD', 'QUERY', 'OPTIONS']
  function mutated(): string {
    let text = pick(whole)
    for (let times = 1 + next(3); times > 0; times -= 1) {
      const at = next(text.length)
      const end = at + next(1 + next(20))
      const kind = next(5)
      if (kind === 0) text = text.slice(0, at) + text.slice(end)
      else if (kind === 1) text = text.slice(0, at) + pick(inserted) + text.slice(at)
      else if (kind === 2) text = text.slice(0, at) + String.fromCharCode(next(256)) + text.slice(at + 1)
      else if (kind === 3) text = text.replace(/^\S*/, pick(methods))
      else text = text.slice(0, end) + text.slice(at, end) + text.slice(end)
    }
    return text
  }
  const sent = Array.from({ length: 500 }, mutated)
  for (let first = 0; first < sent.length; first += 100) {
    await Promise.all(
      sent.slice(first, first + 100).map(async (text) => {
        using connection = await openConnection(server.url)
        connection.send(Buffer.from(text, 'latin1'))
        const responded = until('a response', () => connection.received().includes('\r\n\r\n'))
        await Promise.race([connection.closed, responded])
        responded.catch(() => undefined)
        const { status } = parseResponse(connection.received())
        if (status === 500) expect.unreachable(`got a 500: ${JSON.stringify(text)}`)
      }),
    )
  }
  expect(server.process.exitCode).toBe(null)
  expect(failures()).toEqual([])
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
})
