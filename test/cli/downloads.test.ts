import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { newToken } from '../client/buckets.ts'
import { listen, sendJson } from '../client/foreign-service.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { onTerminal } from '../harness/terminal.ts'
import { until } from '../harness/until.ts'
import { commandLine, lines, runClient } from './client-run.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** A new bucket with these files, an empty directory, and a state directory of its own. */
async function scene(name: string, files: readonly (readonly [string, string])[] = []) {
  const directory = await temporaryDirectory()
  const service = { url: server.url, token: await newToken(server, name) }
  const client = createClient(service)
  const items = []
  for (const [filename, content] of files) items.push(await client.upload(Buffer.from(content), { filename }))
  return {
    service,
    client,
    items,
    at: (...names: string[]) => join(directory.path, ...names),
    run: (...args: string[]) => runClient(service, ...args),
    [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose](),
  }
}

/** The contents of the files of a directory, by their names. */
async function contentsOf(directory: string): Promise<Record<string, string>> {
  const names = await readdir(directory)
  const entries = names.map(async (name) => [name, await readFile(join(directory, name), 'utf8')] as const)
  return Object.fromEntries(await Promise.all(entries))
}

test('get --all downloads every item, numbers equal names, replaces no file, and skips what is complete', async () => {
  const files = [
    ['a.txt', 'one'],
    ['a.txt', 'two'],
    ['A.txt', 'three'],
    ['.profile', 'four'],
    ['q?.txt', 'five'],
    ['film.mp4', 'six'],
  ] as const
  await using at = await scene('all', files)
  const directory = at.at('new', 'copy')
  const args = ['get', '--all', directory, '--exclude', '*.mp4']

  const dry = await at.run(...args, '--dry-run')
  expect([dry.code, lines(dry.stdout).length]).toEqual([0, 5])
  expect(dry.stderr).toContain('Would download 5 of 5 files, 19 B.\n')
  await expect(stat(at.at('new'))).rejects.toThrow('ENOENT')

  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'a-2.txt'), 'my own')
  const expected = {
    'a.txt': 'one',
    'a-2.txt': 'my own',
    'a-3.txt': 'two',
    'A-2.txt': 'three',
    _profile: 'four',
    'q_.txt': 'five',
  }
  const first = await at.run(...args)
  expect(first.code).toBe(0)
  expect(first.stderr).toMatch(
    /^Downloaded 5 of 5 files, 19 B in \S+ s\.\nNames changed for this directory: 4\.\n(?: {2}\S+ is \S+\n){4}Excluded: 1 file\.\n$/,
  )
  const contents = await contentsOf(directory)
  expect(Object.values(contents).sort()).toEqual(Object.values(expected).sort())
  expect(contents).toMatchObject({ 'a.txt': 'one', 'a-2.txt': 'my own', _profile: 'four', 'q_.txt': 'five' })
  const printed = new Map(lines(first.stdout).map((line) => line.split('\t') as [string, string]))
  expect(printed.size).toBe(5)
  for (const [index, [, content]] of files.slice(0, 5).entries())
    expect(await readFile(printed.get(at.items[index]?.url ?? '') ?? '', 'utf8')).toBe(content)

  // Files are compared by their bytes, whatever their times are.
  await utimes(join(directory, 'a.txt'), new Date(0), new Date(0))
  const again = await at.run(...args, '--json')
  expect(again.stderr).toMatch(/^Downloaded 0 of 5 files, 0 B in \S+ s\.\nComplete before: 5 files\.\n/)
  expect(lines(again.stdout).map((line) => JSON.parse(line).present)).toEqual(Array(5).fill(true))
  expect(await contentsOf(directory)).toEqual(contents)
})

test('get -d downloads the named items, reports those that do not exist, and exits with 4', async () => {
  await using at = await scene('named', [
    ['x y.txt', 'one'],
    ['b.txt', 'two'],
  ])
  const [one, two] = at.items
  const ids = [one?.id ?? '', 'nosuchitem', two?.url ?? '', one?.id ?? '']
  const { code, stdout, stderr } = await at.run('get', ...ids, '-d', at.at('to'), '-0')
  expect([code, stdout.split('\0').sort()]).toEqual([
    4,
    ['', `${one?.url}\t${at.at('to', 'x y.txt')}`, `${two?.url}\t${at.at('to', 'b.txt')}`].sort(),
  ])
  expect(stderr).toContain('mediabucket: nosuchitem: There is no such item.\n')
  expect(stderr).toMatch(/1 of 4 items does not exist. See: mediabucket ls\n$/)
  expect(await contentsOf(at.at('to'))).toEqual({ 'x y.txt': 'one', 'b.txt': 'two' })
  const { mtime } = await stat(at.at('to', 'b.txt'))
  expect(mtime).toEqual(new Date(two?.created_at ?? ''))
})

