import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Connection, openConnection } from '../harness/connection.ts'
import { random, testSeed } from '../harness/random.ts'
import { forgetPeak, memory } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { readPage } from '../harness/wire.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_LOG_LEVEL: 'error' })
})
afterAll(() => server[Symbol.asyncDispose]())

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

/** As many copies of the request as the server reads at once. */
const oneRead = (request: string) => request.repeat(Math.floor(63_000 / request.length))

const connections = (count: number) =>
  Promise.all(Array.from({ length: count }, () => openConnection(server.url)))

const totalOf = async () => (await readPage(await server.request('/api/media'))).total

const responseCount = (connection: Connection) => connection.received().split('HTTP/1.1 ').length - 1

test('N1 of requests that arrive in one read the first is answered, and no other one is executed', async () => {
  const before = await totalOf()
  const authorization = `Authorization: Bearer ${server.token}`
  const upload = `POST /api/media HTTP/1.1\r\nHost: x\r\n${authorization}\r\nContent-Length: 5\r\n\r\nhello`
  for (const [first, expected] of [
    [get('/healthz'), /^HTTP\/1\.1 200 .*"status":"ok"/s],
    [get('/nowhere'), /^HTTP\/1\.1 404 .*"route-unknown"/s],
    [`GET /api/media HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`, /^HTTP\/1\.1 200 .*"total":/s],
    [upload, /^HTTP\/1\.1 201 .*"size":5/s],
    [
      'GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      /^HTTP\/1\.1 (?:400|501) /,
    ],
  ] as const) {
    using connection = await openConnection(server.url)
    connection.send(first + upload + upload)
    await connection.closed
    expect(connection.received()).toMatch(expected)
    expect(connection.received()).toMatch(/^Connection: close\r$/m)
    expect(responseCount(connection)).toBe(1)
  }
  expect(await totalOf()).toBe(before + 1)
})

