import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { newWebhookId, newWebhookSecret } from '../packages/server/src/core/webhook-rules.ts'
import { openSqliteCatalog } from '../packages/server/src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { type Bar, barTable } from './bars.ts'
import { startMediabucket } from './mediabucket.ts'
import { seedBucket } from './seed.ts'
import { median } from './subject.ts'

/** How often, how many changes wait, and how many single uploads are timed. */
export interface WebhookExtent {
  readonly rounds: number
  readonly changes: number
  readonly uploads: number
}

export interface WebhookResults {
  /** Changes that are delivered in a second, in lists of 100. */
  readonly perSecond: number
  /** CPU of the service for each change. Seconds. */
  readonly cpuPerChange: number
  /** From the response to an upload to the arrival of its change. Milliseconds. */
  readonly p50: number
  readonly p99: number
}

/** Milliseconds in which the receiver responds. */
const receiverTime = 1

/** One webhook, whose changes wait when the service starts, and then one upload after the other. The receiver has a core of its own. */
export async function benchWebhooks(
  { rounds, changes, uploads }: WebhookExtent,
  report: (text: string) => void,
): Promise<WebhookResults> {
  const rates: number[] = []
  const costs: number[] = []
  const latencies: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const scratch = mkdtempSync(join(tmpdir(), 'mediabucket-bench-'))
    const receiver = await startReceiver()
    try {
      const token = await prepare(scratch, receiver.url, changes)
      const settings = { MEDIABUCKET_WEBHOOK_ALLOW: '127.0.0.1', MEDIABUCKET_LOG_LEVEL: 'warn' }
      const service = await startMediabucket(scratch, settings)
      try {
        const before = service.cpu()
        await receiver.until(changes)
        const seconds = ((receiver.times.at(-1) ?? 0) - receiver.began) / 1_000
        rates.push(changes / seconds)
        costs.push((service.cpu() - before) / changes)
        report(`round ${round}: ${(changes / seconds).toFixed(0)} changes a second`)
        for (let upload = 1; upload <= uploads; upload += 1) {
          const response = await fetch(`${service.url}/api/media`, {
            method: 'POST',
            body: `${upload}`,
            headers: { authorization: `Bearer ${token}` },
          })
          await response.arrayBuffer()
          const sent = performance.now()
          await receiver.until(changes + upload)
          latencies.push(Math.max(0, (receiver.times.at(-1) ?? sent) - sent))
        }
      } finally {
        await service.stop()
      }
    } finally {
      receiver.close()
      rmSync(scratch, { recursive: true, force: true })
    }
  }
  const sorted = latencies.toSorted((one, other) => one - other)
  return {
    perSecond: median(rates),
    cpuPerChange: median(costs),
    p50: sorted[Math.floor(sorted.length / 2)] ?? 0,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
  }
}

async function prepare(directory: string, url: string, items: number): Promise<string> {
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  await catalog.createBucket('b', {}, Date.now())
  const bucket = await catalog.findBucketNamed('b')
  if (bucket === null) throw new Error('no bucket')
  const [id, secret] = [newWebhookId(), newWebhookSecret()]
  const settings = { url, kinds: ['added'], batch: 100 } as const
  await catalog.addWebhook({ ...settings, id, secret, bucketId: bucket.id, createdAt: Date.now() })
  const { token } = await seedBucket(catalog, 'b', { items })
  await catalog.close()
  return token
}

async function startReceiver() {
  let arrived = 0
  /** Of each delivery. */
  const times: number[] = []
  const state = { began: 0 }
  const server = createServer(async (request, response) => {
    if (times.length === 0 && state.began === 0) state.began = performance.now()
    let body = ''
    for await (const chunk of request) body += chunk
    await setTimeout(receiverTime)
    response.writeHead(204).end()
    arrived += body.split('"item.added"').length - 1
    times.push(performance.now())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    times,
    get began() {
      return state.began
    },
    async until(count: number): Promise<void> {
      while (arrived < count) await setTimeout(1)
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** The figures and their required values, as Markdown. */
export function reportWebhooks({ perSecond, cpuPerChange, p50, p99 }: WebhookResults): string {
  const bars: Bar[] = [
    {
      name: 'changes to one webhook, in lists of 100',
      must: '≥ 2,000 changes/s',
      aim: '',
      found: `${perSecond.toFixed(0)} changes/s`,
      met: perSecond >= 2_000,
    },
  ]
  return [
    ...barTable(bars),
    '',
    `A change takes ${(cpuPerChange * 1e6).toFixed(0)} µs of CPU. From the response to an upload to the arrival of its change: median ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms.`,
  ].join('\n')
}
