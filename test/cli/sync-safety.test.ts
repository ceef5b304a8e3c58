import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Client, Media } from '../../packages/client/src/index.ts'
import { canMountCaseless, caselessDisk } from '../harness/caseless-disk.ts'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { until } from '../harness/until.ts'
import { type CommandResult, commandLine, lines, runClient } from './client-run.ts'
import { contentsOf, syncScene } from './sync-scene.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

async function itemsOf(client: Client): Promise<Media[]> {
  const items: Media[] = []
  for await (const item of client.items()) items.push(item)
  return items
}

/** Files `0.txt` to `11.txt`. */
const twelve = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`${index}.txt`, `file ${index}`]))

test('a file of equal size and time that takes the place of another one is compared by its bytes', async () => {
  await using at = await syncScene(server)
  await at.write({ a: 'AAAA', b: 'BBBB' })
  await at.sync(at.at('files'))
  await rename(at.at('files/b'), at.at('files/a'))
  expect(lines((await at.sync(at.at('files'), '--delete')).stdout)).toEqual(['replace\ta', 'delete\tb'])
  expect(await at.paths()).toEqual({ a: 'BBBB' })
  await at.sync('--down', at.at('copy'))
  // Written in place, with the time of before.
  await writeFile(at.at('copy/a'), 'CCCC')
  const [item] = await itemsOf(at.client)
  const time = new Date(item?.created_at ?? '')
  await utimes(at.at('copy/a'), time, time)
  expect(lines((await at.sync('--down', at.at('copy'))).stdout)).toEqual(['replace\ta'])
  expect(await contentsOf(at.at('copy'))).toEqual({ a: 'BBBB' })
})

test('an empty directory does not delete the items: more than half of more than ten needs --delete=all or --max-delete', async () => {
  await using at = await syncScene(server)
  await at.write(twelve)
  await at.sync(at.at('files'))
  await rename(at.at('files'), at.at('away'))
  await mkdir(at.at('files'))
  const refused = await at.sync(at.at('files'), '--delete')
  expect([refused.code, refused.stdout]).toEqual([25, ''])
  expect(refused.stderr).toContain('does not have 12 of the 12 paths that the last run knew')
  expect(refused.stderr).toContain('To delete them: --max-delete 12')
  const dry = await at.sync(at.at('files'), '--delete', '--dry-run')
  expect([dry.code, dry.stdout]).toEqual([25, ''])
  const limited = await at.sync(at.at('files'), '--delete=all', '--max-delete', '11')
  expect([limited.code, limited.stdout]).toEqual([25, ''])
  expect(await at.paths()).toEqual(twelve)
  const asked = await at.sync(at.at('files'), '--delete', '--max-delete', '12')
  expect([asked.code, lines(asked.stdout).length, await at.paths()]).toEqual([0, 12, {}])
})

test('an emptied bucket does not delete the files, and a folder that it does not have is an error', async () => {
  await using at = await syncScene(server)
  await at.write(twelve, 'files/album')
  await at.sync(at.at('files'))
  await at.sync('--down', at.at('copy'), '--folder', 'album')
  for (const more of [['--delete'], ['--delete=all'], []]) {
    const mistyped = await at.sync('--down', at.at('copy'), '--folder', 'albun', ...more)
    expect([mistyped.code, mistyped.stderr]).toEqual([
      4,
      expect.stringContaining('the bucket has no folder "albun"'),
    ])
  }
  const ids = (await itemsOf(at.client)).map(({ id }) => id)
  await at.client.deleteMany(ids)
  const emptied = await at.sync('--down', at.at('copy'), '--folder', 'album', '--delete')
  expect([emptied.code, emptied.stdout]).toEqual([25, ''])
  expect(await contentsOf(at.at('copy'))).toEqual(twelve)
  const asked = await at.sync('--down', at.at('copy'), '--folder', 'album', '--delete=all')
  expect([asked.code, lines(asked.stdout).length, await contentsOf(at.at('copy'))]).toEqual([0, 12, {}])
})

