import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { parseResponse, responseOf } from '../harness/raw-http.ts'
import { openSockets } from '../harness/resources.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

const request = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'

/** A connection from an address of this machine, with the bytes that it received. */
class Client {
  readonly #socket: Socket
  #received = ''

  constructor(server: TestServer, from = '127.0.0.1') {
    this.#socket = connect({
      host: '127.0.0.1',
      port: Number(new URL(server.url).port),
      localAddress: from,
      allowHalfOpen: true,
    })
    this.#socket.on('data', (bytes) => {
      this.#received += bytes
    })
    this.#socket.on('error', () => undefined)
    this.#socket.on('end', () => this.#socket.end())
  }

  /** Resolves with the status of a response; the connection stays open unless the server closes it. */
  async ask(): Promise<number> {
    this.#received = ''
    this.#socket.write(request)
    await until('a response', () => this.#socket.closed || this.#received.includes('\r\n\r\n'))
    return parseResponse(this.#received).status
  }

  response = () => responseOf(parseResponse(this.#received))

  async closed(): Promise<void> {
    if (!this.#socket.closed) await once(this.#socket, 'close')
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** This many clients, each with a response. */
async function clients(server: TestServer, count: number, from?: string): Promise<Client[]> {
  const all = Array.from({ length: count }, () => new Client(server, from))
  for (const client of all) expect(await client.ask()).toBe(200)
  return all
}

async function metric(client: Client, server: TestServer, name: string): Promise<number> {
  expect(await client.ask()).toBe(200)
  const text = await (await fetch(`${server.url}/metrics`)).text()
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length),
  )
}

test('N2, N3, P1 a connection beyond the limit gets a 503 problem and is closed; a closed one makes room', async () => {
  await using server = await startServer({
    MEDIABUCKET_MAX_CONNECTIONS: '6',
    MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '4',
  })
  const [first, ...others] = await clients(server, 4, '127.0.0.2')
  const refused = new Client(server, '127.0.0.2')
  expect(await refused.ask()).toBe(503)
  await refused.closed()
  const response = refused.response()
  expect(response.headers.get('retry-after')).toBe('2')
  await expectProblem(response, 503, 'connections-too-many')

  // Other addresses are still accepted.
  const third = await clients(server, 2, '127.0.0.3')
  const beyond = new Client(server, '127.0.0.4')
  expect(await beyond.ask()).toBe(503)
  await beyond.closed()
  await until('it is logged', () => server.log().filter(({ msg }) => /refused/.test(msg)).length === 2)

  third[0]?.close()
  await until('a connection is accepted again', async () => {
    const next = new Client(server, '127.0.0.4')
    const status = await next.ask()
    next.close()
    return status === 200
  })
  first?.close()
  await until('room for the address', async () => {
    const next = new Client(server, '127.0.0.2')
    const status = await next.ask()
    if (status !== 200) await next.closed()
    else next.close()
    return status === 200
  })
  for (const client of [...others, ...third]) client.close()
})

test('N2, N3, O2 open and refused connections are counted', async () => {
  await using server = await startServer({ MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '5' })
  const [first] = await clients(server, 5, '127.0.0.2')
  if (!first) return expect.unreachable()
  // Many at the same time, so that all are within the interval of one log line; up to 100 get a response.
  for (let round = 0; round < 10; round += 1) {
    const refused = Array.from({ length: 20 }, () => new Client(server, '127.0.0.2'))
    await Promise.all(refused.map((client) => client.ask().then(() => client.closed())))
  }
  expect(await metric(first, server, 'mediabucket_connections_refused_total{reason="address"}')).toBe(200)
  expect(await metric(first, server, 'mediabucket_connections_refused_total{reason="total"}')).toBe(0)
  expect(await metric(first, server, 'mediabucket_connections_open')).toBeGreaterThanOrEqual(6)
  // One line for all refusals within the interval.
  expect(server.log().filter(({ msg }) => /refused/.test(msg))).toHaveLength(1)
})

test('N3 trusted proxies are exempt from the limit for each address', async () => {
  await using server = await startServer({
    MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '2',
    MEDIABUCKET_TRUSTED_PROXIES: '127.0.0.2',
  })
  await clients(server, 8, '127.0.0.2')
  await clients(server, 2, '127.0.0.3')
  expect(await new Client(server, '127.0.0.3').ask()).toBe(503)
})

test('N2, N3 without limits every connection is accepted; a flood of refused connections leaves none open', async () => {
  await using free = await startServer({
    MEDIABUCKET_MAX_CONNECTIONS: '0',
    MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '0',
  })
  await clients(free, 50)

  await using server = await startServer({ MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '10' })
  const before = await openSockets(server)
  const flood = Array.from({ length: 1_500 }, () => new Client(server))
  const other = new Client(server, '127.0.0.2')
  expect(await other.ask()).toBe(200)
  await until('most are closed', async () => (await openSockets(server)) <= before + 11)
  for (const client of flood) client.close()
  other.close()
  await until('all are closed', async () => (await openSockets(server)) <= before)
})
