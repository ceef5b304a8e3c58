import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { expectProblem } from '../harness/problem.ts'
import { parseResponse, responseOf } from '../harness/raw-http.ts'
import { openSockets } from '../harness/resources.ts'
import { scrape } from '../harness/scrape.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

/** A path that is no probe, and needs no token. */
const page = '/problems/internal'
const requestOf = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

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
  async ask(path = page): Promise<number> {
    this.#received = ''
    this.#socket.write(requestOf(path))
    await until('a response', () => this.#socket.closed || this.#received.includes('\r\n\r\n'))
    return parseResponse(this.#received).status
  }

  send(bytes: string): void {
    this.#socket.write(bytes)
  }

  stopReading(): void {
    this.#socket.pause()
  }

  isClosed = () => this.#socket.closed

  response = () => responseOf(parseResponse(this.#received))

  async closed(): Promise<void> {
    if (!this.#socket.closed) await once(this.#socket, 'close')
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** This many clients, each with a response and with an upload in progress, so that none is idle. */
async function clients(server: TestServer, count: number, from?: string): Promise<Client[]> {
  const all = Array.from({ length: count }, () => new Client(server, from))
  for (const client of all) {
    expect(await client.ask()).toBe(200)
    client.send(
      `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 100\r\n\r\nx`,
    )
  }
  await until('the uploads are in progress', async () => (await uploading(server)) >= count)
  return all
}

const uploading = async (server: TestServer) => (await scrape(server)).value('active_uploads') ?? 0

test('N2, N3, P1, O3 a connection beyond the limit gets a 503 problem and is closed; a closed one makes room', async () => {
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
  expect(server.log().filter(({ level }) => Number(level) >= 50)).toEqual([])

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
  await clients(server, 5, '127.0.0.2')
  // Many at the same time, so that all are within the interval of one log line; up to 100 get a response.
  for (let round = 0; round < 10; round += 1) {
    const refused = Array.from({ length: 20 }, () => new Client(server, '127.0.0.2'))
    await Promise.all(refused.map((client) => client.ask().then(() => client.closed())))
  }
  const { value } = await scrape(server)
  expect(value('connections_refused_total', 'reason="address"')).toBe(200)
  expect(value('connections_refused_total', 'reason="total"')).toBe(0)
  expect(value('connections_open')).toBeGreaterThanOrEqual(6)
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
  const flood = Array.from({ length: 1_500 }, (_, index) => {
    const client = new Client(server)
    if (index % 2 === 0) client.send(`GET ${page} HTTP/1.1\r\n`)
    return client
  })
  const other = new Client(server, '127.0.0.2')
  expect(await other.ask()).toBe(200)
  await until('most are closed', async () => (await openSockets(server)) <= before + 140)
  for (const client of flood) client.close()
  other.close()
  await until('all are closed', async () => (await openSockets(server)) <= before)
})

test('N2, N3, O2 at a limit the connection that was unused for longest is closed, and none with a request in progress', async () => {
  await using server = await startServer({
    MEDIABUCKET_MAX_CONNECTIONS: '7',
    MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '5',
  })
  const busy = await clients(server, 1, '127.0.0.2')
  const [first, unused, third, fourth] = Array.from({ length: 4 }, () => new Client(server, '127.0.0.2'))
  if (!first || !unused || !third || !fourth) return expect.unreachable()
  for (const client of [first, unused, third, fourth]) expect(await client.ask()).toBe(200)
  for (const client of [first, third]) expect(await client.ask()).toBe(200)
  // The limit of the address: `unused` was used before the others.
  const fifth = new Client(server, '127.0.0.2')
  expect(await fifth.ask()).toBe(200)
  await unused.closed()
  // The limit of all: `fourth` follows, and then those that were used again.
  const others = Array.from({ length: 2 }, () => new Client(server, '127.0.0.3'))
  for (const client of others) expect(await client.ask()).toBe(200)
  const last = new Client(server, '127.0.0.4')
  expect(await last.ask()).toBe(200)
  await fourth.closed()
  for (const client of [...busy, first, third, fifth, ...others]) expect(client.isClosed()).toBe(false)
  expect((await scrape(server)).value('connections_refused_total', 'reason="total"')).toBe(0)
  expect((await scrape(server)).value('idle_connections_closed_total')).toBeGreaterThanOrEqual(2)
})

/** What all connections of an attacker do. */
const attacks: Readonly<Record<string, (client: Client, large: string) => void>> = {
  'stay idle': () => undefined,
  'send heads slowly': (client) => client.send('GET /healthz HTTP/1.1\r\n'),
  'do not read their responses': (client, large) => {
    client.stopReading()
    client.send(requestOf(large))
  },
  'request metrics, and do not read them': (client) => {
    client.stopReading()
    client.send(requestOf('/metrics').repeat(50))
  },
}

test.each(Object.keys(attacks))(
  'N2, N3, O1, O2 probes are answered while all connections %s, also those from the same address',
  async (name) => {
    await using server = await startServer({
      MEDIABUCKET_MAX_CONNECTIONS: '30',
      MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS: '20',
    })
    const { url } = await upload(server, Buffer.alloc(20_000_000, 'x'), { type: 'text/plain' })
    const attack = attacks[name] ?? expect.unreachable()
    const open = (from: string) => {
      const client = new Client(server, from)
      attack(client, new URL(url).pathname)
      return client
    }
    // Twice as many as there are places for probes.
    for (const from of ['127.0.0.2', '127.0.0.3']) for (let i = 0; i < 150; i += 1) open(from)
    await until('the limit', async () => {
      const { value } = await scrape(server)
      const refused = value('connections_refused_total', 'reason="address"') ?? 0
      return refused + (value('idle_connections_closed_total') ?? 0) > 100
    })
    for (const from of ['127.0.0.2', '127.0.0.3', '127.0.0.4'])
      for (const probe of ['/healthz', '/readyz', '/readyz?writes', '/metrics']) {
        for (let i = 0; i < 20; i += 1) open('127.0.0.2')
        // One that competes with many new ones of its own address may be refused; a probe is repeated.
        await until(`${probe} from ${from}`, async () => (await new Client(server, from).ask(probe)) === 200)
      }
  },
)
