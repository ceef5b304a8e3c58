import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient } from '../../packages/client/src/index.ts'
import { urlsOf } from '../client/buckets.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'
import { lines, runAlone, runClient } from './client-run.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server[Symbol.asyncDispose]())

/** The service with a new bucket. */
const bucket = async (name: string, ...args: string[]) => ({
  url: server.url,
  token: (await makeToken(server, '--bucket', name, ...args)).token,
})

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
const kinds: readonly (readonly [string, (index: number) => string | Buffer])[] = [
  ['txt', (index) => `line ${index}\n`],
  ['csv', (index) => `a,b\r\n${index},2\r\n`],
  ['json', (index) => JSON.stringify({ index })],
  ['png', (index) => Buffer.concat([png, Buffer.from(`${index}`)])],
  ['pdf', (index) => `%PDF-1.7\n% ${index}\n`],
  [
    'gif',
    (index) => Buffer.concat([Buffer.from('GIF89a\x01\0\x01\0\x80\0\0', 'latin1'), randomBytes(index)]),
  ],
  ['svg', (index) => `<svg xmlns="http://www.w3.org/2000/svg"><title>${index}</title></svg>`],
  ['bin', (index) => randomBytes(index)],
  ['html', (index) => `<script>alert(${index})</script>`],
  ['zip', () => Buffer.from('PK\x05\x06'.padEnd(22, '\0'), 'latin1')],
  ['mp3', (index) => Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0\0', 'latin1'), randomBytes(index)])],
  ['', () => ''],
  ['ünï côdé "1"', (index) => `${index} \u{1f4f7}`],
]

/** Creates a thousand files of many kinds, up to four directories deep; returns their paths. */
async function thousandFiles(root: string): Promise<string[]> {
  const paths = Array.from({ length: 1_000 }, (_, index) => {
    const [extension] = kinds[index % kinds.length] ?? ['']
    const name = `${index}${extension && '.'}${extension}`
    const directories = [...`${index % 125}`].map((digit) => `d ${digit}`)
    return join(root, ...directories, index % 50 === 0 ? `.${name}` : name)
  })
  for (const directory of new Set(paths.map(dirname))) await mkdir(directory, { recursive: true })
  await Promise.all(
    paths.map((path, index) => writeFile(path, kinds[index % kinds.length]?.[1](index) ?? '')),
  )
  return paths
}

test('a thousand files of many kinds in nested directories are stored byte for byte', {
  timeout: 90_000,
}, async () => {
  await using directory = await temporaryDirectory()
  const service = await bucket('thousand')
  const paths = await thousandFiles(directory.path)
  const { code, stdout, stderr } = await runClient(service, 'upload', directory.path)
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/^Uploaded 1000 of 1000 files, \S+ kB in \S+ s\.\n$/),
  ])

  const lines = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'))
  const urlOf = new Map(lines.map(([url = '', path = '']) => [path, url]))
  expect([...urlOf.keys()].sort()).toEqual(paths.sort())
  const client = createClient(service)
  expect(await urlsOf(client)).toEqual([...urlOf.values()])
  const requests = server.log().filter(({ method }) => method === 'POST')
  expect(requests.length).toBeLessThan(20)

  const waiting = paths.values()
  async function compare() {
    for (const path of waiting) {
      const response = await client.get(urlOf.get(path) ?? '')
      const same = Buffer.from(await response.arrayBuffer()).equals(await readFile(path))
      expect([path, same]).toEqual([path, true])
    }
  }
  await Promise.all(Array.from({ length: 16 }, compare))

  for (const path of paths.filter((_, index) => index % 300 === 7)) {
    const copy = join(directory.path, 'copy')
    const { code, stdout } = await runClient(service, 'get', urlOf.get(path) ?? '', '-o', copy)
    expect([code, stdout, await readFile(copy)]).toEqual([0, '', await readFile(path)])
  }
})

test('files are printed in order, and keep their names and types', async () => {
  await using directory = await temporaryDirectory()
  const service = await bucket('order')
  await mkdir(join(directory.path, 'b'))
  for (const name of ['c.txt', 'a.csv', 'b/z.txt', 'b/A.txt', 'B.json'])
    await writeFile(join(directory.path, name), name)
  const last = join(directory.path, 'c.txt')
  const { stdout } = await runClient(service, 'upload', last, directory.path)
  const paths = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t')[1]?.replace(`${directory.path}/`, ''))
  expect(paths).toEqual(['c.txt', 'a.csv', 'b/A.txt', 'b/z.txt', 'B.json', 'c.txt'])
  const csv = stdout.split('\n')[1]?.split('\t')[0] ?? ''
  expect(await createClient(service).describe(csv)).toMatchObject({
    filename: 'a.csv',
    content_type: 'text/csv',
  })
})

