import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { scrape } from '../harness/scrape.ts'
import { type LogLine, startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { arriving, upload } from '../harness/upload.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const linesOf = (path: string) => server.log().filter((line) => line['path'] === path)
const lineOf = (path: string) => until(`a line for ${path}`, () => linesOf(path)[0])

test('O3 the log has one JSON line for each event, with a time and a level', async () => {
  await fetch(`${server.url}/healthz`)
  await lineOf('/healthz')
  for (const line of server.log()) {
    expect(line).toMatchObject({
      level: expect.any(Number),
      time: expect.any(Number),
      msg: expect.any(String),
    })
  }
})

test.each([
  ['GET', '/problems/internal', 200],
  ['HEAD', '/problems/bytes-missing', 200],
  ['GET', '/no/such/path', 404],
  ['PUT', '/readyz', 405],
  ['PROPFIND', '/metrics', 405],
  ['OPTIONS', '/problems/some-code', 204],
  ['GET', '/media/%zz', 400],
  ['GET', '/api/media/some-id', 401],
])('O3 %s %s is one line with its id, method, path, status and duration', async (method, path, status) => {
  await fetch(`${server.url}${path}?secret=value&page=2`, { method })
  const line = await lineOf(path)
  // The request must not be logged a second time.
  await fetch(`${server.url}/healthz?${path}`)
  await until('what follows is logged', () => server.log().at(-1)?.['path'] === '/healthz')
  expect(linesOf(path)).toEqual([line])
  expect(line).toMatchObject({
    requestId: expect.stringMatching(/^[0-9a-f]{32}$/),
    method,
    path,
    status,
    ms: expect.any(Number),
  })
  expect(line['ms']).toBeGreaterThanOrEqual(0)
  expect(line['ms']).toBeLessThan(60_000)
  expect(server.stderr()).not.toContain('secret')
})

test.each([
  ['closes its connection', 'Content-Length: 100000', ''],
  ['sends a malformed rest', 'Transfer-Encoding: chunked', 'no chunk'],
])('O3 a client that %s after a refusal leaves one line, and gets one response', async (_, framing, rest) => {
  const before = server.log().length
  using connection = await openConnection(server.url)
  const start = framing.startsWith('C') ? 'x' : '1\r\nx\r\n'
  connection.send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n${framing}\r\n\r\n${start}`,
  )
  await until('the refusal', () => connection.received().includes('token-malformed'))
  connection.send(`${rest}\r\n`)
  connection.end()
  await connection.closed
  expect(connection.received().match(/^HTTP/gm)).toHaveLength(1)
  await fetch(`${server.url}/after-${rest.length}`)
  await lineOf(`/after-${rest.length}`)
  const lines = server.log().slice(before)
  expect(lines.map(({ msg, status }) => [msg, status])).toEqual([
    ['completed', 401],
    ['completed', 404],
  ])
})

test('O3 requests on one connection have different ids', async () => {
  const before = linesOf('/healthz').length
  using connection = await openConnection(server.url)
  for (const count of [1, 2]) {
    connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('the response', () => connection.received().split('"ok"').length > count)
  }
  const lines = await until('both are logged', () => {
    const found = linesOf('/healthz').slice(before)
    return found.length === 2 && found
  })
  expect(new Set(lines.map((line: LogLine) => line['requestId'])).size).toBe(2)
})

test('O3, O15, P1 the instance of a problem is the request id in the log: a new one, or that of X-Request-Id', async () => {
  const trace = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', parentId: '00f067aa0ba902b7' }
  for (const [path, headers] of [
    ['/some/path', {}],
    ['/other/path', { 'x-request-id': 'req-01HZX.a+b/c=' }],
    ['/traced/path', { traceparent: `00-${trace.traceId}-${trace.parentId}-01` }],
  ] as const) {
    const response = await fetch(server.url + path, { headers })
    const { instance } = await expectProblem(response, 404, 'route-unknown')
    const line = await lineOf(path)
    expect(line['requestId']).toBe(instance)
    const isNamed = Object.keys(headers).length > 0
    expect(response.headers.get('x-request-id')).toBe(isNamed ? instance : null)
    if ('x-request-id' in headers) expect(instance).toBe(headers['x-request-id'])
    if (!('traceparent' in headers)) continue
    expect(line).toMatchObject(trace)
    expect(response.headers.get('traceparent')).toBe(`00-${trace.traceId}-${line['spanId']}-01`)
  }
})

test('O15 a cached file and a page are sent with the id of their request, and without one', async () => {
  const { url } = await upload(server, 'x')
  for (const path of [url, `${server.url}/api/media`])
    for (const id of ['one', null, 'two', null]) {
      const headers = {
        authorization: `Bearer ${server.token}`,
        ...(id === null ? {} : { 'x-request-id': id }),
      }
      const response = await fetch(path, { headers })
      expect([response.status, response.headers.get('x-request-id')]).toEqual([200, id])
    }
})

test.each([
  ['is empty', ''],
  ['is too long', 'x'.repeat(129)],
  ['has other characters', 'a"b'],
  ['has spaces', 'a b'],
  ['holds a token', `id-mbkt_${'a1'.repeat(19)}`],
])('O15 an X-Request-Id that %s is replaced', async (_name, sent) => {
  const path = `/replaced/${sent.length}/${encodeURIComponent(sent).slice(0, 5)}`
  const { headers } = await sendRaw(
    server.url,
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: ${sent}\r\ntraceparent: 00-${'0'.repeat(32)}-00f067aa0ba902b7-01\r\n\r\n`,
  )
  const line = await lineOf(path)
  expect(line['requestId']).toMatch(/^[0-9a-f]{32}$/)
  expect(line['traceId']).toBe(undefined)
  expect(headers.get('x-request-id')).toBe(line['requestId'])
  expect(headers.has('traceparent')).toBe(false)
})