test('--delete leaves alone what no run knew and files that have changed, and says how many', async () => {
  await using at = await syncScene(server)
  await at.write({ a: 'one', b: 'two', c: 'three' })
  await at.sync(at.at('files'))
  await at.sync('--down', at.at('copy'))
  await at.client.upload(Buffer.from('theirs'), { filename: './theirs' })
  await rm(at.at('files/a'))
  const up = await at.sync(at.at('files'), '--delete')
  expect([up.code, lines(up.stdout)]).toEqual([0, ['delete\ta']])
  expect(up.stderr).toContain('Left alone: 1 path that no earlier run knew')
  expect(await at.paths()).toEqual({ b: 'two', c: 'three', theirs: 'theirs' })

  const items = await itemsOf(at.client)
  await at.client.deleteMany(items.filter(({ path }) => path !== 'c').map(({ id }) => id))
  await at.write({ a: 'edited', 'mine/x': 'x' }, 'copy')
  const down = await at.sync('--down', at.at('copy'), '--delete')
  expect([down.code, lines(down.stdout)]).toEqual([0, ['delete\tb']])
  expect(down.stderr).toContain('Left alone: 2 paths that no earlier run knew, or that changed since')
  expect(await contentsOf(at.at('copy'))).toEqual({ a: 'edited', c: 'three', 'mine/x': 'x' })
  const all = await at.sync('--down', at.at('copy'), '--delete=all')
  expect([all.code, lines(all.stdout)]).toEqual([0, ['delete\ta', 'delete\tmine/x']])
})

test.each(['--delete', '--delete=all'])(
  '%s leaves items alone whose files are those of the operating system, which sync does not upload',
  async (deletes) => {
    await using at = await syncScene(server)
    const names = ['a', 'desktop.ini', 'below/.DS_Store', '@eaDir/thumb']
    for (const name of names) await at.client.upload(Buffer.from(name), { filename: `./${name}` })
    await at.sync('--down', at.at('copy'))
    const up = await at.sync(at.at('copy'), deletes)
    expect([up.code, up.stdout]).toEqual([0, ''])
    expect(Object.keys(await at.paths()).toSorted()).toEqual(names.toSorted())
    await rm(at.at('copy/desktop.ini'))
    expect(lines((await at.sync(at.at('copy'), deletes)).stdout)).toEqual(['delete\tdesktop.ini'])
  },
)

test('if --delete refuses to delete paths, it deletes no other items of a path either', async () => {
  await using at = await syncScene(server)
  await at.write({ a: 'one', b: 'two' })
  await at.sync(at.at('files'))
  await at.client.upload(Buffer.from('one'), { filename: './a' })
  await rm(at.at('files/b'))
  const refused = await at.sync(at.at('files'), '--delete', '--max-delete', '0')
  expect([refused.code, refused.stderr]).toEqual([25, expect.stringContaining('Deleted: 0.')])
  expect(await itemsOf(at.client)).toHaveLength(3)
  expect((await at.sync(at.at('files'), '--delete')).code).toBe(0)
  expect((await itemsOf(at.client)).map(({ path }) => path)).toEqual(['a'])
})

test.each(['--delete', '--delete=all'])(
  '%s leaves a file alone that changes during the run',
  async (deletes) => {
    await using at = await syncScene(server)
    await at.write({ a: 'one', b: 'two' })
    await at.sync(at.at('files'))
    // With times by which the next run recognizes the files.
    await at.write({ a: 'one', b: 'two' }, 'copy')
    await at.sync('--down', at.at('copy'))
    for (const { id } of await itemsOf(at.client)) await at.client.delete(id)
    await at.client.upload(Buffer.from('new'), { filename: './z' })
    await using proxy = await startLossyProxy(
      server.url,
      () => false,
      async (_method, path) => {
        if (path.startsWith('/media/')) await writeFile(at.at('copy/a'), 'written by the user')
      },
    )
    const run = await runClient({ ...at.service, url: proxy.url }, 'sync', '--down', at.at('copy'), deletes)
    expect([run.code, lines(run.stdout)]).toEqual([0, ['download\tz', 'delete\tb']])
    expect(run.stderr).toContain('Left alone: 1 path')
    expect(await contentsOf(at.at('copy'))).toEqual({ a: 'written by the user', z: 'new' })
  },
)