test('files that cannot be uploaded are listed, the others are stored, and the exit code is 1', async () => {
  await using directory = await temporaryDirectory()
  const service = await bucket('faults')
  const path = (name: string) => join(directory.path, name)
  await mkdir(path('tree/inner'), { recursive: true })
  await writeFile(path('tree/good.txt'), 'good')
  await symlink(path('tree'), path('tree/inner/loop'))
  await writeFile(Buffer.concat([Buffer.from(path('tree/bad')), Buffer.from([0xff])]), 'named by no text')
  await symlink(path('nowhere'), path('tree/inner/dangling'))
  await symlink(path('tree/good.txt'), path('tree/inner/link.txt'))
  const args = ['upload', path('tree'), path('missing'), '/dev/null', '/proc/version']
  const { code, stdout, stderr } = await runClient(service, ...args)
  expect(code).toBe(1)
  expect(stdout.match(/\t.*$/gm)).toEqual([`\t${path('tree/good.txt')}`, `\t${path('tree/inner/link.txt')}`])
  expect(stderr).toMatch(/^Uploaded 2 of 8 files, 8 B /)
  expect(stderr).toContain(`  ${path('tree/inner/dangling')}: is a link to a file that does not exist\n`)
  expect(stderr).toContain(`  ${path('tree/bad\ufffd')}: its name is not valid UTF-8; rename it\n`)
  expect(stderr).toContain(`  ${path('tree/inner/loop')}: is a link to a directory`)
  expect(stderr).toContain(`  ${path('missing')}: does not exist\n`)
  expect(stderr).toContain('  /dev/null: is neither a file nor a directory')
  expect(stderr).toContain('  /proc/version: its size is not known before it is read; use: cat FILE |')
  expect(stderr).toContain('mediabucket: 6 of 8 files were not uploaded')
  const dry = await runClient(service, ...args, '--dry-run')
  expect([dry.code, lines(dry.stdout)]).toEqual([1, [path('tree/good.txt'), path('tree/inner/link.txt')]])
  const faultsOf = (text: string) => text.match(/^ {2}.*$/gm)
  expect(faultsOf(dry.stderr)).toEqual(faultsOf(stderr))
  const tree = await runClient(service, 'upload', path('tree/inner'), '--exclude', 'dangling', '--dry-run')
  expect([tree.code, tree.stderr]).toEqual([
    1,
    expect.stringContaining('inner/loop: is a link to a directory'),
  ])
})

test('a file that the service refuses does not prevent the others', async () => {
  await using small = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '10' })
  await using directory = await temporaryDirectory()
  for (const name of ['a', 'b', 'c'])
    await writeFile(join(directory.path, name), name.repeat(name === 'b' ? 11 : 9))
  const { code, stdout, stderr } = await runClient(small, 'upload', directory.path)
  expect([code, stdout.match(/\w+$/gm)]).toEqual([1, ['a', 'c']])
  expect(stderr).toMatch(/Not uploaded:\n {2}\S+\/b: .*10/)
  expect(stderr.match(/\/b: /g)).toHaveLength(1)
  expect(stderr).toMatch(/mediabucket: 1 of 3 files was not uploaded\n$/)
})

test('a rejected token ends an upload at once with exit code 3, and the remaining files are not tried', async () => {
  await using directory = await temporaryDirectory()
  const reader = await bucket('readers', '--scope', 'media:read')
  for (let index = 0; index < 50; index += 1) await writeFile(join(directory.path, `${index}`), 'x')
  const { code, stdout, stderr } = await runClient(reader, 'upload', directory.path)
  expect([code, stdout]).toEqual([3, ''])
  expect(stderr).toMatch(
    /^Uploaded 0 of 50 files.*\nNot tried: 50 files\.\nmediabucket: the token lacks a scope: .*media:write/,
  )
  expect(stderr.trimEnd().split('\n')).toHaveLength(3)
})

test('large files are sent while they are read', async () => {
  await using directory = await temporaryDirectory()
  const service = await bucket('large')
  const bytes = randomBytes(20_000_000)
  await writeFile(join(directory.path, 'large.bin'), bytes)
  const { stdout } = await runClient(service, 'upload', join(directory.path, 'large.bin'))
  const item = await createClient(service).describe(stdout.split('\t')[0] ?? '')
  expect([item.size, item.sha256]).toEqual([bytes.length, createHash('sha256').update(bytes).digest('hex')])
})

test('E1 --expires: items expire after a duration or at a time; other values are explained', async () => {
  await using directory = await temporaryDirectory()
  const service = await bucket('expiring')
  const client = createClient(service)
  const [one, two] = [join(directory.path, 'one'), join(directory.path, 'two')]
  await Promise.all([one, two].map((path) => writeFile(path, path)))
  const expiries = async (...args: string[]) => {
    const { code, stdout, stderr } = await runAlone(service, 'upload', ...args)
    expect([code, stderr]).toEqual([0, expect.stringContaining('Uploaded')])
    const urls = stdout.split('\n').flatMap((line) => line.split('\t')[0] || [])
    return Promise.all(urls.map(async (url) => (await client.describe(url)).expires_at))
  }
  const time = '2099-01-31T08:00:00Z'
  const both = await expiries(directory.path, '--expires', time)
  expect(both.map((at) => Date.parse(at ?? ''))).toEqual([Date.parse(time), Date.parse(time)])
  const before = Date.now()
  const [after] = await expiries(one, '--expires=7d')
  const start = Date.parse(after ?? '') - 7 * 86_400_000
  expect(start).toBeGreaterThanOrEqual(before)
  expect(start).toBeLessThanOrEqual(Date.now())
  expect(await expiries(two)).toEqual([null])
  for (const [wrong, reason] of [
    ['soon', 'takes a duration such as 12h'],
    ['0s', 'takes a duration such as 12h'],
    ['2099-01-31', 'takes a duration such as 12h'],
    ['2020-01-31T08:00:00Z', 'takes a time in the future'],
    ['999999999w', 'takes a duration such as 12h'],
  ]) {
    const { code, stderr } = await runClient(service, 'upload', one, `--expires=${wrong}`)
    expect([code, stderr]).toEqual([2, expect.stringContaining(reason ?? '')])
  }
})
