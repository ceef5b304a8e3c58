import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { root } from '../architecture/sources.ts'
import { newToken, urlsOf } from '../client/buckets.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { startWatchedProxy } from '../harness/watched-proxy.ts'
import { commandLine } from './client-run.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const bytes = randomBytes(19_000_000)
const sha256 = createHash('sha256').update(bytes).digest('hex')
const chunkSize = 8 * 1024 * 1024

const withoutLocks = (names: readonly string[]) => names.filter((name) => !name.endsWith('.lock'))

/** A large file, a directory for the client's state, and a proxy to the server with a new bucket. */
async function scene(name: string) {
  const directory = await temporaryDirectory()
  const proxy = await startWatchedProxy(() => server.url)
  const token = await newToken(server, name)
  const file = join(directory.path, 'big.bin')
  const home = join(directory.path, 'state')
  await writeFile(file, bytes)

  function start(...args: string[]) {
    const { command, env } = commandLine({ url: proxy.url, token }, 'upload', ...args)
    const [program = '', ...rest] = command
    const child = spawn(program, rest, {
      env: { ...env, XDG_STATE_HOME: home },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    const stderr = text(child.stderr)
    const exited = once(child, 'close').then(async ([code, signal]) => {
      return { code, signal, stdout, stderr: await stderr }
    })
    return { child, exited, printed: () => stdout }
  }
  /** Ends a process with this signal during the third chunk of the file. */
  async function stopped(signal: NodeJS.Signals, ...args: string[]) {
    const reached = proxy.hold(({ offset, bytes }) => offset === 2 * chunkSize && bytes > 1_000_000)
    const { child, exited } = start(...args)
    await reached
    child.kill(signal)
    const ended = await exited
    proxy.passed.length = 0
    return ended
  }
  return {
    directory,
    proxy,
    token,
    file,
    home,
    client: createClient({ url: server.url, token }),
    states: join(home, 'mediabucket/uploads'),
    /** The names of the files there, without locks. */
    stored: async () => withoutLocks(await readdir(join(home, 'mediabucket/uploads'))),
    start,
    stopped,
    run: (...args: string[]) => start(...args).exited,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
    },
  }
}

test('R6 kill -9 during a large file: the same command sends only the rest and stores one item', async () => {
  await using at = await scene('killed')
  expect(await at.stopped('SIGKILL', at.file)).toMatchObject({ signal: 'SIGKILL', stdout: '' })

  const isLock = (name: string) => name.endsWith('.lock')
  const [name = '', ...others] = (await readdir(at.states)).toSorted((one) => (isLock(one) ? 1 : -1))
  expect(others.map(isLock)).toEqual([true])
  expect(await readFile(join(at.states, others[0] ?? ''), 'utf8')).not.toContain(at.token)
  const state = await stat(join(at.states, name))
  expect([state.mode & 0o777, (await stat(at.states)).mode & 0o777]).toEqual([0o600, 0o700])
  const kept = `${name} ${await readFile(join(at.states, name), 'utf8')}`
  expect(kept).not.toContain(at.token)
  expect(kept).toMatch(/^[0-9a-f]{64} \w+\n$/)

  const { code, stdout, stderr } = await at.run(at.file)
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/^\S+\/big\.bin: resumed at 88 %\nUploaded 1 of 1 file, 19\.0 MB/),
  ])
  expect(at.proxy.passed.map(({ method }) => method)).toEqual(['HEAD', 'PATCH', 'GET'])
  expect(at.proxy.chunks()[0]?.offset).toBe(2 * chunkSize)
  expect(at.proxy.chunks().reduce((sum, one) => sum + one.bytes, 0)).toBe(bytes.length - 2 * chunkSize)
  const url = stdout.split('\t')[0] ?? ''
  expect(await urlsOf(at.client)).toEqual([url])
  expect(await at.client.describe(url)).toMatchObject({ filename: 'big.bin', size: bytes.length, sha256 })
  expect(await at.stored()).toEqual([])
  const back = Buffer.from(await (await fetch(url)).arrayBuffer())
  expect(back.equals(bytes)).toBe(true)

  // The upload is complete, so the same command starts a new one.
  expect((await at.run(at.file)).stderr).not.toContain('resumed')
  expect(await urlsOf(at.client)).toHaveLength(2)
})

test('R6 Ctrl-C prints how to resume, and the same command resumes', async () => {
  await using at = await scene('interrupted')
  expect(await at.stopped('SIGINT', at.file)).toMatchObject({
    code: 130,
    stderr: expect.stringMatching(/\nRun the same command again to continue\.\n$/),
  })
  expect((await at.run(at.file)).stderr).toMatch(/resumed at 88 %/)
  expect((await at.client.listPage(1)).total).toBe(1)
})