test('N1 requests in any split into packets get their own responses in order, until the connection is closed', async () => {
  const authorization = `Authorization: Bearer ${server.token}`
  const head = (method: string, path: string, ...more: string[]) =>
    [`${method} ${path} HTTP/1.1`, 'Host: x', authorization, ...more, '', ''].join('\r\n')
  const kinds = [
    { sent: head('GET', '/api/media?page=1'), expected: /^200 .*"total":/s },
    { sent: head('GET', '/api/media?page=0'), expected: /^400 .*"page-malformed"/s },
    { sent: head('GET', '/healthz'), expected: /^200 .*"status":"ok"/s },
    { sent: `${head('GET', '/healthz', 'Content-Length: 3')}abc`, expected: /^200 .*"status":"ok"/s },
    { sent: head('HEAD', '/healthz'), expected: /^200 [^{]*$/s },
    { sent: head('GET', '/nowhere'), expected: /^404 .*"route-unknown"/s },
    { sent: `${head('POST', '/api/media', 'Content-Length: 5')}hello`, expected: /^201 .*"size":5/s },
    {
      sent: `${head('POST', '/api/media', 'Transfer-Encoding: chunked')}3\r\nhel\r\n1\r\nl\r\n0\r\n\r\n`,
      expected: /^201 .*"size":4/s,
    },
    {
      sent: `${head('POST', '/api/media', 'Content-Length: 90000')}${'GET / '.repeat(15_000)}`,
      expected: /^201 .*"size":90000/s,
    },
  ]
  const next = random(testSeed())
  const before = await totalOf()
  let stored = 0
  for (let round = 0; round < 20; round += 1) {
    const order = Array.from({ length: 8 }, () => kinds[next(kinds.length)] ?? expect.unreachable())
    const bytes = order.map(({ sent }) => sent).join('')
    using connection = await openConnection(server.url)
    for (let at = 0; at < bytes.length; ) {
      const length = next(2) === 0 ? next(200) : next(100_000)
      connection.send(bytes.slice(at, at + length))
      at += length
      // So that the server receives some of them in separate reads.
      for (let turn = next(20); turn > 0; turn -= 1) await setImmediate()
    }
    let isClosed = false
    void connection.closed.then(() => {
      isClosed = true
    })
    await until('all responses, or the end', () => isClosed || responseCount(connection) === order.length)
    const received = connection.received().split('HTTP/1.1 ').slice(1)
    expect(received.length).toBeGreaterThan(0)
    for (const [index, text] of received.entries()) expect(text).toMatch(order[index]?.expected ?? /^$/)
    stored += received.filter((text) => text.startsWith('201 ')).length
  }
  expect(await totalOf()).toBe(before + stored)
})

test('N1, N4 an invalid request after another one closes the connection after the response to the first', async () => {
  const head = (line: string, ...more: string[]) =>
    [line, 'Host: x', `Authorization: Bearer ${server.token}`, ...more, '', ''].join('\r\n')
  const upload = `${head('POST /api/media HTTP/1.1', 'Content-Length: 5')}hello`
  for (const behind of [
    head('GET /healthz HTTP/1.1', 'Connection: Upgrade', 'Upgrade: websocket') + get('/healthz'),
    head('CONNECT x:443 HTTP/1.1'),
    'no request\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]) {
    using connection = await openConnection(server.url)
    connection.send(upload + behind)
    await connection.closed
    expect(connection.received()).toMatch(/^HTTP\/1\.1 201 .*"size":5[^\n]*$/s)
  }
})

test('N1 no request is processed after a response that closes the connection (RFC 9112, section 9.6)', async () => {
  const before = await totalOf()
  const upload = [
    'POST /api/media HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${server.token}`,
    'Content-Length: 5',
    '',
    'hello',
  ].join('\r\n')
  for (const [refused, rest] of [
    ['Authorization: Bearer bad\r\nExpect: 100-continue\r\nContent-Length: 5', 'hello'],
    ['Transfer-Encoding: gzip, chunked', '0\r\n\r\n'],
  ]) {
    using connection = await openConnection(server.url)
    connection.send(`POST /api/media HTTP/1.1\r\nHost: x\r\n${refused}\r\n\r\n`)
    await until('the refusal', () => /Connection: close.*"code"/s.test(connection.received()))
    connection.send(rest + upload)
    await connection.closed
    expect(responseCount(connection)).toBe(1)
  }
  expect(await totalOf()).toBe(before)
})

test('N1 other clients are served while a few connections pipeline thousands of requests', async () => {
  const flooders = await connections(20)
  using other = await openConnection(server.url)
  const flood = oneRead(get('/healthz')).repeat(4)
  for (const flooder of flooders) flooder.send(flood)
  // Not /readyz, which waits for threads of lower priority.
  other.send(get('/healthz'))
  await until('the response', () => responseCount(other) === 1)
  await Promise.all(flooders.map((flooder) => flooder.closed))
  expect(flooders.map(responseCount)).toEqual(flooders.map(() => 1))
  for (const flooder of flooders) flooder[Symbol.dispose]()
})

test('N1 pipelined requests with unread responses use little memory', async () => {
  await forgetPeak(server)
  const before = (await memory(server)).now
  const flooders = await connections(100)
  const flood = oneRead(get('/docs'))
  for (const flooder of flooders) {
    flooder.pause()
    flooder.send(flood)
    flooder.send(flood)
  }
  using other = await openConnection(server.url)
  for (let round = 1; round <= 20; round += 1) {
    other.send(get('/healthz'))
    await until('a response', () => responseCount(other) === round)
  }
  expect((await memory(server)).peak - before).toBeLessThan(100_000_000)
  for (const flooder of flooders) flooder[Symbol.dispose]()
})

test('N1, N4 the server continues after random valid, invalid, truncated and unread requests', async () => {
  const authorization = `Authorization: Bearer ${server.token}\r\n`
  const post = (lines: string, body: string) =>
    `POST /api/media HTTP/1.1\r\nHost: x\r\n${authorization}${lines}\r\n\r\n${body}`
  const fragments = [
    get('/healthz'),
    get('/docs').repeat(500),
    `GET /api/media HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`,
    'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
    'GET /docs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'GET /docs HTTP/1.0\r\n\r\n',
    'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n',
    post('Expect: 100-continue\r\nContent-Length: 3', 'abc'),
    post('Transfer-Encoding: chunked', '3\r\nabc\r\n0\r\n\r\n'),
    post('Transfer-Encoding: gzip, chunked', '0\r\n\r\n'),
    `POST /api/media HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(100_000)}`,
    'GARBAGE\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]
  const next = random(testSeed())
  const mixed = () => Array.from({ length: 1 + next(7) }, () => fragments[next(fragments.length)]).join('')
  for (let round = 0; round < 4; round += 1) {
    const clients = (await connections(60)).map((connection) => {
      if (next(3) === 0) connection.pause()
      const bytes = mixed()
      const cut = next(bytes.length)
      connection.send(bytes.slice(0, cut))
      return { connection, rest: bytes.slice(cut) }
    })
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    for (const { connection, rest } of clients) {
      if (next(4) > 0) connection.send(rest)
      if (next(3) === 0) connection.end()
      if (next(3) === 0) connection[Symbol.dispose]()
    }
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    for (const { connection } of clients) connection[Symbol.dispose]()
  }
  await until('all connections are closed', async () => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text()
    return Number(/^mediabucket_connections_open (\d+)$/m.exec(metrics)?.[1]) <= 3
  })
  expect(server.log()).toEqual([])
})
