import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { responseOf, sendRaw } from '../harness/raw-http.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

let server: TestServer
beforeAll(async () => {
  // Headers have a quarter of it. Node checks them once a second, so it must be clearly longer than three seconds.
  server = await startServer({ MEDIABUCKET_IDLE_TIMEOUT: '6s' })
})
afterAll(() => server[Symbol.asyncDispose]())

const smuggled = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'

// Without `Connection: close`: sendRaw waits until the server closes the connection.
test.each([
  [
    'Content-Length with Transfer-Encoding',
    'POST /api/media HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  [
    'two different Content-Lengths',
    'POST /api/media HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello',
  ],
  ['a Content-Length with a sign', 'POST /api/media HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello'],
  [
    'chunked that is not the last coding',
    'POST /api/media HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n',
  ],
  ['a space before the colon', 'GET /healthz HTTP/1.1\r\nHost: x\r\nFoo : bar\r\n\r\n'],
  ['a bare CR in a header', 'GET /healthz HTTP/1.1\r\nHost: x\r\nFoo: b\rar\r\n\r\n'],
  ['a folded header', 'GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n'],
  ['a NUL in a header', 'GET /healthz HTTP/1.1\r\nHost: x\r\nFoo: b\0r\r\n\r\n'],
  ['a header without a name', 'GET /healthz HTTP/1.1\r\nHost: x\r\n: bar\r\n\r\n'],
  ['an unknown method', 'BREW /healthz HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a space in the path', 'GET /health z HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
])('P1 %s gets a 400 problem, and the connection is closed', async (_, bytes) => {
  const response = await sendRaw(server.url, bytes + smuggled)
  expect(response.headers.get('connection')).toBe('close')
  expect(response.body).not.toContain('"ok"')
  const { instance } = await expectProblem(responseOf(response), 400, 'request-malformed')
  const line = await until('it is logged', () => server.log().find(({ requestId }) => requestId === instance))
  expect(line).toMatchObject({ status: 400 })
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
})

test.each([
  ['no Host header', ''],
  ['two Host headers', 'Host: a\r\nHost: b\r\n'],
])('P1 a request with %s gets a 400 problem', async (_, hosts) => {
  const response = await sendRaw(server.url, `GET /healthz HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`)
  await expectProblem(responseOf(response), 400, 'request-malformed')
})

test('P1 HTTP/1.0 needs no Host header', async () => {
  expect((await sendRaw(server.url, 'GET /healthz HTTP/1.0\r\n\r\n')).status).toBe(200)
})

test('P1 an unknown expectation is ignored', async () => {
  const response = await sendRaw(
    server.url,
    'GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nConnection: close\r\n\r\n',
  )
  expect(response.status).toBe(200)
})

test('P1 invalid bytes after a request do not change the response in progress', async () => {
  const size = 30_000_000
  const { url } = await upload(server, new Uint8Array(size), { name: 'a.bin' })
  using connection = await openConnection(server.url)
  connection.send(`GET ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await until('the response begins', () => connection.received().startsWith('HTTP/1.1 200'))
  connection.send('\x16\x03\x01garbage\r\n\r\n')
  await connection.closed
  expect(connection.received()).not.toContain('request-malformed')
})

describe.concurrent('deadlines', () => {
  test('O4, P1 headers that do not arrive in time get a 408', async () => {
    for (const bytes of [
      '',
      'GET /healthz HTTP/1.1\r\nHost: x\r\n',
      'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ',
    ]) {
      const response = await sendRaw(server.url, bytes)
      await expectProblem(responseOf(response), 408, 'request-timeout')
    }
  })

  test('O4 a connection that sends its headers byte by byte is closed at the timeout', async () => {
    using connection = await openConnection(server.url)
    connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    const drops = setInterval(() => connection.send('a'), 50)
    try {
      await connection.closed
    } finally {
      clearInterval(drops)
    }
    expect(connection.received()).toMatch(/^HTTP\/1\.1 408 /)
  })

  test('O4 a connection that is idle after a request is closed', async () => {
    const startedAt = performance.now()
    const response = await sendRaw(server.url, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(response.status).toBe(200)
    expect(performance.now() - startedAt).toBeGreaterThan(1_500)
  })
})