test('R6 of several files, those completed before the kill are not sent again', async () => {
  await using at = await scene('several')
  const done = join(at.directory.path, 'done.bin')
  await writeFile(done, bytes.subarray(0, 17_000_000))
  const reached = at.proxy.hold(({ offset, bytes }) => offset === 2 * chunkSize && bytes > 1_000_000)
  const { child, exited, printed } = at.start(done, at.file)
  await reached
  await until('the other one is printed', () => printed().includes('done.bin'))
  child.kill('SIGKILL')
  await exited
  const [finished] = await urlsOf(at.client)
  at.proxy.passed.length = 0
  const { code, stdout } = await at.run(done, at.file)
  expect(code).toBe(0)
  const urls = stdout
    .trim()
    .split('\n')
    .map((line) => line.split('\t')[0])
  expect(await urlsOf(at.client)).toEqual(urls)
  expect(urls[0]).toBe(finished)
  expect(at.proxy.chunks()[0]?.offset).toBe(2 * chunkSize)
  expect(at.proxy.chunks().reduce((sum, one) => sum + one.bytes, 0)).toBe(bytes.length - 2 * chunkSize)
})

test('I2 small files of a killed run are stored once, and those deleted since are stored again', async () => {
  await using at = await scene('small')
  const names = ['a.txt', 'b.txt', 'c.txt']
  // The last file is given twice: two items, in each run.
  const paths = [...names, 'c.txt'].map((name) => join(at.directory.path, name))
  for (const path of paths) await writeFile(path, path)
  const reached = at.proxy.hold(({ offset, bytes }) => offset === 2 * chunkSize && bytes > 1_000_000)
  const { child, exited, printed } = at.start(...paths, at.file)
  await reached
  await until('the small ones are printed', () => printed().split('\n').length === paths.length + 1)
  child.kill('SIGKILL')
  await exited
  const stored = await urlsOf(at.client)
  const [deleted = ''] = stored
  await at.client.delete(deleted)

  const { code, stdout } = await at.run(...paths, at.file)
  expect(code).toBe(0)
  const listed = await urlsOf(at.client)
  expect([stored.length, listed.length]).toEqual([4, 5])
  expect(listed).toEqual(expect.arrayContaining(stored.slice(1)))
  expect(listed).not.toContain(deleted)
  expect(new Set(stdout.match(/^\S+/gm))).toEqual(new Set(listed))
  expect(await at.stored()).toEqual([])

  // The run was complete, so the same command stores the files once more.
  expect((await at.run(...paths)).code).toBe(0)
  expect((await at.client.listPage(1)).total).toBe(9)
})

test('a second upload of the same files, or of some of them, is refused while the first is running', async () => {
  await using at = await scene('at-once')
  const small = join(at.directory.path, 'small.txt')
  await writeFile(small, 'small')
  const reached = at.proxy.hold(({ offset, bytes }) => offset === 2 * chunkSize && bytes > 1_000_000)
  const first = at.start(small, at.file)
  await reached
  const refused = {
    code: 1,
    stdout: '',
    stderr: `mediabucket: another upload of these files is in progress: process ${first.child.pid}. Wait until it ends, or stop it and run the command again to continue.\n`,
  }
  expect(await at.run(small, at.file)).toMatchObject(refused)
  expect(await at.run(small)).toMatchObject(refused)
  at.proxy.cut()
  expect((await first.exited).code).toBe(0)
  expect((await at.client.listPage(1)).total).toBe(2)
  expect(await at.stored()).toEqual([])
})

test('kill -9 of npx ends the upload that it has started, and the same command continues it', async () => {
  await using at = await scene('npx')
  const small = join(at.directory.path, 'small.txt')
  await writeFile(small, 'small')
  const reached = at.proxy.hold(({ offset, bytes }) => offset === 2 * chunkSize && bytes > 1_000_000)
  const { env } = commandLine({ url: at.proxy.url, token: at.token })
  const npx = spawn('npx', ['--no-install', 'mediabucket', 'upload', small, at.file], {
    cwd: root,
    env: { ...process.env, ...env, XDG_STATE_HOME: at.home },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  await reached
  npx.kill('SIGKILL')
  // Standard error is closed when the last process that has it ends.
  expect(await text(npx.stderr)).toMatch(/Run the same command again to continue\.\n$/)
  expect(await at.run(small, at.file)).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('resumed at 88 %'),
  })
  expect((await at.client.listPage(1)).total).toBe(2)
})

test('the same file given twice becomes two items', async () => {
  await using at = await scene('twice')
  expect((await at.run(at.file, at.file)).code).toBe(0)
  expect((await at.client.listPage(1)).total).toBe(2)
})