test('of several items of a path, a changed file replaces the newest; only --delete deletes the others', async () => {
  await using at = await syncScene(server)
  for (const text of ['oldest', 'older', 'newest'])
    await at.client.upload(Buffer.from(text), { filename: './a' })
  const contents = async () => {
    const texts = (await itemsOf(at.client)).map(async ({ id }) => (await at.client.get(id)).text())
    return (await Promise.all(texts)).toSorted()
  }
  await at.write({ a: 'mine' })
  expect(lines((await at.sync(at.at('files'))).stdout)).toEqual(['replace\ta'])
  expect(await contents()).toEqual(['mine', 'older', 'oldest'])
  await at.write({ a: 'mine, again' })
  expect(lines((await at.sync(at.at('files'), '--delete')).stdout)).toEqual(['replace\ta'])
  expect(await contents()).toEqual(['mine, again'])
})

test('the summary counts the items without a path', async () => {
  await using at = await syncScene(server)
  await at.write({ a: 'one' })
  await at.client.upload(Buffer.from('x'), { filename: 'alone.txt' })
  for (const args of [[at.at('files')], ['--down', at.at('copy')]])
    expect((await at.sync(...args)).stderr).toContain('Left alone: 1 item of the bucket without a path.')
})

test('names in another form of Unicode are the same files', async () => {
  await using at = await syncScene(server)
  const [nfd, nfc] = ['e\u0301', 'é']
  await at.write({ [`${nfd}/${nfd}.txt`]: 'one' })
  await at.sync(at.at('files'))
  expect(await at.paths()).toEqual({ [`${nfc}/${nfc}.txt`]: 'one' })
  const down = await at.sync('--down', at.at('files'), '--delete=all')
  expect([down.code, down.stdout]).toEqual([0, ''])
  await at.client.upload(Buffer.from('two'), { filename: `${nfc}/new` })
  await at.client.upload(Buffer.from('three'), { filename: `${nfc}/${nfc}.txt` })
  const more = await at.sync('--down', at.at('files'), '--delete')
  expect([more.code, lines(more.stdout).toSorted()]).toEqual([
    0,
    [`download\t${nfc}/new`, `replace\t${nfc}/${nfc}.txt`],
  ])
  expect(await contentsOf(at.at('files'))).toEqual({ [`${nfd}/${nfd}.txt`]: 'three', [`${nfd}/new`]: 'two' })
  const up = await at.sync(at.at('files'), '--delete=all')
  // The earlier item of the path.
  expect([up.code, up.stdout]).toEqual([0, ''])
  // A directory in both forms.
  await mkdir(at.at('files', nfc))
  await at.client.upload(Buffer.from('four'), { filename: `${nfc}/${nfc}.txt` })
  const both = await at.sync('--down', at.at('files'))
  expect([both.code, both.stdout]).toEqual([0, `replace\t${nfc}/${nfc}.txt\n`])
  expect(await contentsOf(at.at('files'))).toEqual({ [`${nfd}/${nfd}.txt`]: 'four', [`${nfd}/new`]: 'two' })
})

test('a file that becomes a directory is replaced, and a directory that becomes a file with --delete', async () => {
  await using at = await syncScene(server)
  await at.write({ a: 'file', 'b/c': 'deep', z: 'other' })
  await at.sync(at.at('files'))
  await at.sync('--down', at.at('copy'))
  await rm(at.at('files'), { recursive: true })
  await at.write({ 'a/x': 'now deep', b: 'now a file', z: 'other' })
  const up = await at.sync(at.at('files'), '--delete')
  expect([up.code, lines(up.stdout).toSorted()]).toEqual([
    0,
    ['delete\ta', 'delete\tb/c', 'upload\ta/x', 'upload\tb'],
  ])
  const down = await at.sync('--down', at.at('copy'))
  expect([down.code, lines(down.stdout)]).toEqual([23, ['download\ta/x']])
  expect(down.stderr).toContain(`${at.at('copy/b')} is a directory`)
  const deleting = await at.sync('--down', at.at('copy'), '--delete')
  expect([deleting.code, lines(deleting.stdout)]).toEqual([0, ['delete\tb/c', 'download\tb']])
  expect(await contentsOf(at.at('copy'))).toEqual(await contentsOf(at.at('files')))
})

