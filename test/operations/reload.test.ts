import { once } from 'node:events'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { s3Settings } from '../harness/ceph.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { readEvents } from '../harness/events.ts'
import { freePort } from '../harness/free-port.ts'
import { expectProblem } from '../harness/problem.ts'
import { scrape } from '../harness/scrape.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { startBy } from '../harness/started-by.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { workersOf } from '../harness/workers.ts'

/** A service that reads its settings from a file, which `change` replaces. */
async function startWithFile(lines: readonly string[], workers: string) {
  const directory = await temporaryDirectory()
  onTestFinished(() => directory[Symbol.asyncDispose]())
  const [file, data] = [join(directory.path, 'env'), join(directory.path, 'data')]
  const write = (settings: readonly string[]) =>
    writeFile(file, `MEDIABUCKET_DATA=${data}\nMEDIABUCKET_PORT=0\n${settings.join('\n')}\n`)
  await write(lines)
  const started = await startBy(['npx', '--no-install', 'mediabucket', '--env-file', file, 'serve'], {
    MEDIABUCKET_DATA: '',
    MEDIABUCKET_WORKERS: workers,
  })
  onTestFinished(() => started[Symbol.asyncDispose]())
  const logged = (text: string) => started.output().split(text).length - 1
  const headers = { authorization: `Bearer ${started.token}` }
  return {
    ...started,
    send: (path: string, init: RequestInit = {}) =>
      fetch(started.url + path, { ...init, headers: { ...headers, ...init.headers } }),
    /** Resolves when the service has read the file. `message` is what it logs. */
    async change(settings: readonly string[], message = 'read the settings again') {
      const before = logged(message)
      await write(settings)
      process.kill(started.pid(), 'SIGHUP')
      await until(message, () => logged(message) > before)
    },
  }
}

test.each(['1', '2'])(
  'O13, W2, C1 SIGHUP reads rates, origins and the level of the log again, in %s workers, without a lost request',
  async (workers) => {
    const service = await startWithFile(['MEDIABUCKET_CORS_ORIGINS=https://a.example'], workers)
    const allowed = async (origin: string) =>
      (await service.send('/healthz', { headers: { origin } })).headers.get('access-control-allow-origin')
    expect(await allowed('https://b.example')).toBe(null)
    await service.change([
      'MEDIABUCKET_CORS_ORIGINS=https://b.example',
      'MEDIABUCKET_TOKEN_RATE=1/1h',
      'MEDIABUCKET_LOG_LEVEL=warn',
      'MEDIABUCKET_MAX_FILE_SIZE=1MB',
    ])
    await until('all workers have the settings', async () => (await allowed('https://b.example')) !== null)
    expect(await allowed('https://a.example')).toBe(null)
    expect(service.output()).toMatch(/"settings":\["maxFileSize"\],"msg":"these settings need a restart"/)
    await until('the limit applies', async () => (await service.send('/api/media')).status === 429)
    // A removed line is the default again.
    await service.change(['MEDIABUCKET_CORS_ORIGINS=https://b.example'])
    await until('the limit is gone', async () => (await service.send('/api/media')).status === 200)
  },
)

test('O9, O13 a faulty file changes nothing and ends nothing, and the first origin needs a restart', async () => {
  const service = await startWithFile([], '1')
  for (const lines of [['MEDIABUCKET_TOKEN_RATE=often'], ['no setting'], ['MEDIABUCKET_TOKEN_RAET=1/1h']])
    await service.change([...lines, 'MEDIABUCKET_READ_ONLY=on'], 'the settings stay as they were')
  expect((await service.send('/api/media', { method: 'POST', body: 'x' })).status).toBe(201)
  await service.change(['MEDIABUCKET_CORS_ORIGINS=https://a.example'], 'these settings need a restart')
  const { headers } = await service.send('/healthz', { headers: { origin: 'https://a.example' } })
  expect(headers.get('access-control-allow-origin')).toBe(null)
})

