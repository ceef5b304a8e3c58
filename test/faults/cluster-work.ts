import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { until } from '../harness/until.ts'
import { readItem, readPage } from '../harness/wire.ts'
import { type Clients, createClients } from './clients.ts'
import type { Ledger } from './ledger.ts'
import type { OtherServer } from './other-server.ts'
import type { Instance } from './server-instances.ts'

/** Bytes. Files are small, because the store of the tests is in memory. */
const largest = 20_000

/** Maximum milliseconds that a client waits between two requests. */
const longestPause = 300

/** Milliseconds within which an upload that is repeated must succeed. */
const retryTimeout = 120_000

/** Clients of several servers: each request goes to a random one. */
export interface ClusterWork {
  readonly clients: Clients
  /** Uploads, resumes, deletes and lists with this many clients until `isDone` returns true. */
  work(isDone: () => boolean, count: number): Promise<void>
}

export function workOn(
  running: () => readonly Instance[],
  ledger: Ledger,
  other: OtherServer | null = null,
): ClusterWork {
  const { random } = ledger
  const clients = createClients(ledger, largest, other)
  /** Bodies of pages by address and entity tag. */
  const pages = new Map<string, string>()

  function anyInstance(): Instance {
    const all = running()
    const instance = all[random(all.length)]
    if (!instance) throw new Error('no server is running')
    return instance
  }

  /** A page is exact, and two responses with the same entity tag are equal, also after a failover. */
  async function list({ server, authorization }: Instance): Promise<number> {
    const number = 1 + random(10)
    const path = `/api/media?page=${number}`
    const response = await server.request(path, { headers: { authorization } })
    const body = await response.clone().text()
    if (response.status !== 200) return response.status
    const { data, total } = await readPage(response)
    if (data.length !== Math.max(0, Math.min(10, total - 10 * (number - 1))))
      ledger.fault('halfVisible', `page ${number} has ${data.length} items of ${total}`)
    const version = `${path} ${response.headers.get('etag')}`
    if ((pages.get(version) ?? body) !== body)
      ledger.fault('halfVisible', `two pages differ and have the same entity tag: ${version}`)
    pages.set(version, body)
    return 200
  }

  /** Repeats an upload with the same key on any server until it is acknowledged; then any server knows the item. */
  async function uploadWithRetries(): Promise<number> {
    const sending = ledger.newSending(random(largest))
    const [file] = sending.files
    const headers = {
      'content-disposition': `attachment; filename="${file?.name}"`,
      'idempotency-key': `"${randomUUID()}"`,
    }
    sending.state = 'unanswered'
    const id = await until(
      'an acknowledged upload',
      async () => {
        const { server, authorization } = anyInstance()
        const init = { method: 'POST', body: file?.bytes ?? null, headers: { ...headers, authorization } }
        const response = await server.request('/api/media', init).catch(() => null)
        if (response?.status === 201) return (await readItem(response)).id
        await response?.arrayBuffer()
        if (response && response.status < 500 && response.status !== 409)
          throw new Error(`an upload receives ${response.status}`)
        await setTimeout(random(longestPause))
        return null
      },
      retryTimeout,
    )
    ledger.stored(sending, [id])
    const { server, authorization } = anyInstance()
    const { status } = await server.request(`/api/media/${id}`, { headers: { authorization } })
    if (status !== 200 && status < 500 && !ledger.isRemoved(id))
      ledger.fault('lost', `${file?.name} was acknowledged; another server responds with ${status}`)
    return 201
  }

  const { raw, form, fromUrl, repeat, resumable, remove } = clients
  const kinds = [raw, form, fromUrl, repeat, resumable, resumable, remove, list, uploadWithRetries]
  return {
    clients,
    async work(isDone, count) {
      const client = async () => {
        while (!isDone()) {
          await kinds[random(kinds.length)]?.(anyInstance()).catch((error: unknown) => {
            // fetch reports a lost connection as a TypeError.
            if (!(error instanceof TypeError)) ledger.fault('halfVisible', String(error))
          })
          await setTimeout(random(longestPause))
        }
      }
      await Promise.all(Array.from({ length: count }, client))
    },
  }
}