test('a file of another item with the same name, size and time is not taken for that of the item', async () => {
  await using at = await scene('twins')
  const twin = (content: string) => ({ source: Buffer.from(content), filename: 'frame.bmp' })
  const items = await at.client.uploadAll([twin('one'), twin('two')])
  for (const { id } of items) expect((await at.run('get', id, '-d', at.at('to'))).code).toBe(0)
  expect(await contentsOf(at.at('to'))).toEqual({ 'frame.bmp': 'one', 'frame-2.bmp': 'two' })
  // The file of the deleted item stays, and is not that of the other one.
  await at.client.delete(items[0]?.id ?? '')
  const again = await at.run('get', '--all', at.at('to'), '--json')
  expect(JSON.parse(again.stdout)).toMatchObject({ path: at.at('to', 'frame-2.bmp'), present: true })
})

test('an item that the service cannot read does not stop the others', async () => {
  await using at = await scene('unreadable', [['a.txt', 'one']])
  const [item] = at.items
  await using service = await listen((request, response) => {
    if (request.url?.startsWith('/media/')) response.writeHead(200, { etag: '"x"' }).end('one')
    else if (request.url?.endsWith('damaged')) sendJson(response, { title: 'Damaged' }, 500)
    else sendJson(response, item)
  })
  const args = ['get', 'damaged', item?.id ?? '', '-d', at.at('to')]
  const { code, stderr } = await runClient({ url: service.url, token: 'x' }, ...args)
  expect([code, await contentsOf(at.at('to'))]).toEqual([1, { 'a.txt': 'one' }])
  expect(stderr).toMatch(/Not downloaded:\n {2}damaged: .+\nmediabucket: 1 of 2 files was not downloaded\n$/)
})

test('a rejected token, a missing scope and a failing file have their exit codes', async () => {
  await using at = await scene('codes', [['a.txt', 'one']])
  expect((await runClient({ ...at.service, token: 'mbkt_nope' }, 'get', '--all', at.at('to'))).code).toBe(3)
  await using bad = await listen((request, response) => {
    if (request.url?.startsWith('/api/')) {
      const { id, url } = at.items[0] ?? { id: '', url: '' }
      sendJson(response, { ...at.items[0], id, url, size: 3 })
    } else response.writeHead(200, { etag: '"x"' }).end('not')
  })
  const failed = await runClient({ url: bad.url, token: 'x' }, 'get', 'some-id', '-d', at.at('bad'))
  expect([failed.code, failed.stdout]).toEqual([1, ''])
  expect(failed.stderr).toContain(
    '  a.txt: the bytes are not those that the service describes; download it again\n',
  )
  expect(await readdir(at.at('bad'))).toEqual([])
})

const bytes = randomBytes(3_000_000)
const sha256 = createHash('sha256').update(bytes).digest('hex')

