import { connect } from 'node:net'
import { type Clients, createClients } from '../faults/clients.ts'
import { createLedger, type Ledger } from '../faults/ledger.ts'
import { type Instance, instanceOf } from '../faults/server-instances.ts'
import { startIssuer, type TestIssuer } from '../harness/issuer.ts'
import { parseResponse, type RawResponse } from '../harness/raw-http.ts'
import { memory, openFiles } from '../harness/resources.ts'
import { startServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { until } from '../harness/until.ts'
import { readPage } from '../harness/wire.ts'
import type { Random } from './random.ts'

/** A running server under fuzz, and its checks. */
export interface Target extends AsyncDisposable {
  readonly instance: Instance
  readonly ledger: Ledger
  readonly clients: Clients
  /** Of another bucket, whose items are not in the ledger. */
  readonly otherToken: string
  readonly random: Random
  /** The issuer whose JWTs the server accepts. */
  readonly issuer: TestIssuer
  /**
   * Sends bytes, reads until the server closes, checks the response. `cut` closes the connection after that many bytes; `wait` is the
   * milliseconds of silence after which it gives up.
   */
  send(bytes: string | Uint8Array, cut?: number, wait?: number): Promise<RawResponse | null>
  /** Checks a response against the rules of errors (docs/interface.md P1, P3); a failure shows `requestText`. */
  checkResponse(requestText: string, response: RawResponse): void
  /** Responses by status. */
  readonly statuses: Map<number, number>
  /** Checks that the server runs and has logged no error. */
  checkHealth(): Promise<void>
  /** After a round: checks that all items exist and that files and memory are released. Then deletes most items. */
  settle(): Promise<void>
}

/** Allowed statuses above 499: unsupported, busy, full. */
const foreseen: ReadonlySet<number> = new Set([501, 503, 505, 507])
const secrets = /mbkt_[0-9a-z]{8}|\/tmp\/|node_modules|\.[tj]s:\d+| at \w+ \(/

/** Milliseconds that a client waits for a response to bytes that may not be a complete request. */
const patience = 2_000
/** The same for a complete request, which always gets a response. */
export const responseTimeout = 60_000
/** Resident bytes that the service may use beyond those after the first round. */
const growth = 200_000_000
/** Descriptors that may be open beyond those at the start: idle connections, caches, and about seven for each thread that starts on demand. */
const spareFiles = 60
/** Items that remain from one round to the next. */
const remainingItems = 60

/** Calls `fail` for an error of the server, and for one that exposes an internal detail. */
export function expectForeseen({ status, body }: RawResponse, fail: (why: string) => void): void {
  if (!(status >= 100 && status < 600)) fail('no HTTP response')
  if (status >= 500 && !foreseen.has(status)) fail('an error of the server')
  if (status >= 400 && secrets.test(body)) fail('an error that exposes a secret or an internal detail')
}

/**
 * Sends bytes and reads until the server closes the connection, or is silent for `wait` milliseconds. Null without a response, and if `cut` closes the
 * connection after that many bytes.
 */
export function exchange(
  url: string,
  bytes: Uint8Array,
  cut: number | undefined,
  wait: number,
): Promise<RawResponse | null> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    const chunks: Buffer[] = []
    socket.write(cut === undefined ? bytes : bytes.subarray(0, cut), () => {
      if (cut !== undefined) socket.destroy()
    })
    socket.setTimeout(wait, () => socket.destroy())
    socket.on('data', (chunk) => chunks.push(chunk))
    // The server may reset the connection.
    socket.on('error', () => undefined)
    socket.on('close', () =>
      resolve(
        cut !== undefined || chunks.length === 0
          ? null
          : parseResponse(Buffer.concat(chunks).toString('latin1')),
      ),
    )
  })
}

export async function openTarget(random: Random): Promise<Target> {
  const issuer = await startIssuer()
  const server = await startServer({
    ...issuer.settings,
    MEDIABUCKET_JWT_CREATE_BUCKETS: 'on',
    MEDIABUCKET_IDLE_TIMEOUT: '40s',
    MEDIABUCKET_TOKEN_RATE: 'off',
    MEDIABUCKET_ADDRESS_RATE: 'off',
    MEDIABUCKET_AUTH_FAILURE_RATE: 'off',
    MEDIABUCKET_MAX_FILE_SIZE: '2MB',
    MEDIABUCKET_S3_PORT: '0',
  })
  const { token } = server
  const instance = instanceOf(server, token)
  const ledger = createLedger()
  const clients = createClients(ledger)
  const other = await makeToken(server, '--bucket', 'hostile')
  const statuses = new Map<number, number>()
  const files = await openFiles(server)
  let resting = 0

  function checkResponse(requestText: string, response: RawResponse): void {
    const { status, headers, body } = response
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const fail = (why: string) => {
      throw new Error(
        `${why}: ${status} ${body.slice(0, 500)}\nfor ${JSON.stringify(requestText.slice(0, 2_000))}`,
      )
    }
    expectForeseen(response, fail)
    if (status < 400) return
    if (body.includes(token)) fail('an error that exposes a token')
    if (headers.get('content-type') !== 'application/problem+json') fail('an error that is no problem')
    // Responses to HEAD have no body.
    if (body !== '' && typeof JSON.parse(body) !== 'object') fail('a problem that is no object')
  }

  const send: Target['send'] = async (bytes, cut, wait = patience) => {
    const all = Buffer.from(bytes as string)
    const response = await exchange(server.url, all, cut, wait)
    if (response !== null) checkResponse(all.toString('latin1'), response)
    return response
  }

  return {
    instance,
    ledger,
    clients,
    otherToken: other.token,
    random,
    issuer,
    send,
    checkResponse,
    statuses,
    async checkHealth() {
      if (server.process.exitCode !== null || server.process.signalCode !== null)
        throw new Error(`the server ended: ${server.stderr().slice(-2_000)}`)
      const health = await fetch(`${server.url}/healthz`)
      if (health.status !== 200) throw new Error(`/healthz responds with ${health.status}`)
      const failed = server.log().find(({ level }) => Number(level) >= 50)
      if (failed) throw new Error(`an error in the log: ${JSON.stringify(failed)}`)
    },

    async settle() {
      await ledger.check(instance)
      if (ledger.faults.length > 0) throw new Error(ledger.faults.join('\n'))
      await until('the files are closed', async () => (await openFiles(server)) <= files + spareFiles, 60_000)
      const { now } = await memory(server)
      resting ||= now
      if (now > resting + growth) throw new Error(`${now} bytes of memory, ${resting} after the first round`)
      // Each round of a long run then checks about as many items as the first.
      const { total } = await readPage(await server.request('/api/media'))
      for (let more = total - remainingItems; more > 0; more -= 1) await clients.remove(instance)
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}
