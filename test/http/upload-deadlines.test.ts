import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Connection, openConnection } from '../harness/connection.ts'
import { filePart, formBytes, formType } from '../harness/form.ts'
import { expectProblem } from '../harness/problem.ts'
import { whileStopped } from '../harness/processes.ts'
import { parseResponse, responseOf } from '../harness/raw-http.ts'
import { countStored } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

/** That of headers is a quarter. */
const idleTimeout = 2_000
let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_IDLE_TIMEOUT: `${idleTimeout}ms` })
})
afterAll(() => server[Symbol.asyncDispose]())

/** Far longer than the timeouts of these tests, and shorter than the default for idle connections. Milliseconds. */
const soon = 50_000

/** Sends the chunks one by one with a pause after each; returns whether the connection ended before the last one. */
async function dribble(connection: Connection, chunks: Iterable<string | Uint8Array>, pause: number) {
  let open = true
  void connection.closed.then(() => {
    open = false
  })
  for (const chunk of chunks) {
    if (!open) return true
    connection.send(chunk)
    await setTimeout(pause)
  }
  return false
}

const closedSoon = async (connection: Connection) => {
  const startedAt = performance.now()
  await connection.closed
  expect(performance.now() - startedAt).toBeLessThan(soon)
  return connection.received()
}

const head = (line: string) =>
  `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nConnection: close\r\n${line}\r\n\r\n`

