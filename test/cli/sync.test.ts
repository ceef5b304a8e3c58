import { chmod, mkdir, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import type { Client } from '../../packages/client/src/index.ts'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { lines, runClient } from './client-run.ts'
import { contentsOf, start, syncScene } from './sync-scene.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** The paths of the items in the order of the bucket. */
async function pathsOf(client: Client): Promise<string[]> {
  const found: string[] = []
  for await (const { path } of client.items({ path: '', batchSize: 500 })) found.push(path ?? '')
  return found
}

/** A proxy that holds the responses of this method. */
async function holdingProxy(held: string) {
  const waiting: (() => void)[] = []
  const hold = async (method: string) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (method === held) waiting.push(resolve)
    else resolve()
    await promise
  }
  const proxy = await startLossyProxy(server.url, () => false, hold)
  return {
    url: proxy.url,
    /** Waits for a response to hold, and returns what releases it. */
    held: () => until('a response is held', () => waiting.shift()),
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  }
}

const files = {
  'a.txt': 'one',
  'day 1/é.txt': 'two',
  'day 1/.hidden': 'three',
  'day 1/deep/empty': '',
  'same 1': 'equal',
  'same 2': 'equal',
  // The bucket lists these before and after those in the directory, and by their bytes.
  'day 1.txt': 'before',
  'day 10': 'after',
  '\uffee': 'small',
  '😀': 'large',
}

test('up and down make both sides equal; a second run transfers nothing', async () => {
  await using at = await syncScene(server)
  await at.write(files)
  const kept = await at.client.upload(Buffer.from('no path'), { filename: 'alone.txt' })
  const dry = await at.sync(at.at('files'), '--dry-run')
  expect([dry.code, lines(dry.stdout).toSorted()]).toEqual([
    0,
    Object.keys(files)
      .map((path) => `upload\t${path}`)
      .toSorted(),
  ])
  expect(await at.paths()).toEqual({})

  const first = await at.sync(at.at('files'))
  expect(first).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('Uploaded 10 files, 42 B, of 10 files'),
  })
  expect(await at.paths()).toEqual(files)
  const before = await at.client.listPage(1)
  expect(await at.sync(at.at('files'), '--delete')).toMatchObject({
    ...{ code: 0, stdout: '' },
    stderr: expect.stringContaining('Uploaded 0 files, 0 B, of 10 files'),
  })
  expect(await at.client.listPage(1)).toEqual(before)

  const down = await at.sync('--down', at.at('copy'))
  expect([down.code, lines(down.stdout).length]).toEqual([0, 10])
  expect(await contentsOf(at.at('copy'))).toEqual(await contentsOf(at.at('files')))
  expect(await at.sync('--down', at.at('copy'), '--delete')).toMatchObject({
    ...{ code: 0, stdout: '' },
    stderr: expect.stringContaining('Downloaded 0 files, 0 B, of 10 files'),
  })
  expect((await at.client.describe(kept.id)).path).toBeNull()
})

test('up replaces what has changed, and deletes what is missing with --delete only', async () => {
  await using at = await syncScene(server)
  await at.write(files)
  await at.sync(at.at('files'))
  // A copy that another program has uploaded later, with other bytes.
  await at.client.upload(Buffer.from('theirs'), { filename: './a.txt' })
  await at.write({ 'day 1/é.txt': 'changed', 'new/file': 'new' })
  await rm(at.at('files/same 1'))
  const second = await at.sync(at.at('files'))
  expect([second.code, lines(second.stdout)]).toEqual([
    0,
    ['replace\ta.txt', 'replace\tday 1/é.txt', 'upload\tnew/file'],
  ])
  const { 'same 1': removed, ...others } = files
  const expected = { ...others, 'day 1/é.txt': 'changed', 'new/file': 'new' }
  expect(await at.paths()).toEqual({ ...expected, 'same 1': removed })

  const dry = await at.sync(at.at('files'), '--delete', '--dry-run')
  expect(lines(dry.stdout)).toEqual(['delete\tsame 1'])
  const third = await at.sync(at.at('files'), '--delete', '--exclude', 'same*')
  expect([third.code, third.stdout]).toEqual([0, ''])
  const last = await at.sync(at.at('files'), '--delete')
  expect([last.code, lines(last.stdout)]).toEqual([0, ['delete\tsame 1']])
  expect(await at.paths()).toEqual(expected)
  expect((await at.client.bucket()).items).toBe(Object.keys(expected).length)
})