test.each([
  ['GET', '/api/items', 200],
  ['GET', '/api/media', 200],
  ['HEAD', '/api/media', 200],
  ['GET', '/api/token', 200],
  ['POST', '/api/media', 403],
])(
  'O3 the line of %s %s has the address, the token, the bytes and the program of the client',
  async (method, path, status) => {
    const { id, authorization } = await makeToken(server, '--bucket', 'default', '--scope', 'media:read')
    const agent = `program/1 ${method}${path} ${'(x y) '.repeat(60)}`
    const response = await server.request(`${path}?limit=1`, {
      method,
      headers: { authorization, 'user-agent': agent },
    })
    expect(response.status).toBe(status)
    const { length } = await response.text()
    const line = await until('its line', () => linesOf(path).find((one) => one['token'] === id))
    expect(line).toMatchObject({
      ...{ method, status, address: '127.0.0.1' },
      userAgent: expect.stringMatching(/^program\/1 .{190}…$/),
    })
    expect(line['bytes']).toBeGreaterThan(length)
    expect(line['bytes']).toBeLessThan(length + 1_000)
  },
)

test('O3, A2, W4 the lines of refused tokens tell them apart, and name a revoked one, without revealing any', async () => {
  const { id, authorization } = await makeToken(server, '--bucket', 'default')
  await server.command('token', 'revoke', id)
  const unknown = ['a', 'b'].map((letter) => `Bearer mbkt_${letter.repeat(38)}`)
  const fingerprints: unknown[] = []
  for (const [index, sent] of [authorization, ...unknown, unknown[0] ?? ''].entries()) {
    const path = `/api/media/refused-${index}`
    expect((await server.request(path, { headers: { authorization: sent } })).status).toBe(401)
    const line = await lineOf(path)
    expect(line['token']).toBe(index === 0 ? id : undefined)
    expect(line['tokenFingerprint']).toMatch(/^[0-9a-f]{8}$/)
    fingerprints.push(line['tokenFingerprint'])
    expect(server.stderr()).not.toContain(sent.slice(12, 30))
  }
  expect(new Set(fingerprints).size).toBe(3)
  expect(fingerprints[3]).toBe(fingerprints[1])
})

test('W4, O3 an address that sends too many invalid tokens is named once a minute, also without lines of requests', async () => {
  await using quiet = await startServer({
    MEDIABUCKET_AUTH_FAILURE_RATE: '3/1h',
    MEDIABUCKET_LOG_LEVEL: 'warn',
  })
  const headers = { authorization: `Bearer mbkt_${'c'.repeat(38)}` }
  for (let index = 0; index < 10; index += 1) await quiet.request('/api/media', { headers })
  const lines = await until('the warning', () => {
    const found = quiet.log().filter(({ msg }) => msg.includes('MEDIABUCKET_AUTH_FAILURE_RATE'))
    return found.length > 0 && found
  })
  expect(lines).toMatchObject([{ level: 40, address: '127.0.0.1' }])
})