describe.concurrent('with short deadlines', () => {
  test.each([
    ['that stop', 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow:'],
    ['of which only one byte arrives', 'G'],
  ])('O4 a connection with headers %s gets a 408, or is closed when it is idle', async (_, bytes) => {
    using connection = await openConnection(server.url)
    connection.send(bytes)
    const received = await closedSoon(connection)
    if (received !== '') await expectProblem(responseOf(parseResponse(received)), 408, 'request-timeout')
  })

  test('O4 headers that arrive slowly get a 408, although the connection is never idle', async () => {
    using connection = await openConnection(server.url)
    // All of them take a minute or more: the service answers before, however slow the machine is.
    expect(await dribble(connection, `GET /healthz HTTP/1.1\r\nX-Slow: ${'x'.repeat(1_200)}`, 50)).toBe(true)
    const response = responseOf(parseResponse(await closedSoon(connection)))
    await expectProblem(response, 408, 'request-timeout')
  })

  test('O4 the headers of a second request have the same timeout', async () => {
    using connection = await openConnection(server.url)
    connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('a response', () => connection.received().includes('{"status":"ok"}'))
    await dribble(
      connection,
      'GET /healthz HTTP/1.1\r\nX-Slow: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
      50,
    )
    expect(await closedSoon(connection)).toContain('HTTP/1.1 408')
  })

  test('O4 headers that arrive while the service does not run are in time', async () => {
    // That of headers is 2 seconds.
    await using stopped = await startServer({ MEDIABUCKET_IDLE_TIMEOUT: '8s' })
    using connection = await openConnection(stopped.url)
    const request = 'GET /healthz HTTP/1.1\r\nHost: x\r\n'
    connection.send(`${request}\r\n${request}`)
    await until('a response', () => connection.received().includes('{"status":"ok"}'))
    await whileStopped(stopped, async () => {
      connection.send('Connection: close\r\n\r\n')
      await setTimeout(3_000)
    })
    await connection.closed
    expect(connection.received().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
  })

  test('U12 bytes of an upload that arrive while the service does not run are in time', async () => {
    await using stopped = await startServer({ MEDIABUCKET_IDLE_TIMEOUT: '2s' })
    using connection = await openConnection(stopped.url)
    using silent = await openConnection(stopped.url)
    for (const each of [connection, silent])
      each.send(
        `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${stopped.token}\r\nConnection: close\r\nContent-Length: 6\r\n\r\nabc`,
      )
    await until('both uploads', async () =>
      /^mediabucket_active_uploads 2$/m.test(await (await fetch(`${stopped.url}/metrics`)).text()),
    )
    await whileStopped(stopped, async () => {
      connection.send('def')
      silent.send('d')
      await setTimeout(3_000)
    })
    expect(await closedSoon(connection)).toContain('HTTP/1.1 201')
    expect(await closedSoon(silent)).toBe('')
  })

  test('O4 a connection that sends nothing is closed', async () => {
    using connection = await openConnection(server.url)
    await closedSoon(connection)
  })

  test('O4 a connection that is idle after a response is closed, and not before the timeout', async () => {
    using connection = await openConnection(server.url)
    connection.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('a response', () => connection.received().includes('{"status":"ok"}'))
    const startedAt = performance.now()
    await closedSoon(connection)
    expect(performance.now() - startedAt).toBeGreaterThan(idleTimeout * 0.9)
  })

  test('U12, O4 a slow but steady upload may take longer than every timeout', async () => {
    const bytes = formBytes(filePart('slow.txt', 'x'.repeat(30), 'text/plain'))
    using connection = await openConnection(server.url)
    connection.send(head(`Content-Type: ${formType}\r\nContent-Length: ${bytes.length}`))
    const chunks = Array.from({ length: 20 }, (_, i) =>
      bytes.subarray((i * bytes.length) / 20, ((i + 1) * bytes.length) / 20),
    )
    await dribble(connection, chunks, 150)
    expect(parseResponse(await closedSoon(connection)).status).toBe(201)
  })

  test.each([
    ['a refusal', 'POST /api/media', 401],
    ['a refused body of a listing', 'GET /api/media', 413],
    ['a refused body of a health check', 'GET /healthz', 413],
  ])('U12 the connection of a client that keeps sending after %s is closed', async (_, line, status) => {
    using connection = await openConnection(server.url)
    connection.send(`${line} HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000000\r\n\r\n`)
    expect(await dribble(connection, Array(1_000).fill('x'.repeat(1000)), 100)).toBe(true)
    expect(parseResponse(await closedSoon(connection)).status).toBe(status)
  })
})

/** Larger than the service holds in memory before it writes a temporary file. */
const half = 'x'.repeat(2_000_000)

test.each([
  ['raw', head, `Content-Length: ${2 * half.length}`, half],
  ['chunked', head, 'Transfer-Encoding: chunked', `${half.length.toString(16)}\r\n${half}\r\n`],
  [
    'form',
    head,
    `Content-Type: ${formType}\r\nContent-Length: ${2 * half.length}`,
    formBytes(filePart('a', half)).subarray(0, -20),
  ],
])(
  'U12, U10 a %s upload that becomes idle is aborted, and nothing of it is stored',
  async (_, lines, line, bytes) => {
    const before = await countStored(server)
    using connection = await openConnection(server.url)
    connection.send(lines(line))
    connection.send(bytes)
    await until('a temporary file', async () => (await countStored(server)).temporary === 1)
    await closedSoon(connection)
    await until('its end', async () => (await countStored(server)).temporary === 0)
    expect(await countStored(server)).toEqual(before)
  },
)

test('U12, O4 a client that waits for the service is not idle', async () => {
  const { temporary } = await countStored(server)
  const catalog = new DatabaseSync(join(server.data, 'catalog.db'))
  catalog.exec('BEGIN IMMEDIATE')
  // Larger than a file that is stored in the catalog.
  const body = 'x'.repeat(70_000)
  const stored = server.request('/api/media', { method: 'POST', body })
  await until('a temporary file', async () => (await countStored(server)).temporary === temporary + 1)
  // The service waits ten seconds for the catalog.
  await setTimeout(1.5 * idleTimeout)
  catalog.exec('ROLLBACK')
  catalog.close()
  expect((await stored).status).toBe(201)
})

test('U12, U10 a small upload that becomes idle is aborted, and nothing of it is stored', async () => {
  const before = await countStored(server)
  using connection = await openConnection(server.url)
  connection.send(head('Content-Length: 1000'))
  connection.send('half')
  expect(await closedSoon(connection)).not.toMatch(/^HTTP\/1\.1 2/)
  expect(await countStored(server)).toEqual(before)
})