test('O11, O13 a worker that starts after a reload has its settings, and none that need a restart or are wrong', async () => {
  const service = await startWithFile([], '2')
  const workers = () => workersOf({ process: { pid: service.pid() } })
  await service.change(['MEDIABUCKET_READ_ONLY=on', 'MEDIABUCKET_MAX_FILE_SIZE=1'])
  await service.change(['MEDIABUCKET_TOKEN_RATE=often'], 'the settings stay as they were')
  const first = workers()
  for (const pid of first) process.kill(pid, 'SIGKILL')
  const store = () => service.send('/api/media', { method: 'POST', body: 'xyz' }).catch(() => null)
  const isReplaced = async () => !workers().some((pid) => first.includes(pid)) && (await store())
  const refused = await until('the first workers are replaced', isReplaced)
  await expectProblem(refused, 503, 'read-only')
  await service.change([])
  await until('changes are possible', async () => (await store())?.status === 201)
})

test('O9 SIGHUP does not end a start', async () => {
  // From the moment at which the program, which restarts itself with flags of Node.js, runs its first lines.
  const script = `mediabucket serve & child=$!
    until grep -q disable-sigusr1 /proc/$child/cmdline && grep -q '^SigCgt:.*[13579bdf]$' /proc/$child/status; do :; done
    while kill -HUP $child; do sleep 0.01; done`
  const service = await startBy(['npx', '--no-install', '-c', script])
  onTestFinished(() => service[Symbol.asyncDispose]())
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
})

/** Requests that change something, and those that do not. */
async function expectReadOnly(server: TestServer, id: string): Promise<void> {
  const change = (method: string, path: string, body?: string) =>
    server.request(path, {
      method,
      ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } }),
    })
  for (const refused of [
    change('POST', '/api/media', 'x'),
    change('PATCH', `/api/media/${id}`, '{"caption":"x"}'),
    change('DELETE', `/api/media/${id}`),
    change('POST', '/api/tokens', '{"name":"x"}'),
    change('POST', '/api/uploads', ''),
  ])
    expect((await expectProblem(await refused, 503, 'read-only')).detail).toContain('accepts no changes')
  for (const path of ['/api/media', `/api/media/${id}`, `/media/${id}`, '/readyz', '/healthz'])
    expect((await server.request(path)).status, path).toBe(200)
  const links = await change('POST', '/api/links', JSON.stringify({ ids: [id] }))
  expect(links.status).toBe(200)
  expect((await fetch(`${server.url}/readyz?writes`)).status).toBe(503)
  const { value } = await scrape(server)
  expect([value('read_only'), value('ready', 'for="reads"'), value('ready', 'for="writes"')]).toEqual([
    1, 1, 0,
  ])
}

test('O13, O1, O3 a read-only service refuses changes, serves everything else, and logs no errors', async () => {
  await using first = await startServer()
  const { id } = await upload(first, 'kept')
  await first.stop()
  await using server = await startServer({ MEDIABUCKET_READ_ONLY: 'on' }, first.data)
  await expectReadOnly({ ...server, token: first.token, request: withToken(server, first.token) }, id)
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  expect(server.log().filter(({ level }) => Number(level) >= 40)).toEqual([])
  expect(server.log().filter(({ msg }) => msg === 'the service is read-only')).toHaveLength(1)
})

