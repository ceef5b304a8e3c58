import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { newToken } from '../client/buckets.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { interruptedAt, onTerminal } from '../harness/terminal.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { type CommandResult, commandLine, lines, runClient } from './client-run.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** A bucket with these paths, whose contents are the paths; null for an item without one. */
async function scene(...paths: readonly string[]) {
  const directory = await temporaryDirectory()
  const service = { url: server.url, token: await newToken(server, uniqueName('paths')) }
  const client = createClient(service)
  const ids = new Map<string, string>()
  for (const path of paths)
    ids.set(
      path,
      (await client.upload(Buffer.from(path), { filename: path.includes('/') ? path : `./${path}` })).id,
    )
  return {
    ...{ service, client },
    at: (...names: string[]) => join(directory.path, ...names),
    idOf: (path: string) => ids.get(path) ?? '',
    run: (...args: string[]) => runClient(service, ...args),
    async left() {
      const found: string[] = []
      for await (const { path, filename } of client.items()) found.push(path ?? filename ?? '')
      return found.toSorted()
    },
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

const paths = ['album/b.txt', 'album/summer/a.txt', 'album/summer/sea/c.txt', 'album-2/d.txt', 'top.txt']

test('ls of a folder lists its items and folders, -R all items below it', async () => {
  await using at = await scene(...paths)
  await at.client.upload(Buffer.from('x'), { filename: 'without a path.txt' })
  const listed = async (...args: string[]) => lines((await at.run('ls', ...args)).stdout)
  expect(await listed('./')).toEqual(['album-2/', 'album/', 'top.txt'])
  expect(await listed('album/')).toEqual(['album/b.txt', 'album/summer/'])
  expect(await listed('album')).toEqual(['album/b.txt', 'album/summer/'])
  expect(await listed('album/', '-R')).toEqual(paths.slice(0, 3))
  expect(await listed('-R')).toEqual([paths[3], ...paths.slice(0, 3), 'top.txt'])
  expect(await listed('album/summer/a.txt')).toEqual(['album/summer/a.txt'])
  const long = await listed('album/', '-l')
  expect(long[0]?.split('\t')).toEqual([
    at.idOf('album/b.txt'),
    '11',
    expect.stringMatching(/Z$/),
    expect.stringContaining('text/plain'),
    'album/b.txt',
  ])
  expect(long[1]).toBe('\t\t\t\talbum/summer/')
  expect((await listed('album/', '--json')).map((line) => JSON.parse(line))).toMatchObject([
    { id: at.idOf('album/b.txt'), path: 'album/b.txt' },
    { path: 'album/summer/', folder: true },
  ])
  const { command, env } = commandLine(at.service, 'ls', 'album/', '-l')
  expect((await onTerminal(command, env)).shown).toMatch(/11 B .* album\/b\.txt\r\n.* album\/summer\/\r\n$/)
  const missing = await at.run('ls', 'albun/')
  expect([missing.code, missing.stderr]).toEqual([4, expect.stringContaining('no items below "albun/"')])
  expect((await at.run('ls', 'album/', '--newest')).code).toBe(2)
})

test('get of a path writes the newest item that has it; of a folder, the items below it into a directory', async () => {
  await using at = await scene(...paths, 'album/q?.txt')
  await at.client.upload(Buffer.from('newer'), { filename: 'album/b.txt' })
  expect(await at.run('get', 'album/b.txt')).toMatchObject({ code: 0, stdout: 'newer' })
  expect(await at.run('get', './top.txt')).toMatchObject({ code: 0, stdout: 'top.txt' })
  const missing = await at.run('get', 'album/nothing')
  expect([missing.code, missing.stderr]).toEqual([
    4,
    expect.stringContaining('no item with the path "album/nothing"'),
  ])
  expect((await at.run('get', 'album/')).stderr).toContain('album/ is a folder: get album/ -d DIR')
  const result = await at.run('get', 'album/', './top.txt', 'nothing/', '-d', at.at('to'), '--json')
  expect([result.code, result.stderr]).toEqual([
    4,
    expect.stringContaining('mediabucket: nothing/: There is no such item.'),
  ])
  expect((await readdir(at.at('to'), { recursive: true })).toSorted()).toEqual([
    'b-2.txt',
    'b.txt',
    'q_.txt',
    'summer',
    'summer/a.txt',
    'summer/sea',
    'summer/sea/c.txt',
    'top.txt',
  ])
  expect(await readFile(at.at('to/summer/sea/c.txt'), 'utf8')).toBe('album/summer/sea/c.txt')
  // A name that the file system could not have, or that is taken.
  expect(result.stderr).toContain('Names changed for this directory: 2.\n')
  expect(result.stderr).toContain('  q?.txt is q_.txt\n')
  const renamed = lines(result.stdout).map((line) => JSON.parse(line).renamed_from)
  expect(renamed.filter((name) => name !== undefined).toSorted()).toEqual(['b.txt', 'q?.txt'])
})

test('rm of a path deletes all items that have it; of a folder needs --recursive, and --yes without a terminal', async () => {
  await using at = await scene(...paths, 'album/b.txt')
  const one = await at.run('rm', 'album/b.txt', 'album/nothing', at.idOf('top.txt'))
  expect([one.code, lines(one.stderr).slice(0, 3)]).toEqual([
    4,
    [
      'Deleted album/b.txt',
      `Deleted ${at.idOf('top.txt')}`,
      'mediabucket: album/nothing: There is no such item.',
    ],
  ])
  expect(await at.left()).toEqual(['album-2/d.txt', 'album/summer/a.txt', 'album/summer/sea/c.txt'])
  const malformed = await at.run('rm', 'http:/user:secret@host/media/x')
  expect([malformed.code, malformed.stderr]).toEqual([2, expect.not.stringContaining('secret')])
  for (const args of [['album/'], ['album/', '--recursive'], ['./', '-r']])
    expect((await at.run('rm', ...args)).code).toBe(2)
  expect((await at.left()).length).toBe(3)
  const all = await at.run('rm', 'album/', '--recursive', '--yes')
  expect([all.code, all.stderr]).toEqual([0, 'Deleted 2 items below album/\n'])
  expect(await at.left()).toEqual(['album-2/d.txt'])
})

test('rm --recursive counts and asks on a terminal', async () => {
  await using at = await scene(...paths)
  const { command, env } = commandLine(at.service, 'rm', 'album/', '--recursive')
  const refused = await onTerminal(command, env, 'n\r')
  expect([refused.code, refused.shown]).toEqual([
    1,
    expect.stringContaining('Delete 3 items (51 B) below album/? [y/N]'),
  ])
  const interrupted = await interruptedAt('[y/N]', command, env)
  expect([interrupted.code, interrupted.shown]).toEqual([130, expect.not.stringContaining('mediabucket:')])
  expect((await at.left()).length).toBe(5)
  const agreed = await onTerminal(command, env, 'y\r')
  expect([agreed.code, agreed.shown]).toEqual([0, expect.stringContaining('Deleted 3 items below album/')])
  expect(await at.left()).toEqual(['album-2/d.txt', 'top.txt'])
})

test('edit and link take the path of an item', async () => {
  await using at = await scene(...paths)
  expect(await at.run('edit', 'album/b.txt', '--caption', 'Hello')).toMatchObject({
    code: 0,
    stderr: 'Edited album/b.txt\n',
  })
  expect((await at.client.describe(at.idOf('album/b.txt'))).caption).toBe('Hello')
  const link = await at.run('link', 'album/b.txt', './top.txt')
  const bytes = lines(link.stdout).map(async (url) => await (await fetch(url)).text())
  expect(await Promise.all(bytes)).toEqual(['album/b.txt', 'top.txt'])
  for (const args of [
    ['edit', 'album/', '--caption', 'x'],
    ['link', 'album/'],
  ])
    expect(await at.run(...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('album/ is a folder'),
    })
  expect((await at.run('link', 'album/nothing')).code).toBe(4)
})

test('sync --json prints each change, each failure and the totals', async () => {
  await using at = await scene('a.txt', 'b/c.txt', 'b')
  const { code, stdout } = await at.run('sync', '--down', at.at('copy'), '--json')
  expect(code).toBe(23)
  const printed = lines(stdout).map((line) => JSON.parse(line))
  expect(
    printed
      .slice(0, -2)
      .map(({ action, path }) => `${action} ${path}`)
      .toSorted(),
  ).toEqual(['download a.txt', 'download b'])
  expect(printed.slice(-2)).toEqual([
    { action: 'fail', path: 'b/c.txt', reason: expect.stringContaining('is a file') },
    {
      totals: {
        ...{ direction: 'down', dry_run: false, complete: true, examined: 3, unchanged: 0 },
        ...{ transferred: 2, bytes: 6, replaced: 0, deleted: 0, failed: 1, vanished: 0, untried: 0 },
        ...{ left_alone: 0, without_path: 0, deletes_refused: false },
      },
    },
  ])
})

test('sync --json names failures by their paths in the bucket, and the error that ends a run', async () => {
  await using at = await scene('album/dir/x', 'album/file')
  for (const name of ['files', 'copy']) await mkdir(at.at(name))
  const parsed = ({ stdout }: CommandResult) => lines(stdout).map((line): unknown => JSON.parse(line))
  await symlink('/nothing', at.at('files/broken'))
  const up = await at.run('sync', at.at('files'), '--folder', 'album', '--json')
  expect([up.code, parsed(up)]).toEqual([
    23,
    [
      { action: 'fail', path: 'album/broken', reason: expect.stringContaining('does not exist') },
      { totals: expect.objectContaining({ failed: 1, complete: true }) },
    ],
  ])
  await writeFile(at.at('copy/dir'), 'a file')
  const down = await at.run('sync', '--down', at.at('copy'), '--folder', 'album', '--json')
  expect([down.code, parsed(down)]).toEqual([
    23,
    [
      { action: 'download', path: 'album/file' },
      { action: 'fail', path: 'album/dir/x', reason: expect.stringContaining('is a file') },
      { totals: expect.objectContaining({ failed: 1, complete: true }) },
    ],
  ])
  const missing = await at.run('sync', at.at('nothing'), '--json')
  expect([missing.code, parsed(missing)]).toEqual([
    1,
    [{ action: 'error', reason: `${at.at('nothing')} does not exist` }],
  ])
  for (const [direction, ...more] of [['up'], ['down', '--down']]) {
    const rejected = await runClient(
      { ...at.service, token: 'mbkt_nope' },
      'sync',
      ...more,
      at.at('files'),
      '--json',
    )
    const error = { action: 'error', reason: expect.stringContaining('rejects the token') }
    expect([direction, rejected.code, parsed(rejected).at(-1)]).toEqual([direction, 3, error])
  }
})

test('get and rm of a folder or an item without the slash of a path say what to write', async () => {
  const odd = ['my album/part/a.txt', '-x/a.txt']
  await using at = await scene(...paths, ...odd)
  const said = async (...args: string[]) => {
    const { code, stderr } = await at.run(...args)
    return [code, lines(stderr)[args.includes('-d') ? 1 : 0]]
  }
  expect(await said('get', 'album')).toEqual([
    4,
    expect.stringMatching(/^mediabucket: .* album is a folder: mediabucket get album\/ -d DIR$/),
  ])
  expect(await said('get', 'album/summer')).toEqual([
    4,
    expect.stringContaining('album/summer is a folder: mediabucket get album/summer/ -d DIR'),
  ])
  expect(await said('get', 'album', '-d', at.at('copy'))).toEqual([
    4,
    'mediabucket: album: There is no such item. album is a folder: mediabucket get album/ -d DIR',
  ])
  expect(await said('rm', 'album')).toEqual([
    4,
    'mediabucket: album: There is no such item. album is a folder: mediabucket rm --recursive album/',
  ])
  // The command is for a shell.
  expect(await said('rm', 'my album/part')).toEqual([
    4,
    "mediabucket: my album/part: There is no such item. my album/part is a folder: mediabucket rm --recursive 'my album/part/'",
  ])
  expect(await said('get', '--', '-x')).toEqual([
    4,
    expect.stringContaining('-x is a folder: mediabucket get ./-x/ -d DIR'),
  ])
  expect(await said('get', 'my album/')).toEqual([
    2,
    expect.stringContaining("my album/ is a folder: get 'my album/' -d DIR"),
  ])
  expect(await said('rm', 'my album/')).toEqual([2, expect.stringContaining("rm --recursive 'my album/'")])
  expect(await said('link', 'my album/')).toEqual([
    2,
    expect.stringContaining("See: mediabucket ls 'my album/'"),
  ])
  expect(await said('rm', 'top.txt')).toEqual([
    4,
    'mediabucket: top.txt: There is no such item. The path of the item is ./top.txt',
  ])
  expect(await said('rm', 'alb')).toEqual([4, 'mediabucket: alb: There is no such item.'])
  expect(await at.left()).toEqual([...paths, ...odd].toSorted())
})
