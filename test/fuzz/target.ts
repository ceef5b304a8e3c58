import { connect } from 'node:net'
import { type Clients, createClients } from '../faults/clients.ts'
import { createLedger, type Ledger } from '../faults/ledger.ts'
import type { Life } from '../faults/lives.ts'
import { parseAnswer, type RawAnswer } from '../harness/raw-http.ts'
import { memory, openFiles } from '../harness/resources.ts'
import { startServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { readPage } from '../harness/wire.ts'
import type { Random } from './random.ts'

/** A running server under fuzz, and what it is held to. */
export interface Target extends AsyncDisposable {
  readonly life: Life
  readonly ledger: Ledger
  readonly clients: Clients
  /** Of another bucket, whose items the ledger does not know. */
  readonly otherToken: string
  readonly random: Random
  /** Sends bytes, reads until the server closes, and judges the answer; `cut` breaks the connection behind so many. */
  send(bytes: string | Uint8Array, cut?: number): Promise<RawAnswer | null>
  /** Holds an answer to the rules of errors (docs/interface.md P1, P3); `asked` is shown where it does not keep them. */
  judge(asked: string, answer: RawAnswer): void
  /** Answers by their status. */
  readonly statuses: Map<number, number>
  /** The server lives, and has logged no error. */
  checkHealth(): Promise<void>
  /** After a round: everything that was stored is there, and files and memory are back. Then most items are deleted. */
  settle(): Promise<void>
}

/** What may be answered beyond 499: unsupported, busy, full. */
const foreseen: ReadonlySet<number> = new Set([501, 503, 505, 507])
const secrets = /mbkt_[0-9a-z]{8}|\/tmp\/|node_modules|\.[tj]s:\d+| at \w+ \(/

/** Milliseconds for which a client waits for an answer to what may not be a request. */
const patience = 2_000
/** Bytes that the service may hold beyond what it held after the first round. */
const growth = 200_000_000
/** Descriptors that may be open beyond those of the start: threads and caches of the service itself. */
const spareFiles = 25
/** Items that stay from one round to the next. */
const keptItems = 60

export async function openTarget(random: Random): Promise<Target> {
  const server = await startServer({
    MEDIABUCKET_HEADER_TIMEOUT: '10s',
    MEDIABUCKET_IDLE_TIMEOUT: '30s',
    MEDIABUCKET_TOKEN_RATE: 'off',
    MEDIABUCKET_ADDRESS_RATE: 'off',
    MEDIABUCKET_AUTH_FAILURE_RATE: 'off',
    MEDIABUCKET_MAX_FILE_SIZE: '2MB',
  })
  const { token } = server
  const life = { server, token, authorization: `Bearer ${token}`, tus: tusOf(server) }
  const ledger = createLedger()
  const clients = createClients(ledger)
  const other = await makeToken(server, '--bucket', 'hostile')
  const statuses = new Map<number, number>()
  const files = await openFiles(server)
  let resting = 0

  function judge(asked: string, answer: RawAnswer): void {
    const { status, headers, body } = answer
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    const fail = (why: string) => {
      throw new Error(`${why}: ${status} ${body.slice(0, 500)}\nfor ${JSON.stringify(asked.slice(0, 2_000))}`)
    }
    if (!(status >= 100 && status < 600)) fail('no HTTP answer')
    if (status >= 500 && !foreseen.has(status)) fail('an error of the server')
    if (status < 400) return
    if (secrets.test(body) || body.includes(token)) fail('an error that shows too much')
    if (headers.get('content-type') !== 'application/problem+json') fail('an error that is no problem')
    // HEAD has none.
    if (body !== '' && typeof JSON.parse(body) !== 'object') fail('a problem that is no object')
  }

  const send: Target['send'] = (bytes, cut) =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(server.url)
      const all = Buffer.from(bytes as string)
      const socket = connect(Number(port), hostname)
      const chunks: Buffer[] = []
      socket.write(cut === undefined ? all : all.subarray(0, cut), () => {
        if (cut !== undefined) socket.destroy()
      })
      socket.setTimeout(patience, () => socket.destroy())
      socket.on('data', (chunk) => chunks.push(chunk))
      // A reset is one way to end.
      socket.on('error', () => undefined)
      socket.on('close', () => {
        if (cut !== undefined || chunks.length === 0) return resolve(null)
        try {
          const answer = parseAnswer(Buffer.concat(chunks).toString('latin1'))
          judge(all.toString('latin1'), answer)
          resolve(answer)
        } catch (error) {
          reject(error)
        }
      })
    })

  return {
    life,
    ledger,
    clients,
    otherToken: other.token,
    random,
    send,
    judge,
    statuses,
    async checkHealth() {
      if (server.process.exitCode !== null || server.process.signalCode !== null)
        throw new Error(`the server ended: ${server.stderr().slice(-2_000)}`)
      const health = await fetch(`${server.url}/healthz`)
      if (health.status !== 200) throw new Error(`/healthz answers ${health.status}`)
      const failed = server.log().find(({ level }) => Number(level) >= 50)
      if (failed) throw new Error(`an error in the log: ${JSON.stringify(failed)}`)
    },

    async settle() {
      await ledger.check(life)
      if (ledger.faults.length > 0) throw new Error(ledger.faults.join('\n'))
      await until('the files are closed', async () => (await openFiles(server)) <= files + spareFiles, 60_000)
      const { now } = await memory(server)
      resting ||= now
      if (now > resting + growth) throw new Error(`${now} bytes of memory, ${resting} after the first round`)
      // So that a long run checks as much in each round as in the first.
      const { total } = await readPage(await server.request('/api/media'))
      for (let more = total - keptItems; more > 0; more -= 1) await clients.remove(life)
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