/** A service with one item, whose responses break off after `limit()` bytes. Counts the requests by their Range. */
async function breaking(etag: () => string, limit: () => number) {
  const ranges: (string | undefined)[] = []
  const service = await listen((request, response) => {
    const url = `http://h.example/media/${'0'.repeat(28)}.bin`
    const item = { id: 'abc', url, filename: 'big.bin', content_type: 'x/y', size: bytes.length, sha256 }
    const more = { created_at: '2026-01-02T03:04:05.000Z', expires_at: null, width: null, height: null }
    if (request.url?.startsWith('/api/')) return sendJson(response, { ...item, ...more })
    ranges.push(request.headers.range)
    const isSame = request.headers['if-range'] === etag()
    const start = isSame ? Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0) : 0
    response.writeHead(start > 0 ? 206 : 200, {
      etag: etag(),
      'content-length': bytes.length - start,
      ...(start > 0 && { 'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}` }),
    })
    const end = Math.min(bytes.length, start + limit())
    response.write(bytes.subarray(start, end), () => {
      if (end === bytes.length) response.end()
      else if (limit() > 0) setImmediate(() => response.destroy())
    })
  })
  return Object.assign(service, { ranges })
}

test('a connection that breaks is continued at the byte where it broke, for a directory and a file', async () => {
  await using at = await scene('broken')
  await using service = await breaking(
    () => '"same"',
    () => 1_000_000,
  )
  const run = (...args: string[]) => runClient({ url: service.url, token: 'x' }, 'get', 'abc', ...args)
  expect(await run('-d', at.at('to'))).toMatchObject({ code: 0 })
  expect((await readFile(at.at('to', 'big.bin'))).equals(bytes)).toBe(true)
  const starts = service.ranges.map((range) => Number(/^bytes=(\d+)-$/.exec(range ?? 'bytes=0-')?.[1]))
  expect(starts.length).toBeGreaterThanOrEqual(3)
  expect(starts).toEqual([...new Set(starts)].toSorted((one, other) => one - other))
  expect(await run('-o', at.at('file'))).toMatchObject({ code: 0, stderr: '' })
  expect((await readFile(at.at('file'))).equals(bytes)).toBe(true)
})

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'get -d that %s ends is continued by the same command with Range and If-Range, or starts again if the item has changed',
  async (signal) => {
    await using at = await scene('killed')
    let [etag, limit] = ['"one"', 1_500_000]
    await using service = await breaking(
      () => etag,
      () => (limit > 0 ? limit : bytes.length),
    )
    // The first response neither ends nor breaks.
    await using stalled = await listen((request, response) => {
      if (request.url?.startsWith('/api/')) return void fetchThrough(service.url, request.url, response)
      response.writeHead(200, { etag, 'content-length': bytes.length }).write(bytes.subarray(0, limit))
    })
    const args = ['get', 'abc', '-d', at.at('to')]
    const part = async () => (await readdir(at.at('to')).catch(() => []))[0]
    for (const isChanged of [false, true]) {
      const { command, env } = commandLine({ url: stalled.url, token: 'x' }, ...args)
      const [program = '', ...rest] = command
      const child = spawn(program, rest, { env: { ...env, XDG_STATE_HOME: at.at('state') } })
      const stderr = text(child.stderr)
      await until('a part is written', async () => {
        const name = await part()
        return name !== undefined && (await stat(at.at('to', name))).size === limit
      })
      child.kill(signal)
      const [code] = await once(child, 'exit')
      if (signal === 'SIGTERM') {
        expect(code).toBe(143)
        expect(await stderr).toMatch(/Run the same command again to continue\.\n$/)
      }
      if (isChanged) etag = '"two"'
      limit = 0
      service.ranges.length = 0
      expect(await runClient({ url: service.url, token: 'x' }, ...args)).toMatchObject({ code: 0 })
      expect(service.ranges).toEqual(['bytes=1500000-'])
      expect(await readdir(at.at('to'))).toEqual(['big.bin'])
      expect((await readFile(at.at('to', 'big.bin'))).equals(bytes)).toBe(true)
      await promisify(execFile)('rm', [at.at('to', 'big.bin')])
      limit = 1_500_000
    }
  },
)

/** Responds with what another server responds. */
async function fetchThrough(base: string, path: string, response: import('node:http').ServerResponse) {
  const found = await fetch(new URL(path, base))
  sendJson(response, await found.json())
}

test('get -o keeps the permissions of a file that it replaces', async () => {
  await using at = await scene('permissions', [['a.txt', 'new']])
  const [item] = at.items
  const modes: number[] = []
  for (const mode of [0o600, 0o666]) {
    const file = at.at(`${mode}.txt`)
    await writeFile(file, 'old')
    await chmod(file, mode)
    expect(await at.run('get', item?.id ?? '', '-o', file)).toMatchObject({ code: 0 })
    expect(await readFile(file, 'utf8')).toBe('new')
    modes.push((await stat(file)).mode & 0o777)
  }
  expect(modes).toEqual([0o600, 0o666])
})

test('SIGTERM ends get -o with 143, and leaves no partial file', async () => {
  await using at = await scene('terminated')
  await mkdir(at.at('to'))
  await using slow = await listen(
    (_request, response) => void response.writeHead(200).write('the first part'),
  )
  const { command, env } = commandLine({ url: slow.url, token: 'x' }, 'get', 'abc', '-o', at.at('to', 'file'))
  const [program = '', ...rest] = command
  const child = spawn(program, rest, { env })
  await until('a part of the file', async () => (await readdir(at.at('to'))).length > 0)
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([143, null])
  expect(await readdir(at.at('to'))).toEqual([])
})