const withToken = (server: TestServer, token: string): TestServer['request'] => {
  return (path, init = {}) => {
    const headers = new Headers(init.headers)
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${token}`)
    return server.request(path, { ...init, headers })
  }
}

test.each(['1', '2'])(
  'O5, FE8 with a delay, a service of %s workers that stops accepts requests and continues streams while it is not ready, and then ends',
  async (workers) => {
    await using server = await startServer({
      MEDIABUCKET_SHUTDOWN_DELAY: '10s',
      MEDIABUCKET_WORKERS: workers,
    })
    const follow = async () =>
      readEvents(await server.request('/api/changes', { headers: { accept: 'text/event-stream' } }))
    const before = await follow()
    const exited = once(server.process, 'exit')
    server.process.kill('SIGTERM')
    await until('it is not ready', async () => (await fetch(`${server.url}/readyz`)).status === 503)
    // A stream that ended now would be opened again here, and end again.
    const during = await follow()
    const stored = await server.request('/api/media', { method: 'POST', body: 'late' })
    expect([stored.status, stored.headers.get('connection')]).toEqual([201, 'close'])
    for (const stream of [before, during]) {
      expect((await stream.first(1)).map(({ change }) => change.type)).toEqual(['added'])
      expect(stream.state.hasEnded).toBe(false)
    }
    expect(await exited).toEqual([0, null])
    await Promise.all([before.end(), during.end()])
  },
)

test('O14 serve --check finds all errors and starts nothing', async () => {
  await using directory = await temporaryDirectory()
  const data = join(directory.path, 'data')
  const check = (settings: Readonly<Record<string, string>>, ...options: string[]) =>
    runCommand(['serve', '--check', ...options], { MEDIABUCKET_DATA: data, ...settings })
  expect((await check({})).stdout).toBe('The settings are valid.\n')
  expect((await check({}, '--connect')).stdout).toContain('can be reached')
  const below = { MEDIABUCKET_DATA: join(data, 'one', 'two') }
  expect((await check(below, '--connect')).stdout).toContain('can be reached')
  expect(await directory.names()).toEqual([])
  await mkdir(data)
  expect((await check({}, '--connect')).stdout).toContain('can be reached')
  expect(await readdir(data)).toEqual([])
  await rm(data, { recursive: true })
  expect(await directory.names()).toEqual([])
  if (process.getuid?.() === 0)
    expect((await check({}, '--connect')).stderr).toContain(
      `${data} does not exist yet, and only root was checked`,
    )
  await writeFile(data, '')
  await expect(check({}, '--connect')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${data} is a file, not a directory`),
  })
  await rm(data)
  // Settings are checked before a restart too.
  await using server = await startServer()
  expect((await check({ MEDIABUCKET_DATA: server.data }, '--connect')).stdout).toContain('can be reached')
  await expect(check({ MEDIABUCKET_PORT: 'x', MEDIABUCKET_LINKS: 'some' })).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/2 settings are wrong:.*MEDIABUCKET_PORT.*MEDIABUCKET_LINKS/s),
  })
  await expect(runCommand(['serve', '--connect'], { MEDIABUCKET_DATA: data })).rejects.toMatchObject({
    code: 2,
  })
  const port = await freePort()
  const unreachable = { MEDIABUCKET_DATABASE_URL: `postgres://127.0.0.1:${port}/x` }
  expect((await check(unreachable)).stdout).toBe('The settings are valid.\n')
  await expect(check(unreachable, '--connect')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`127.0.0.1:${port}`),
  })
})

test.runIf(process.platform === 'linux')(
  'O14 serve --check --connect names a data directory in which nothing can be created, whatever its rights are',
  async () => {
    for (const path of ['/proc/new', '/proc', '/sys/new/data'])
      await expect(
        runCommand(['serve', '--check', '--connect'], { MEDIABUCKET_DATA: path }),
      ).rejects.toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/\/(?:proc|sys)\S* cannot be/),
      })
  },
)

test('O14 serve --check --connect reaches an S3 store, and names one that it cannot reach', async () => {
  await using directory = await temporaryDirectory()
  const check = async (settings: Readonly<Record<string, string>>) =>
    runCommand(['serve', '--check', '--connect'], { MEDIABUCKET_DATA: directory.path, ...settings })
  expect((await check(await s3Settings())).stdout).toContain('can be reached')
  await expect(check(await s3Settings(`http://127.0.0.1:${await freePort()}`))).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('MEDIABUCKET_BLOBS_URL'),
  })
})
