import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { basics, bin, startServer, type TestServer } from '../harness/server.ts'
import { type Started, startBy } from '../harness/started-by.ts'
import { needTools } from '../harness/tools.ts'
import { until } from '../harness/until.ts'
import { readPage } from '../harness/wire.ts'

/** An upload that waits for its last byte. */
async function beginUpload({ url, token }: Pick<TestServer, 'url' | 'token'>) {
  const connection = await openConnection(url)
  connection.send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n`,
  )
  await until('the service receives it', () => connection.received().includes('100 Continue'))
  connection.send('whol')
  return {
    connection,
    async finish() {
      connection.send('e')
      await connection.closed
      return connection.received().replace(/^.*100 Continue\r\n\r\n/s, '')
    },
  }
}

const hasStopped = ({ output }: Pick<Started, 'output'>) => output().includes('"msg":"stopped"')

/** Starts a service on the data of `started`; fails if the data is still locked. */
async function itemsAfter({ data, token }: Started): Promise<number> {
  await using next = await startServer({}, data)
  const headers = { authorization: `Bearer ${token}` }
  return (await readPage(await next.request('/api/media', { headers }))).total
}

const npmStart = ['npm', 'start', '--ignore-scripts'] as const
const npx = ['npx', '--no-install', 'mediabucket', 'serve'] as const

test.concurrent.each(['SIGTERM', 'SIGINT'] as const)(
  'O5, O9 %s to `npm start` stops the service: an upload in progress completes, then npm exits',
  async (signal) => {
    await using started = await startBy(npmStart)
    const upload = await beginUpload(started)
    started.process.kill(signal)
    await until('it stops', () => started.output().includes('"msg":"stopping"'))
    expect(await upload.finish()).toMatch(/^HTTP\/1\.1 201 /)
    expect(await started.exited).toEqual([0, null])
    expect(started.isRunning()).toBe(false)
    // The last lines of a process can be read after its exit is reported.
    await until('its end is logged', () => hasStopped(started))
    expect(await itemsAfter(started)).toBe(1)
  },
)

test.concurrent.each([
  ['SIGTERM', npx],
  ['SIGKILL', npx],
  ['SIGKILL', npmStart],
] as const)('O9 %s that ends `%s` stops the service after it', async (signal, command) => {
  await using started = await startBy(command)
  const upload = await beginUpload(started)
  started.process.kill(signal)
  await started.exited
  await until('it stops', () => started.output().includes('"msg":"stopping"'))
  expect(await upload.finish()).toMatch(/^HTTP\/1\.1 201 /)
  await until('it has ended', () => !started.isRunning() && hasStopped(started))
  expect(await itemsAfter(started)).toBe(1)
})

test.concurrent('O9 a service in the background continues after npx has ended', async () => {
  await using started = await startBy(['npx', '--no-install', '-c', 'mediabucket serve & read line'])
  started.process.stdin?.end('\n')
  await started.exited
  const ended = performance.now()
  await until('the parent process was checked several times', async () => {
    expect((await fetch(`${started.url}/healthz`)).status).toBe(200)
    return performance.now() - ended > 1_500
  })
})

test.concurrent('O9 SIGHUP, SIGUSR1 and SIGUSR2 do not stop the service and open no debugger', async () => {
  await using server = await startServer({}, undefined, bin, [])
  for (const signal of ['SIGUSR1', 'SIGHUP', 'SIGUSR2'] as const) server.process.kill(signal)
  for (const msg of ['read the settings again', 'ignored'])
    await until(msg, () => server.log().some((line) => line.msg === msg))
  expect((await server.request('/api/media')).status).toBe(200)
  // Node.js announces a debugger in plain text, outside the log.
  expect(server.stderr()).not.toContain('Debugger')
  expect(await server.stop()).toBe(0)
})

test.concurrent('O9 SIGUSR1 opens no debugger where the process cannot restart with its own flags', async () => {
  await using directory = await temporaryDirectory()
  const env = { ...basics, MEDIABUCKET_PORT: '0', MEDIABUCKET_DATA: directory.path }
  const child = spawn(process.execPath, [bin, 'serve'], { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk) => {
      output += chunk
    })
  await until('it listens', () => output.includes('"msg":"listening"'))
  child.kill('SIGUSR1')
  child.kill('SIGHUP')
  await until('a later signal is handled', () => output.includes('"msg":"read the settings again"'))
  expect(output).not.toContain('Debugger')
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
})

test.concurrent('O9 the service continues after its outputs are closed', async () => {
  await using server = await startServer()
  server.process.stdout?.destroy()
  server.process.stderr?.destroy()
  // The service must survive this and later writes of log lines to a closed pipe.
  for (let count = 0; count < 200; count++) expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
  server.process.kill('SIGPIPE')
  server.process.kill('SIGHUP')
  expect((await server.request('/api/media')).status).toBe(200)
  expect(await server.stop()).toBe(0)
})

test.concurrent('O9 two signals at the same time, as Ctrl-C below npm sends them, count as one', async () => {
  await using server = await startServer({ MEDIABUCKET_SHUTDOWN_TIMEOUT: '60s' })
  const upload = await beginUpload(server)
  const exited = once(server.process, 'exit')
  server.process.kill('SIGINT')
  server.process.kill('SIGTERM')
  await until('it stops', () => server.log().some(({ msg }) => msg === 'stopping'))
  expect(await upload.finish()).toMatch(/^HTTP\/1\.1 201 /)
  expect(await exited).toEqual([0, null])
})

test.concurrent.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('O9 a second %s ends the service at once with %i', async (signal, code) => {
  await using server = await startServer({ MEDIABUCKET_SHUTDOWN_TIMEOUT: '60s' })
  const { connection } = await beginUpload(server)
  const exited = once(server.process, 'exit')
  server.process.kill('SIGTERM')
  await until('it stops', () => server.log().some(({ msg }) => msg === 'stopping'))
  await until('it has ended', () => {
    server.process.kill(signal)
    return server.process.exitCode !== null
  })
  expect(await exited).toEqual([code, null])
  expect(connection.received()).not.toMatch(/ 201 /)
  expect(server.log().at(-1)).toMatchObject({ signal, msg: expect.stringContaining('second') })
})

test('O9 a service stops when its terminal is closed', { concurrent: true }, async () => {
  needTools('script')
  // Standard input and output are the terminal; the log is redirected.
  const command = `${process.execPath} ${bin} serve 2>&3`
  await using started = await startBy(['sh', '-c', `exec 3>&2; exec script -qfec '${command}' /dev/null`])
  started.process.kill('SIGKILL')
  await until('it has ended', () => !started.isRunning())
})
