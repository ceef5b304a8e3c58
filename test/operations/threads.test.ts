import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { expect, test } from 'vitest'
import { startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

const onLinux = test.skipIf(process.platform !== 'linux')

onLinux('all other threads have a lower priority than the main thread', async () => {
  await using server = await startServer()
  const { pid = 0 } = server.process
  const threads = readdirSync(`/proc/${pid}/task`).map((id) => ({
    id: Number(id),
    name: readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim(),
  }))
  const own = getPriority(pid)
  const names = new Set(threads.map(({ name }) => name))
  expect(names).toContain('catalog-writer')
  expect(names).toContain('libuv-worker')
  for (const { id, name } of threads)
    if (id !== pid) expect(getPriority(id), name).toBe(Math.min(own + 5, 19))
})

onLinux(
  'the service limits the young generation of the V8 heap, unless NODE_OPTIONS sets the limit',
  async () => {
    const flagsOf = (pid = 0) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(1, -1)
    await using server = await startServer()
    expect(flagsOf(server.process.pid)).toContain('--max-semi-space-size=16')
    await using configured = await startServer({ NODE_OPTIONS: '--max-semi-space-size=64' })
    expect(flagsOf(configured.process.pid).filter((flag) => flag.includes('semi-space'))).toEqual([])
  },
)

/** A module that is loaded before the service: the thread that writes rows ends when it receives an upload. */
const endThread = `data:text/javascript,${encodeURIComponent(`
  import { isMainThread, parentPort, threadName } from 'node:worker_threads'
  if (!isMainThread && threadName === 'catalog-writer') parentPort.on('message', (list) => {
    if (list?.some(({ request }) => request.kind === 'add-media')) process.exit(3)
  })
`)}`

test('U10 a service whose writing thread has ended stops with an error, and acknowledges no upload', async () => {
  await using server = await startServer({
    NODE_OPTIONS: `--import ${endThread}`,
    // A service that waited for this timeout would not exit: it must stop at once, as no request is in progress.
    MEDIABUCKET_SHUTDOWN_TIMEOUT: '1h',
  })
  const exited = new Promise((resolve) => server.process.once('exit', resolve))
  const response = await server.request('/api/media', { method: 'POST', body: 'text' }).catch(() => null)
  await response?.text()
  expect(response?.status ?? 500).toBeGreaterThanOrEqual(500)
  expect(await exited).toBe(1)
  const line = await until('the log', () =>
    server.log().find(({ msg }) => msg.includes('a thread that writes data has failed')),
  )
  expect(line).toMatchObject({ level: 60 })
})