test('R6 the upload of a changed file starts again', async () => {
  await using at = await scene('changed')
  await at.stopped('SIGKILL', at.file)
  const other = randomBytes(bytes.length)
  await writeFile(at.file, other)
  const { stdout, stderr } = await at.run(at.file)
  expect(stderr).not.toContain('resumed')
  expect(at.proxy.chunks()[0]?.offset).toBe(0)
  expect((await at.client.describe(stdout.split('\t')[0] ?? '')).sha256).toBe(
    createHash('sha256').update(other).digest('hex'),
  )
})

test('R6 another token does not resume the upload', async () => {
  await using at = await scene('ours')
  await at.stopped('SIGKILL', at.file)
  const other = await newToken(server, 'theirs')
  const { command, env } = commandLine({ url: at.proxy.url, token: other }, 'upload', at.file)
  const [program = '', ...rest] = command
  const child = spawn(program, rest, { env: { ...env, XDG_STATE_HOME: join(at.directory.path, 'state') } })
  expect(await once(child, 'close')).toEqual([0, null])
  expect(at.proxy.passed.some(({ method }) => method === 'HEAD')).toBe(false)
  expect((await at.run(at.file)).stderr).toContain('resumed at 88 %')
})

test('a file that changes during its upload is not stored, and the reason is printed', async () => {
  await using at = await scene('changing')
  const reached = at.proxy.hold(({ offset, bytes }) => offset === chunkSize && bytes > 1_000_000)
  const running = at.run(at.file)
  await reached
  await writeFile(at.file, randomBytes(bytes.length))
  at.proxy.cut()
  const { code, stderr } = await running
  expect(code).toBe(1)
  expect(stderr).toContain('big.bin: the file changed during the upload; upload it again')
  expect((await at.client.listPage(1)).total).toBe(0)
})

test('state files older than 30 days are removed; recent ones are not', async () => {
  await using at = await scene('stale')
  await mkdir(at.states, { recursive: true })
  const old = new Date(Date.now() - 31 * 24 * 3_600_000)
  for (const name of ['old', 'recent']) await writeFile(join(at.states, name), 'x')
  await utimes(join(at.states, 'old'), old, old)
  expect((await at.run(at.file)).code).toBe(0)
  expect(await at.stored()).toEqual(['recent'])
})

test('without a writable state directory files are uploaded, and one warning is printed', async () => {
  await using at = await scene('unkept')
  await writeFile(join(at.directory.path, 'state'), 'not a directory')
  const { code, stderr } = await at.run(at.file, at.file)
  expect(code).toBe(0)
  expect(stderr.match(/the state of uploads cannot be stored/g)).toHaveLength(1)
  expect((await at.client.listPage(1)).total).toBe(2)
})

test('E1, R6 --expires: a killed upload continues with the expiry of its first run', async () => {
  await using at = await scene('expiring')
  const options = [at.file, '--expires', '12h']
  const before = Date.now()
  expect(await at.stopped('SIGKILL', ...options)).toMatchObject({ signal: 'SIGKILL', stdout: '' })
  const between = Date.now()
  const { code, stdout, stderr } = await at.run(...options)
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^\S+\/big\.bin: resumed at 88 %\n/)])
  const { expires_at } = await at.client.describe(stdout.split('\t')[0] ?? '')
  const start = Date.parse(expires_at ?? '') - 12 * 3_600_000
  expect(start).toBeGreaterThanOrEqual(before)
  expect(start).toBeLessThanOrEqual(between)
  expect(await at.stored()).toEqual([])
})

test('R6 a directory that is uploaded again after some of its files failed stores only these', async () => {
  await using at = await scene('failed')
  const files = join(at.directory.path, 'files')
  const long = join(files, ...Array<string>(5).fill('d'.repeat(204)))
  await mkdir(long, { recursive: true })
  for (const name of ['a.txt', 'b.txt']) await writeFile(join(files, name), name)
  await writeFile(join(long, 'too-long.txt'), 'its directories would be lost')
  await writeFile(join(files, 'big.bin'), bytes)
  await symlink('c.txt', join(files, 'link'))
  const first = await at.run(files)
  expect([first.code, first.stderr]).toEqual([1, expect.stringContaining('Uploaded 3 of 5 files')])
  expect(first.stderr).toContain('its path in the bucket would have more than 1024 bytes')
  expect(first.stderr).toContain('Run the same command again to upload the rest.')
  await writeFile(join(files, 'c.txt'), 'c.txt')
  await rm(join(files, 'd'.repeat(204)), { recursive: true })
  const second = await at.run(files)
  expect([second.code, second.stderr]).toEqual([0, expect.stringContaining('Uploaded 5 of 5 files')])
  const paths = []
  for await (const { path } of at.client.items()) paths.push(path)
  expect(paths.toSorted()).toEqual(
    ['a.txt', 'b.txt', 'big.bin', 'c.txt', 'link'].map((name) => `files/${name}`),
  )
  expect(await at.stored()).toEqual([])
})
