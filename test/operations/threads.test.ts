import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { bin, runCommand, startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'

const onLinux = test.skipIf(process.platform !== 'linux')

onLinux(
  'all other threads start when they are needed, with a lower priority than the main thread',
  async () => {
    await using server = await startServer()
    const { pid = 0 } = server.process
    const listThreads = () =>
      readdirSync(`/proc/${pid}/task`).map((id) => ({
        id: Number(id),
        name: readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8').trim(),
      }))
    // This probe starts none. /readyz and /metrics write a file.
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    expect(listThreads().length).toBeLessThanOrEqual(13)
    for (const { name } of listThreads())
      expect(name).not.toMatch(/^(content-reader|variants|file-reader|libuv-worker)$/)
    const { id } = await uploadPicture(server, quarters(100, 100).png().toBuffer(), 'image/png')
    for (const url of [variantUrl(server, id), `${server.url}/media/${id}`])
      expect((await fetch(url)).status).toBe(200)
    const threads = listThreads()
    const own = getPriority(pid)
    const names = new Set(threads.map(({ name }) => name))
    for (const name of ['catalog-writer', 'content-reader', 'variants']) expect(names).toContain(name)
    expect(names).toContain('libuv-worker')
    for (const { id, name } of threads)
      if (id !== pid) expect(getPriority(id), name).toBe(Math.min(own + 8, 19))
  },
)

onLinux(
  'the service limits the young generation of the V8 heap, unless NODE_OPTIONS sets the limit',
  async () => {
    const flagsOf = (pid = 0) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(1, -1)
    await using server = await startServer({}, undefined, bin, [])
    expect(flagsOf(server.process.pid)).toContain('--max-semi-space-size=16')
    const options = { NODE_OPTIONS: '--max-semi-space-size=64' }
    await using configured = await startServer(options, undefined, bin, [])
    expect(flagsOf(configured.process.pid).filter((flag) => flag.includes('semi-space'))).toEqual([])
  },
)

/** A module that prints the flags of a process, the tag by which V8 finds compiled code, and each flag that is set later. */
const printFlags = `data:text/javascript,${encodeURIComponent(`
  const v8 = process.getBuiltinModule('node:v8')
  const print = (line) => console.error(JSON.stringify({ msg: line }))
  print(['flags', ...process.execArgv, v8.cachedDataVersionTag()].join(' '))
  const set = v8.setFlagsFromString
  v8.setFlagsFromString = (flag) => { print('set ' + flag); set(flag) }
  process.getBuiltinModule('node:module').syncBuiltinESMExports()
`)}`

onLinux(
  'a sync limits the young generation of the V8 heap and collects the old one when it has doubled; it starts with compiled code, as a service does',
  async () => {
    const { stdout: tag } = await promisify(execFile)(process.execPath, ['-p', 'v8.cachedDataVersionTag()'])
    const settings = { NODE_OPTIONS: `--import ${printFlags}` }
    await using server = await startServer(settings, undefined, bin, [])
    expect(server.stderr()).toContain(`flags --disable-sigusr1 --max-semi-space-size=16 ${tag.trim()}"`)
    await using directory = await temporaryDirectory()
    const { stderr } = await runCommand(['sync', directory.path], {
      ...{ ...settings, MEDIABUCKET_URL: server.url, MEDIABUCKET_TOKEN: server.token },
      XDG_STATE_HOME: directory.path,
    })
    expect(stderr).toContain(`flags --disable-sigusr1 --max-semi-space-size=2 ${tag.trim()}"`)
    expect(stderr).toContain('"set --heap-growing-percent=100"')
  },
)

/** A module that is loaded before the service: the thread that writes rows ends when it receives an upload. */
const endThread = `data:text/javascript,${encodeURIComponent(`
  import { isMainThread, parentPort, threadName } from 'node:worker_threads'
  if (!isMainThread && threadName === 'catalog-writer') parentPort.on('message', (list) => {
    if (list?.some(({ request }) => request.kind === 'addItems')) process.exit(3)
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
    server.log().find(({ msg }) => msg.includes('the thread catalog-writer has ended')),
  )
  expect(line).toMatchObject({ level: 60 })
})