test('a file of the user is not replaced by a directory', async () => {
  await using at = await syncScene(server)
  await at.client.upload(Buffer.from('x'), { filename: 'a/x' })
  await at.write({ a: 'mine' }, 'copy')
  const down = await at.sync('--down', at.at('copy'), '--delete')
  expect([down.code, down.stdout]).toEqual([23, ''])
  expect(down.stderr).toContain(`  a/x: ${at.at('copy/a')} is a file`)
  expect(await contentsOf(at.at('copy'))).toEqual({ a: 'mine' })
})

test('a FIFO, a broken link and a name that is not UTF-8 are reported, and hold back the deletes of their own paths only', async () => {
  await using at = await syncScene(server)
  await at.write({ fifo: 'one', 'link/below': 'two', 'same 1': 'three', other: 'four' })
  await at.sync(at.at('files'))
  for (const name of ['fifo', 'link', 'same 1']) await rm(at.at('files', name), { recursive: true })
  await promisify(execFile)('mkfifo', [at.at('files/fifo')])
  await symlink('/nothing', at.at('files/link'))
  await writeFile(Buffer.concat([Buffer.from(`${at.at('files')}/`), Buffer.from([0x66, 0xff])]), 'foreign')
  const result = await at.sync(at.at('files'), '--delete')
  expect([result.code, lines(result.stdout)]).toEqual([23, ['delete\tsame 1']])
  for (const reason of ['neither a file nor a directory', 'does not exist', 'not valid UTF-8'])
    expect(result.stderr).toContain(reason)
  expect(await at.paths()).toEqual({ fifo: 'one', 'link/below': 'two', other: 'four' })
})

/** Runs a command whom the modes of files concern, also as root. */
async function runWithoutPrivilege(service: Pick<SharedServer, 'url' | 'token'>, ...args: string[]) {
  const { command, env } = commandLine(service, ...args)
  const dropping = ['setpriv', '--bounding-set=-dac_override,-dac_read_search']
  const [program = '', ...rest] = process.getuid?.() === 0 ? [...dropping, ...command] : command
  return await promisify(execFile)(program, rest, { env }).then(
    (output) => ({ code: 0, ...output }),
    (failure: CommandResult) => failure,
  )
}

test('nothing is deleted while a directory cannot be read', async () => {
  await using at = await syncScene(server)
  await at.write({ 'a/x': 'one', b: 'two', c: 'three' })
  await at.sync(at.at('files'))
  await at.sync('--down', at.at('copy'))
  await chmod(at.at('files/a'), 0)
  await rm(at.at('files/b'))
  const up = await runWithoutPrivilege(at.service, 'sync', at.at('files'), '--delete')
  expect([up.code, up.stdout]).toEqual([23, ''])
  expect(up.stderr).toContain('Nothing is deleted, because not all directories could be read')
  expect(await at.paths()).toEqual({ 'a/x': 'one', b: 'two', c: 'three' })

  const items = await itemsOf(at.client)
  await at.client.deleteMany(items.filter(({ path }) => path === 'b').map(({ id }) => id))
  await chmod(at.at('copy/a'), 0)
  const down = await runWithoutPrivilege(at.service, 'sync', '--down', at.at('copy'), '--delete')
  expect([down.code, down.stdout]).toEqual([23, ''])
  expect(down.stderr).toContain('Nothing is deleted, because not all directories could be read')
  await chmod(at.at('copy/a'), 0o700)
  expect(await contentsOf(at.at('copy'))).toEqual({ 'a/x': 'one', b: 'two', c: 'three' })
})

