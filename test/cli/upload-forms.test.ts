import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { newToken, urlsOf } from '../client/buckets.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { commandLine, runAlone, runClient } from './client-run.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const bucket = async (name: string) => ({ url: server.url, token: await newToken(server, name) })
const printedUrls = (stdout: string) => stdout.match(/^\S+/gm) ?? []
const printedNames = (stdout: string) =>
  [...stdout.matchAll(/\t(.*)$/gm)].map(([, path = '']) => basename(path))

test('L10 small and large files are listed and printed in the order of the names, in natural order', async () => {
  await using directory = await temporaryDirectory()
  const service = await bucket('order')
  const path = (name: string) => join(directory.path, name)
  await mkdir(path('sub/@eaDir'), { recursive: true })
  for (const name of ['1.txt', '3.txt', '10.txt', 'sub/a.txt']) await writeFile(path(name), name)
  for (const name of ['.DS_Store', '._1.txt', 'Thumbs.db', 'sub/@eaDir/a.txt'])
    await writeFile(path(name), name)
  await writeFile(path('2.bin'), randomBytes(20_000_000))
  await writeFile(path('4.bin'), randomBytes(17_000_000))
  const { code, stdout, stderr } = await runClient(service, 'upload', path('10.txt'), directory.path)
  expect(code).toBe(0)
  expect(printedNames(stdout)).toEqual(['10.txt', '1.txt', '2.bin', '3.txt', '4.bin', '10.txt', 'a.txt'])
  expect(printedUrls(stdout)).toEqual(await urlsOf(createClient(service)))
  expect(stderr).toContain(
    'Skipped 4 files of the operating system: ._1.txt, .DS_Store, @eaDir and others.\n',
  )
  const named = await runAlone(service, 'upload', path('.DS_Store'))
  expect([named.code, printedNames(named.stdout)]).toEqual([0, ['.DS_Store']])
  expect(named.stderr).toMatch(/^Uploaded 1 of 1 file, /)
})

test('Q1 when the bucket is full, the first files are stored, and each of the others is listed once after the reason and the next step', async () => {
  await using directory = await temporaryDirectory()
  const name = uniqueName('full')
  const { token } = await makeToken(server, '--bucket', name)
  const service = { url: server.url, token }
  await server.command('bucket', 'set', name, '--max-items', '5')
  for (let index = 1; index <= 12; index += 1) await writeFile(join(directory.path, `${index}`), `${index}`)
  const { code, stdout, stderr } = await runClient(service, 'upload', directory.path)
  expect([code, printedNames(stdout)]).toEqual([1, ['1', '2', '3', '4', '5']])
  expect(stderr).toMatch(/^Uploaded 5 of 12 files/)
  for (let index = 6; index <= 12; index += 1)
    expect(stderr.match(new RegExp(`^ {4}.*/${index}$`, 'gm'))).toHaveLength(1)
  expect(stderr.match(/^ {2}\S.*mediabucket rm,.*mediabucket bucket set NAME.*$/gm)).toHaveLength(1)
  expect(await urlsOf(createClient(service))).toEqual(printedUrls(stdout))
})

/** 250 small files in three forms. The responses to all forms but the first are lost until the command is killed. */
async function scene(name: string) {
  const directory = await temporaryDirectory()
  const service = await bucket(name)
  const client = createClient(service)
  let healed = false
  const proxy = await startLossyProxy(server.url, (method, nth) => !healed && method === 'POST' && nth > 1)
  const files = join(directory.path, 'files')
  const home = join(directory.path, 'state')
  await mkdir(files)
  for (let index = 0; index < 250; index += 1) await writeFile(join(files, `${index}.txt`), `${index}`)
  function start() {
    const { command, env } = commandLine({ url: proxy.url, token: service.token }, 'upload', files)
    const [program = '', ...rest] = command
    return spawn(program, rest, { env: { ...env, XDG_STATE_HOME: home }, stdio: ['ignore', 'pipe', 'pipe'] })
  }
  return {
    files,
    client,
    states: join(home, 'mediabucket/uploads'),
    /** Runs until the service has stored the second form, and kills the command before it receives the response. */
    async killed() {
      const child = start()
      await until('the second form', async () => (await client.listPage(1)).total === 200)
      child.kill('SIGKILL')
      await once(child, 'exit')
      healed = true
      proxy.seen.length = 0
    },
    async run() {
      const child = start()
      const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
      return { stdout, stderr }
    },
    sent: () => proxy.seen.filter((method) => method === 'POST').length,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
    },
  }
}

test('I2 kill -9 with a lost response: the same command stores no file twice, and sends no file that it knows is stored', async () => {
  await using at = await scene('killed')
  await at.killed()
  expect((await at.client.listPage(1)).total).toBe(200)
  const { stdout, stderr } = await at.run()
  expect(stderr).toMatch(/^Uploaded 250 of 250 files, 640 B in \S+ s\.\n$/)
  expect(at.sent()).toBe(2)
  expect(printedNames(stdout)).toEqual(Array.from({ length: 250 }, (_, index) => `${index}.txt`))
  expect(printedUrls(stdout)).toEqual(await urlsOf(at.client))
  expect((await readdir(at.states)).filter((name) => !name.endsWith('.lock'))).toEqual([])
  // After a completed run, the same command stores the files again.
  await at.run()
  expect((await at.client.listPage(1)).total).toBe(500)
})

test('I2 kill -9 with a lost response, and files that were added, changed and deleted afterwards', async () => {
  await using at = await scene('changed')
  await at.killed()
  const [first = ''] = await urlsOf(at.client)
  await at.client.delete(first)
  await writeFile(join(at.files, '0a.txt'), 'added')
  await writeFile(join(at.files, '150.txt'), 'changed')
  const { stderr } = await at.run()
  expect(stderr).toMatch(/^Uploaded 251 of 251 files/)
  expect(stderr).toContain('99 files of these were stored by an earlier run that received no response')
  const listed = await Promise.all((await urlsOf(at.client)).map((url) => at.client.describe(url)))
  const contents = ['added', 'changed', ...Array.from({ length: 250 }, (_, index) => `${index}`)]
  const hashes = contents.map((content) => createHash('sha256').update(content).digest('hex'))
  expect(listed.map(({ sha256 }) => sha256).sort()).toEqual(hashes.sort())
})