test('on a terminal, get prints a text, and explains how to save anything else', async () => {
  await using at = await scene('terminal', [
    ['a.txt', 'grüße\tund mehr\n'],
    ['b.txt', 'clear \u001b[2J the screen'],
    ['c.png', '\u0089PNG\r\n\u001a\n'],
  ])
  const shown = async (index: number, ...more: string[]) => {
    const { command, env } = commandLine(at.service, 'get', at.items[index]?.id ?? '', ...more)
    return await onTerminal(command, env)
  }
  expect(await shown(0)).toEqual({ code: 0, shown: 'grüße\tund mehr\r\n' })
  for (const index of [1, 2]) {
    const { code, shown: output } = await shown(index)
    expect([code, output]).toEqual([1, expect.stringMatching(/^mediabucket: the item is not plain text \(/)])
    expect(output).toContain('Save it with -o FILE, or write it anyway with -o -')
    expect(output).not.toContain('\u001b')
  }
  expect((await shown(1, '-o', '-')).shown).toContain('\u001b[2J')
})

test('get of a URL under the base URL of the service uses MEDIABUCKET_URL, with the token', async () => {
  await using at = await scene('base', [['a.txt', 'one']])
  const { id = '', url = '' } = at.items[0] ?? {}
  const base = 'http://media.invalid/box'
  const seen: string[] = []
  await using proxy = await listen(async (request, response) => {
    seen.push(`${request.headers.authorization ? 'token ' : ''}${request.url}`)
    if (!request.url?.startsWith('/api/')) return void response.end('through the service')
    const found = await fetch(new URL(request.url, server.url), {
      headers: { authorization: request.headers.authorization ?? '' },
    })
    const body = (await found.text()).replaceAll(server.url, base)
    response.writeHead(found.status, { 'content-type': found.headers.get('content-type') ?? '' }).end(body)
  })
  const own = url.replace(server.url, base)
  const service = { ...at.service, url: proxy.url }
  expect(await runClient(service, 'get', `${own}?variant=thumb`)).toEqual({
    code: 0,
    stdout: 'through the service',
    stderr: '',
  })
  expect(seen.at(-1)).toBe(`token /media/${id}?variant=thumb`)
  seen.length = 0
  const foreign = await runClient(service, 'get', `http://other.invalid/media/${id}.txt`)
  expect([foreign.code, foreign.stderr]).toEqual([
    1,
    expect.stringContaining('no connection to http://other.invalid'),
  ])
  expect(seen).toEqual([`token /api/media/${id}`])
})

test('upload - stores standard input; --json, -0, --exclude and --dry-run change what is printed and sent', async () => {
  await using at = await scene('input')
  const { command, env } = commandLine(at.service, 'upload', '-', '--filename', 'notes.txt')
  const [program = '', ...rest] = command
  const child = spawn(program, rest, { env })
  child.stdin.end('from a pipe')
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  expect(stderr).toMatch(/^Uploaded standard input, 11 B in \S+ s\.\n$/)
  const [url = '', path] = stdout.trimEnd().split('\t')
  expect(path).toBe('-')
  expect(await at.client.describe(url)).toMatchObject({ filename: 'notes.txt', size: 11 })

  await mkdir(at.at('files', 'drafts'), { recursive: true })
  for (const name of ['a.txt', 'b.tmp', 'drafts/c.txt', 'line\nend.txt'])
    await writeFile(at.at('files', name), name)
  const args = ['upload', at.at('files'), '--exclude', '*.tmp', '--exclude', 'drafts/*']
  const dry = await at.run(...args, '--dry-run', '-0')
  expect([dry.code, dry.stdout]).toEqual([
    0,
    `${at.at('files', 'a.txt')}\0${at.at('files', 'line\nend.txt')}\0`,
  ])
  expect(dry.stderr).toBe('Would upload 2 of 2 files, 17 B.\nExcluded: 2 paths.\n')
  const missing = await at.run(...args, at.at('nothing'), '--dry-run')
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('does not exist\n')])
  expect((await at.client.listPage(1)).total).toBe(1)
  const sent = await at.run(...args, '--json')
  expect(lines(sent.stdout).map((line) => JSON.parse(line))).toEqual([
    { id: expect.any(String), url: expect.any(String), path: at.at('files', 'a.txt'), size: 5 },
    { id: expect.any(String), url: expect.any(String), path: at.at('files', 'line\nend.txt'), size: 12 },
  ])
  expect(sent.stderr).toMatch(
    /Excluded: 2 paths\.\nNames changed by the service: 1\. mediabucket ls -l lists them\.\n$/,
  )
})