test('down replaces what differs, and deletes what is missing with --delete only', async () => {
  await using at = await syncScene(server)
  await at.write(files)
  await at.sync(at.at('files'))
  await at.write({ 'a.txt': 'ONE', 'mine/x': 'x', 'b.tmp': 'y' }, 'copy')
  expect(lines((await at.sync('--down', at.at('copy'))).stdout)).toContain('replace\ta.txt')
  expect(await contentsOf(at.at('copy'))).toEqual({ ...files, 'mine/x': 'x', 'b.tmp': 'y' })
  const unknown = await at.sync('--down', at.at('copy'), '--delete')
  expect([unknown.code, unknown.stdout]).toEqual([0, ''])
  expect(unknown.stderr).toContain('Left alone: 2 paths that no earlier run knew')
  const dry = await at.sync('--down', at.at('copy'), '--delete=all', '--dry-run')
  expect(lines(dry.stdout)).toEqual(['delete\tb.tmp', 'delete\tmine/x'])
  const excluding = await at.sync('--down', at.at('copy'), '--delete=all', '--exclude', '*.tmp')
  expect([excluding.code, lines(excluding.stdout)]).toEqual([0, ['delete\tmine/x']])
  expect(await contentsOf(at.at('copy'))).toEqual({ ...files, 'b.tmp': 'y' })
  expect(await readdir(at.at('copy'))).not.toContain('mine')
})

test('down keeps the permissions of a file that it replaces', async () => {
  await using at = await syncScene(server)
  await at.write({ 'key.pem': 'one', 'run.sh': 'one' })
  await at.sync(at.at('files'))
  await at.write({ 'key.pem': 'old', 'run.sh': 'old' }, 'copy')
  await chmod(at.at('copy/key.pem'), 0o600)
  await chmod(at.at('copy/run.sh'), 0o777)
  expect(await at.sync('--down', at.at('copy'))).toMatchObject({ code: 0 })
  expect(await contentsOf(at.at('copy'))).toEqual({ 'key.pem': 'one', 'run.sh': 'one' })
  const modeOf = async (name: string) => (await stat(at.at('copy', name))).mode & 0o777
  expect([await modeOf('key.pem'), await modeOf('run.sh')]).toEqual([0o600, 0o777])
})

test('--folder is what the directory stands for', async () => {
  await using at = await syncScene(server)
  await at.write(files)
  await at.client.upload(Buffer.from('other'), { filename: 'albums/x' })
  await at.sync(at.at('files'), '--folder', 'album/2026/', '--delete')
  const below = Object.fromEntries(Object.entries(files).map(([path, text]) => [`album/2026/${path}`, text]))
  expect(await at.paths()).toEqual({ ...below, 'albums/x': 'other' })
  await at.sync('--down', at.at('copy'), '--folder', 'album/2026')
  expect(await contentsOf(at.at('copy'))).toEqual(files)
})

test('a path that leads out of the directory is refused, and the other files are transferred', async () => {
  await using at = await syncScene(server)
  await at.client.upload(Buffer.from('x'), { filename: 'out/x' })
  await at.client.upload(Buffer.from('y'), { filename: 'in/y' })
  await at.client.upload(Buffer.from('z'), { filename: 'file/z' })
  await mkdir(at.at('copy'))
  await mkdir(at.at('outside'))
  await symlink(at.at('outside'), at.at('copy/out'))
  await writeFile(at.at('copy/file'), 'a file')
  const result = await at.sync('--down', at.at('copy'))
  expect([result.code, lines(result.stdout)]).toEqual([23, ['download\tin/y']])
  for (const path of ['file/z', 'out/x']) expect(result.stderr).toContain(`  ${path}: `)
  expect(await readdir(at.at('outside'))).toEqual([])
})

test('links to directories are left out, also with the items below them', async () => {
  await using at = await syncScene(server)
  await at.write({ 'a.txt': 'one', 'b.txt': 'two', 'old/c.txt': 'three', 'old-1.txt': 'four' })
  await at.sync(at.at('files'))
  await rm(at.at('files/b.txt'))
  await rm(at.at('files/old-1.txt'))
  await rename(at.at('files/old'), at.at('moved'))
  await symlink(at.at('moved'), at.at('files/old'))
  await symlink('..', at.at('files/parent'))
  const result = await at.sync(at.at('files'), '--delete')
  expect([result.code, lines(result.stdout)]).toEqual([0, ['delete\tb.txt', 'delete\told-1.txt']])
  expect(await at.paths()).toEqual({ 'a.txt': 'one', 'old/c.txt': 'three' })
})

test('invalid arguments exit with 2', async () => {
  const invalid: readonly [args: readonly string[], message: string][] = [
    [['sync'], 'sync takes one directory'],
    [['sync', 'a', 'b'], 'sync takes one directory'],
    [['sync', '.', '--folder', '..'], '--folder takes a path'],
    [['sync', '.', '--watch', '--dry-run'], '--watch or --dry-run'],
    [['sync', '.', '--max-delete', '3'], '--max-delete needs --delete'],
    [['sync', '.', '--delete', '--max-delete', 'x'], '--max-delete takes a whole number'],
    [['sync', '.', '--delete=some'], 'sync takes --delete or --delete=all, not "--delete=some"'],
  ]
  for (const [args, message] of invalid)
    expect(await runClient({ url: server.url, token: 'x' }, ...args), args.join(' ')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    })
})

