import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { gateway, s3Settings } from '../harness/ceph.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startPostgres, stopPostgres } from '../harness/postgres.ts'
import { startPrometheus } from '../harness/prometheus.ts'
import { scrape } from '../harness/scrape.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { startSwitchingProxy } from '../harness/switching-proxy.ts'
import { until } from '../harness/until.ts'

/** Milliseconds between two requests of a client: their rate is above zero in each interval of Prometheus. */
const pause = 500

/** Sends requests that read and store until they are stopped. */
function useAlways(server: TestServer): { stop(): Promise<void> } {
  let isStopped = false
  const run = async () => {
    for (; !isStopped; await setTimeout(pause)) {
      await Promise.all([
        server.request('/api/media').then((response) => response.arrayBuffer()),
        server
          .request('/api/media', { method: 'POST', body: 'text' })
          .then((response) => response.arrayBuffer()),
      ])
    }
  }
  const running = run()
  return {
    async stop() {
      isStopped = true
      await running
    },
  }
}

const readiness = async (server: TestServer) => {
  const { value } = await scrape(server)
  return [value('ready', 'for="reads"'), value('ready', 'for="writes"')]
}

const errorsOf = async (server: TestServer, cause: string) =>
  (await scrape(server)).value('storage_errors_total', `cause="${cause}"`)

/** What fires while neither the database nor the store responds, in alphabetical order. */
const outage = ['MediabucketNotReady', 'MediabucketUnavailable']

/** Expects the alerts of an outage to fire during one and to end after it. */
async function expectOutage(
  server: TestServer,
  cause: string,
  { begin, end }: { readonly begin: () => Promise<unknown>; readonly end: () => Promise<unknown> },
): Promise<void> {
  await using prometheus = await startPrometheus(server.url)
  const clients = useAlways(server)
  try {
    expect(await readiness(server)).toEqual([1, 1])
    expect(await errorsOf(server, cause)).toBe(0)
    await begin()
    const fired = async () => {
      const names = await prometheus.firing()
      return outage.every((name) => names.includes(name))
    }
    await until('the alerts fire', fired, 120_000)
    expect(await readiness(server)).toEqual([0, 0])
    expect(await errorsOf(server, cause)).toBeGreaterThan(0)
    const unready = server.log().find(({ msg }) => msg === 'the service is not ready')
    expect(unready).toMatchObject({ level: 50, reasons: expect.any(Array) })
    await end()
    await until('the alerts end', async () => (await prometheus.firing()).length === 0, 120_000)
    expect(await readiness(server)).toEqual([1, 1])
    expect(server.log().some(({ msg }) => msg === 'the service is ready again')).toBe(true)
  } finally {
    await clients.stop()
  }
}

test.concurrent('O1, O2 alerts fire while PostgreSQL is stopped, and end after it', async ({
  onTestFinished,
}) => {
  const directory = await temporaryDirectory()
  onTestFinished(() => directory[Symbol.asyncDispose]())
  const database = await startPostgres(directory.path)
  onTestFinished(() => stopPostgres(directory.path))
  await using server = await startServer({ MEDIABUCKET_DATABASE_URL: database.url('postgres') })
  await expectOutage(server, 'database-unreachable', {
    begin: () => database.control('-m', 'immediate', 'stop'),
    end: () => database.control('start'),
  })
}, 300_000)

test.concurrent('O1, O2 alerts fire while an S3 store cannot be reached, and end after it', async () => {
  const port = Number(new URL((await gateway()).endpoint).port)
  await using proxy = await startSwitchingProxy(port)
  await using server = await startServer(await s3Settings(`http://127.0.0.1:${proxy.port}`))
  await expectOutage(server, 'bytes-unreachable', {
    // Nothing listens there.
    begin: async () => proxy.switchTo(1),
    end: async () => proxy.switchTo(port),
  })
}, 300_000)