test('O3 a line break in a path does not start a new line in the log', async () => {
  await sendRaw(
    server.url,
    'GET /forged%0a{"level":60,"msg":"forged"} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  )
  await until('it is logged', () => server.stderr().includes('/forged%0a'))
  expect(server.log().filter(({ msg }) => msg === 'forged')).toEqual([])
})

test('O3 an upload aborted by its client is logged in one line without a status', async () => {
  using connection = await openConnection(server.url)
  const before = linesOf('/v1/media/').length
  connection.send(
    `POST /v1/media/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 100000\r\n\r\nhalf`,
  )
  await until('it arrives', async () => (await arriving(server)).length > 0)
  connection[Symbol.dispose]()
  const line = await until('it is logged', () => linesOf('/v1/media/')[before])
  expect(line).toMatchObject({ method: 'POST', status: null, ms: expect.any(Number) })
})

test('O3, A5 no token is logged, wherever a client sends it', async () => {
  const { token, authorization } = await makeToken(server, '--bucket', 'default')
  const headers = { authorization, cookie: `token=${token}`, referer: `https://x.example/?token=${token}` }
  const { id } = await upload(server, 'x', { authorization, name: token })
  await server.request(`/api/media?token=${token}`, { headers })
  await server.request(`/api/media/${id}`, { headers })
  await server.request(`/api/media/${token}`, { headers })
  await fetch(`${server.url}/${token}/${token}?${token}#${token}`, { headers })
  await fetch(`${server.url}/media/%zz${token}?access_token=${token}`, { headers })
  await sendRaw(server.url, `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nX : y\r\n\r\n`)
  await server.request('/api/media?page=x', { headers })
  await fetch(`${server.url}/last`)
  await lineOf('/last')
  expect(server.stderr()).not.toContain(token.slice(5, 25))
})

test('O3 while the log is not read, requests are answered and no line is lost', async () => {
  await using stalled = await startServer()
  const { stderr } = stalled.process
  stderr?.pause()
  // More than the buffers of a pipe and its reader hold.
  const paths = Array.from({ length: 1_000 }, (_, index) => `/${'xx-'.repeat(330)}${index}`)
  for (const path of paths) expect((await fetch(stalled.url + path)).status).toBe(404)
  stderr?.resume()
  const logged = await until('all lines have come', () => {
    const found = stalled.log().flatMap(({ path }) => (typeof path === 'string' ? [path] : []))
    return found.length >= paths.length && found
  })
  expect(logged.filter((path) => path.startsWith('/xx'))).toEqual(paths)
})

test.each(['auto', 'json'])(
  'O3 while the log (%s) is not read, requests are answered, further lines are dropped, and a line and a metric say how many',
  async (format) => {
    await using stalled = await startServer({ MEDIABUCKET_LOG_FORMAT: format })
    const { stderr } = stalled.process
    stderr?.pause()
    const path = (index: number) => `/${'x-'.repeat(7_000)}${index}`
    const sent = 4_000
    for (let index = 0; index < sent; index += 8)
      await Promise.all(Array.from({ length: 8 }, (_, at) => fetch(stalled.url + path(index + at))))
    const { value } = await scrape(stalled)
    const dropped = value('log_lines_dropped_total')
    expect(dropped).toBeGreaterThan(100)
    stderr?.resume()
    const report = await until('the number of dropped lines', () =>
      /^.*lines of the log were dropped.*$/m.exec(stalled.stderr()),
    )
    await fetch(`${stalled.url}/later`)
    await until('a later line', () => stalled.stderr().includes('/later'))
    expect(Number(/dropped"?[=:](\d+)/.exec(report[0])?.[1])).toBe(
      (await scrape(stalled)).value('log_lines_dropped_total'),
    )
    // What was written before the first dropped line is complete.
    const before =
      stalled
        .stderr()
        .slice(0, report.index)
        .match(/\/(?:x-)+x…/g) ?? []
    expect(before.length).toBeGreaterThan(500)
    expect(new Set(before.map(({ length }) => length))).toEqual(new Set([1_025]))
    expect(await stalled.stop()).toBe(0)
  },
)

test('O3, O5 a service whose log is not read stops', async () => {
  await using stalled = await startServer()
  stalled.process.stderr?.pause()
  for (let index = 0; index < 400; index += 1) await fetch(`${stalled.url}/${'x-'.repeat(2_000)}`)
  expect(await stalled.stop()).toBe(0)
})