test('--watch uploads what changes, also many files in new directories at once, and ends without deleting when the directory is replaced', async () => {
  await using at = await syncScene(server)
  await at.write({ 'a.txt': 'one' })
  const { exited } = start(at.service, 'sync', '--watch', '--delete=all', at.at('files'))
  const becomes = (...expected: string[]) =>
    until('the bucket is equal', async () => (await pathsOf(at.client)).join() === expected.join())
  await becomes('a.txt')
  const many = Array.from({ length: 300 }, (_, index) => `b/${index % 11}/${index % 3}/${index}`)
  // In the order in which a program creates them: a directory, its files, the next directory.
  await at.write(Object.fromEntries(many.map((path) => [path, path])))
  await becomes('a.txt', ...many.toSorted())
  await rm(at.at('files/b'), { recursive: true })
  await becomes('a.txt')
  await at.write({ 'b/1/1/1': 'again' })
  await becomes('a.txt', 'b/1/1/1')
  await rename(at.at('files'), at.at('away'))
  await mkdir(at.at('files'))
  expect(await exited).toEqual([1, null])
  expect(await pathsOf(at.client)).toEqual(['a.txt', 'b/1/1/1'])
})

test('the summary of a run after a kill counts each file once', async () => {
  await using at = await syncScene(server)
  await at.write({ 'a.txt': 'one' })
  await at.sync(at.at('files'))
  await at.write({ 'b.txt': 'three' })
  await using proxy = await holdingProxy('POST')
  const killed = start({ ...at.service, url: proxy.url }, 'sync', at.at('files'))
  await proxy.held()
  killed.child.kill('SIGKILL')
  await killed.exited
  const { code, stdout, stderr } = await at.sync(at.at('files'))
  expect([code, lines(stdout)]).toEqual([0, ['upload\tb.txt']])
  expect(stderr).toContain('Uploaded 1 file, 5 B, of 2 files')
  expect(stderr).toContain('Unchanged: 1. Replaced: 0. Deleted: 0.')
})

test('--watch --delete deletes nothing if the directory is replaced while an upload of a killed run is repeated', async () => {
  await using at = await syncScene(server)
  await at.write({ 'a.txt': 'one', 'b/c.txt': 'two' })
  await using proxy = await holdingProxy('POST')
  const service = { ...at.service, url: proxy.url }
  const killed = start(service, 'sync', at.at('files'))
  await proxy.held()
  killed.child.kill('SIGKILL')
  await killed.exited

  const { exited } = start(service, 'sync', '--watch', '--delete', at.at('files'))
  const release = await proxy.held()
  await rename(at.at('files'), at.at('away'))
  await mkdir(at.at('files'))
  release()
  expect(await exited).toEqual([1, null])
  expect(await pathsOf(at.client)).toEqual(['a.txt', 'b/c.txt'])
})

test.each(['--watch', '--exclude=*.tmp'])(
  '%s --delete deletes nothing if the directory is replaced while it is compared',
  async (option) => {
    await using at = await syncScene(server)
    await at.write({ 'a.txt': 'one', 'b/c.txt': 'two' })
    await at.sync(at.at('files'))
    await using proxy = await holdingProxy('GET')
    const service = { ...at.service, url: proxy.url }
    const { exited } = start(service, 'sync', option, '--delete', at.at('files'))
    const release = await proxy.held()
    // With the same file, whose directory may have been read, and another directory that was not read yet.
    await rename(at.at('files'), at.at('away'))
    await at.write({ 'a.txt': 'one' })
    await mkdir(at.at('files/b'))
    release()
    expect(await exited).toEqual([1, null])
    expect(await pathsOf(at.client)).toEqual(['a.txt', 'b/c.txt'])
  },
)

test('--down --watch downloads what changes, until it is interrupted', async () => {
  await using at = await syncScene(server)
  await at.client.upload(Buffer.from('one'), { filename: './a.txt' })
  const { child, exited } = start(at.service, 'sync', '--down', '--watch', '--delete', at.at('copy'))
  const becomes = (expected: Readonly<Record<string, string>>) =>
    until('the directory is equal', async () => {
      const found = await contentsOf(at.at('copy')).catch(() => ({}))
      return JSON.stringify(found) === JSON.stringify(expected)
    })
  await becomes({ 'a.txt': 'one' })
  const { id } = await at.client.upload(Buffer.from('new'), { filename: 'b/c.txt' })
  await becomes({ 'a.txt': 'one', 'b/c.txt': 'new' })
  await at.client.delete(id)
  await becomes({ 'a.txt': 'one' })
  child.kill('SIGTERM')
  expect(await exited).toEqual([143, null])
})