test('a file whose path in the bucket would be too long is reported', async () => {
  await using at = await syncScene(server)
  const path = `${'a'.repeat(200)}/`.repeat(5)
  await at.write({ [`${path}${'b'.repeat(40)}`]: 'one', ok: 'two' })
  const result = await at.sync(at.at('files'))
  expect([result.code, lines(result.stdout)]).toEqual([23, ['upload\tok']])
  expect(result.stderr).toContain('its path in the bucket would have more than 1024 bytes')
})

test.each(['up', 'down'])('the totals are right after Ctrl-C: %s', async (direction) => {
  await using at = await syncScene(server)
  await at.write({ a: 'one', b: 'two', c: 'three' })
  await at.sync(at.at('files'))
  await at.sync('--down', at.at('copy'))
  await at.client.upload(Buffer.from('theirs'), { filename: './b' })
  let isHeld = false
  const held = Promise.withResolvers<void>()
  await using proxy = await startLossyProxy(
    server.url,
    () => false,
    async (method, path) => {
      if (direction === 'up' ? method !== 'POST' : !path.startsWith('/media/')) return
      isHeld = true
      await held.promise
    },
  )
  const args = direction === 'up' ? [at.at('files')] : ['--down', at.at('copy')]
  const { command, env } = commandLine({ ...at.service, url: proxy.url }, 'sync', ...args)
  const [program = '', ...rest] = command
  const child = spawn(program, rest, { env })
  const stderr = text(child.stderr)
  await until('the request of the changed file', () => isHeld)
  child.kill('SIGINT')
  await once(child, 'close')
  held.resolve()
  const verb = direction === 'up' ? 'Uploaded' : 'Downloaded'
  expect(await stderr).toMatch(new RegExp(`^${verb} 0 files, 0 B, of 3 files, in .*\\n`))
  expect(await stderr).toContain('Unchanged: 2. Replaced: 0. Deleted: 0.\nNot tried: 1 file.\n')
})

describe.skipIf(process.env['CI'] === undefined && !(await canMountCaseless()))('on exFAT', () => {
  test('two items that differ in case only do not replace each other', async () => {
    await using disk = await caselessDisk()
    await using at = await syncScene(server)
    for (const path of ['A.txt', 'a.txt', 'D/x', 'd/x', 'd/y', 'e/y', 'e/Y'])
      await at.client.upload(Buffer.from(path), { filename: `./${path}` })
    const copy = join(disk.path, 'copy')
    const contents: Record<string, string>[] = []
    for (const more of [[], [], ['--delete'], ['--delete=all']]) {
      const { code, stdout, stderr } = await at.sync('--down', copy, ...more)
      expect([code, stderr]).toEqual([23, expect.stringContaining('does not distinguish its name from')])
      const found = await contentsOf(copy)
      for (const [path, content] of Object.entries(found)) expect(content).toBe(path)
      if (contents.length > 0) expect([stdout, found]).toEqual(['', contents[0]])
      contents.push(found)
    }
    expect(Object.keys(contents[0] ?? {}).length).toBe(3)
  })

  test('an item whose path changes in case only gets its new name with --delete', async () => {
    await using disk = await caselessDisk()
    await using at = await syncScene(server)
    const { id } = await at.client.upload(Buffer.from('one'), { filename: './A.txt' })
    const copy = join(disk.path, 'copy')
    expect((await at.sync('--down', copy)).code).toBe(0)
    await at.client.delete(id)
    await at.client.upload(Buffer.from('one'), { filename: './a.txt' })
    expect(lines((await at.sync('--down', copy, '--delete')).stdout)).toContain('delete\tA.txt')
    // FUSE finds the removed file for up to a second.
    await until('the item has its file', async () => (await at.sync('--down', copy, '--delete')).code === 0)
    expect(await contentsOf(copy)).toEqual({ 'a.txt': 'one' })
    expect(await at.sync('--down', copy, '--delete')).toMatchObject({ code: 0, stdout: '' })
    expect(await readFile(join(copy, 'a.txt'), 'utf8')).toBe('one')
  })
})
