import { execFile } from 'node:child_process'
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { runCommand, type SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { upload } from '../harness/upload.ts'
import { readItem, readItems } from '../harness/wire.ts'
import { commandLine, lines, runAlone, runClient } from './client-run.ts'

let server: SharedServer
let urls: string[]
beforeAll(async () => {
  server = await sharedServer()
  urls = []
  for (let item = 1; item <= 23; item += 1) urls.push((await upload(server, `item ${item}`)).url)
})

const run = (...args: string[]) => runClient(server, ...args)

test('ls prints the first page, --page another one, --all all pages', async () => {
  const [first, third, all] = await Promise.all([run('ls'), run('ls', '--page', '3'), run('ls', '--all')])
  expect([first.code, lines(first.stdout)]).toEqual([0, urls.slice(0, 10)])
  expect(first.stderr).toBe('Page 1 of 3; 23 items in total.\n')
  expect([third.code, lines(third.stdout)]).toEqual([0, urls.slice(20)])
  expect([all.code, lines(all.stdout), all.stderr]).toEqual([0, urls, ''])
})

test('ls of a page after the last one prints no URL and names the pages, with exit code 0', async () => {
  expect(await run('ls', '--page', '9')).toEqual({
    code: 0,
    stdout: '',
    stderr: 'There is no page 9. The pages are 1 to 3; 23 items in total.\n',
  })
  const { code, stdout, stderr } = await run('ls', '--page', '9', '--json')
  expect([code, JSON.parse(stdout), stderr]).toEqual([0, expect.objectContaining({ data: [] }), ''])
})

test('ls --json prints the page objects of the service, one per line', async () => {
  const one = await run('ls', '--page', '2', '--json')
  expect([JSON.parse(one.stdout), one.stderr]).toEqual([
    await (await server.request('/api/media?page=2')).json(),
    '',
  ])
  const all = lines((await run('ls', '--all', '--json')).stdout).map((line) => JSON.parse(line))
  expect(all.flatMap(({ data }) => data)).toEqual(urls)
})

test('ls --newest prints the newest items first, ten or all, as URLs, tables or objects', async () => {
  const newest = urls.toReversed()
  const [ten, all, objects] = await Promise.all([
    run('ls', '--newest'),
    run('ls', '--newest', '--all'),
    run('ls', '--newest', '--json'),
  ])
  expect([ten.code, lines(ten.stdout), ten.stderr]).toEqual([0, newest.slice(0, 10), ''])
  expect(lines(all.stdout)).toEqual(newest)
  const { data } = await readItems(await server.request('/api/items?order=newest&limit=10'))
  expect(lines(objects.stdout).map((line) => JSON.parse(line))).toEqual(data)
  const long = lines((await run('ls', '--newest', '-l')).stdout)
  expect(long.map((line) => line.split('\t')[0])).toEqual(data.map(({ id }) => id))
})

test('B13 ls --names prints URLs with the names of the items, or objects with them', async () => {
  const named = urls.map((url) => url.replace(/\.txt$/, '/file.txt'))
  expect(lines((await run('ls', '--names')).stdout)).toEqual(named.slice(0, 10))
  expect(lines((await run('ls', '--names', '--newest', '--all')).stdout)).toEqual(named.toReversed())
  const [object = ''] = lines((await run('ls', '--names', '--json')).stdout)
  expect(JSON.parse(object).url).toBe(named[0])
  expect((await run('get', named[1] ?? '')).stdout).toBe('item 2')
  for (const other of [['--page', '1'], ['./']]) expect((await run('ls', '--names', ...other)).code).toBe(2)
})

test('ls --kind prints the items of one kind, oldest first', async () => {
  const document = urls.slice(0, 10)
  expect(lines((await run('ls', '--kind', 'document')).stdout)).toEqual(document)
  expect(await run('ls', '--kind', 'image', '--all')).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('ls --name prints the items whose names have all words', async () => {
  expect(lines((await run('ls', '--name', 'TXT file')).stdout)).toEqual(urls.slice(0, 10))
  expect(lines((await run('ls', '--newest', '--name', 'file')).stdout)).toEqual(
    urls.toReversed().slice(0, 10),
  )
  expect(await run('ls', '--name', 'file nothing', '--all')).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('ls -l prints id, size, date, type and name: separated by tabs in a pipe, as objects with --json, as a table on a terminal', async () => {
  const page = await run('ls', '-l', '--page', '3')
  const items = await Promise.all(
    urls.slice(20).map(async (url) => {
      const id = url.split('/').at(-1)?.split('.')[0] ?? ''
      return (await (await server.request(`/api/media/${id}`)).json()) as Record<string, unknown>
    }),
  )
  const member = (name: string) => items.map((item) => item[name])
  expect(lines(page.stdout).map((line) => line.split('\t'))).toEqual(
    items.map((item) => [item['id'], '7', item['created_at'], 'text/plain', 'file.txt']),
  )
  expect(page.stderr).toBe('Page 3 of 3; 23 items in total.\n')
  const json = lines((await run('ls', '--long', '--all', '--json')).stdout).map((line) => JSON.parse(line))
  expect([json.length, json.slice(20)]).toEqual([23, items])

  const { command, env } = commandLine(server, 'ls', '-l', '--page', '3')
  const terminal = await promisify(execFile)(
    'script',
    ['-qec', command.map((word) => `'${word}'`).join(' '), '/dev/null'],
    { env: { ...env, TZ: 'UTC' } },
  )
  const [header = '', ...rows] = terminal.stdout.replaceAll('\r', '').split('\n')
  expect(header.trim().split(/ {2,}/)).toEqual(['ID', 'SIZE', 'CREATED', 'TYPE', 'NAME'])
  const cells = rows.slice(0, 3).map((row) => row.trim().split(/ {2,}/))
  expect(cells).toEqual(
    member('id').map((id, index) => [
      id,
      '7 B',
      String(member('created_at')[index]).slice(0, 16).replace('T', ' '),
      'text/plain',
      'file.txt',
    ]),
  )
  expect(rows[0]?.indexOf('text/plain')).toBe(header.indexOf('TYPE'))
})

test('get writes the bytes to standard output, by id and by URL', async () => {
  const id = urls[4]?.split('/').at(-1)?.split('.')[0] ?? ''
  expect(await run('get', id)).toEqual({ code: 0, stdout: 'item 5', stderr: '' })
  expect(await run('get', urls[4] ?? '')).toEqual({ code: 0, stdout: 'item 5', stderr: '' })
})

test('get -o replaces a file when the download is complete, and leaves nothing if it fails', async () => {
  await using directory = await temporaryDirectory()
  const file = join(directory.path, 'copy')
  await writeFile(file, 'old')
  expect(await run('get', 'nosuchitem', '-o', file)).toMatchObject({ code: 4, stdout: '' })
  expect(await readFile(file, 'utf8')).toBe('old')
  expect(await run('get', urls[0] ?? '', '-o', file)).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(await readFile(file, 'utf8')).toBe('item 1')
  expect(await readdir(directory.path)).toEqual(['copy'])
})

test('get -o follows links, also to a file that does not exist yet', async () => {
  await using directory = await temporaryDirectory()
  const at = (name: string) => join(directory.path, name)
  await writeFile(at('target'), 'old')
  await symlink('target', at('link'))
  await mkdir(at('below'))
  await symlink('below/new', at('dangling'))
  for (const name of ['link', 'dangling'])
    expect(await run('get', urls[0] ?? '', '-o', at(name))).toEqual({ code: 0, stdout: '', stderr: '' })
  const kinds = ['link', 'dangling'].map(async (name) => (await lstat(at(name))).isSymbolicLink())
  expect(await Promise.all(kinds)).toEqual([true, true])
  expect(await readFile(at('target'), 'utf8')).toBe('item 1')
  expect(await readFile(at('below/new'), 'utf8')).toBe('item 1')
})

test('get -o writes into a FIFO, and leaves it a FIFO', async () => {
  await using directory = await temporaryDirectory()
  const fifo = join(directory.path, 'fifo')
  await promisify(execFile)('mkfifo', [fifo])
  const read = promisify(execFile)('cat', [fifo], { timeout: 60_000 })
  expect(await run('get', urls[0] ?? '', '-o', fifo)).toEqual({ code: 0, stdout: '', stderr: '' })
  expect((await lstat(fifo)).isFIFO()).toBe(true)
  expect((await read).stdout).toBe('item 1')
})

// The test creates a device node with the numbers of /dev/null; only root may do that.
test.skipIf(process.getuid?.() !== 0)('get -o writes into a device, and leaves it a device', async () => {
  await using directory = await temporaryDirectory()
  const device = join(directory.path, 'device')
  await promisify(execFile)('mknod', [device, 'c', '1', '3'])
  // Where the file system does not allow devices, its error is reported; the node stays in any case.
  expect([0, 1]).toContain((await run('get', urls[0] ?? '', '-o', device)).code)
  expect((await lstat(device)).isCharacterDevice()).toBe(true)
  expect(await readdir(directory.path)).toEqual(['device'])
})

test('get -o - writes to standard output', async () => {
  expect(await run('get', urls[0] ?? '', '-o', '-')).toEqual({ code: 0, stdout: 'item 1', stderr: '' })
})

test('get -o of a directory, and of a file in a missing directory, fails before the download with a remedy', async () => {
  await using directory = await temporaryDirectory()
  const missing = join(directory.path, 'missing')
  const refusal = async (file: string) => {
    const { code, stderr } = await run('get', 'nosuchitem', '-o', file)
    return [code, stderr]
  }
  expect(await refusal(directory.path)).toEqual([
    1,
    `mediabucket: ${directory.path} is a directory. Name a file in it: -o ${directory.path}/FILE\n`,
  ])
  expect(await refusal(join(missing, 'file'))).toEqual([
    1,
    `mediabucket: the directory ${missing} does not exist. Create it, or choose another one.\n`,
  ])
})

test('rm deletes each item, reports those that do not exist, and exits with 4 for them', async () => {
  const [one, two] = [await upload(server, 'one'), await upload(server, 'two')]
  const mixed = await run('rm', one.id, 'nosuchitem', two.url)
  expect([mixed.code, mixed.stdout]).toEqual([4, ''])
  expect(lines(mixed.stderr)).toEqual([
    `Deleted ${one.id}`,
    `Deleted ${two.url}`,
    'mediabucket: nosuchitem: There is no such item.',
    'mediabucket: 1 of 3 items does not exist. See: mediabucket ls',
  ])
  expect(lines((await run('ls', '--all')).stdout)).toEqual(urls)
})

test('M5 edit changes the given texts of an item, and an empty one removes the text', async () => {
  const { id, url } = await upload(server, 'one')
  const texts = async () => {
    const { filename, alt_text, caption } = await readItem(await server.request(`/api/media/${id}`))
    return [filename, alt_text, caption]
  }
  const edited = await run(
    'edit',
    url,
    '--filename',
    'two words.txt',
    '--alt-text',
    'boats',
    '--caption',
    'x',
  )
  expect([edited.code, edited.stdout, edited.stderr]).toEqual([0, '', `Edited ${url}\n`])
  expect(await texts()).toEqual(['two words.txt', 'boats', 'x'])
  await run('edit', id, '--caption', '')
  expect(await texts()).toEqual(['two words.txt', 'boats', null])
  const refused = await run('edit', id, '--filename', '/', '--alt-text', 'x'.repeat(1001))
  expect([refused.code, refused.stderr]).toEqual([
    2,
    'mediabucket: --filename takes the name of a file. --alt-text takes a text of up to 1000 characters without control characters\n',
  ])
  expect((await run('edit', 'nosuchitem', '--caption', 'x')).code).toBe(4)
  await run('rm', id)
})

test('M7, K14 upload and edit set labels, and ls lists the items that have them', async () => {
  await using directory = await temporaryDirectory()
  for (const name of ['one.txt', 'two.txt']) await writeFile(join(directory.path, name), name)
  const labels = ['--label', 'group=cli', '--label', 'note=a=b']
  const urls = lines((await run('upload', directory.path, ...labels)).stdout).map(
    (line) => line.split('\t')[0],
  )
  expect(urls).toHaveLength(2)
  const listed = async (...args: string[]) => lines((await run('ls', '--label', 'group=cli', ...args)).stdout)
  expect(await listed('--label', 'note=a=b', '--name', 'txt')).toEqual(urls)
  const edited = await run('edit', urls[0] ?? '', '--label', 'group=other', '--unlabel', 'note')
  expect([edited.code, edited.stderr]).toEqual([0, `Edited ${urls[0]}\n`])
  expect(await listed()).toEqual([urls[1]])
  const json: unknown = JSON.parse((await run('ls', '--label', 'group=other', '--json')).stdout)
  expect(json).toMatchObject({ labels: { group: 'other' } })
  const refused = await run('edit', urls[0] ?? '', '--label', `group=${'x'.repeat(201)}`)
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('--label takes values of up to 200 characters'),
  ])
  for (const url of urls) await run('rm', url ?? '')
})

test('M7 a label has a key that every object has, also in JSON', async () => {
  await using directory = await temporaryDirectory()
  await writeFile(join(directory.path, 'a.txt'), 'text')
  const label = ['--label', '__proto__=1']
  const [url = ''] = (await run('upload', directory.path, ...label)).stdout.split('\t')
  const labels = async () => {
    const { stdout } = await run('ls', ...label, '--json')
    return stdout === '' ? null : Object.entries(JSON.parse(stdout).labels)
  }
  expect(await labels()).toEqual([['__proto__', '1']])
  expect((await run('edit', url, '--unlabel', '__proto__')).code).toBe(0)
  expect(await labels()).toBeNull()
  expect((await run('edit', url, ...label)).code).toBe(0)
  expect(await labels()).toEqual([['__proto__', '1']])
})

test('Z1, Z2, Z3 with a trash, rm deletes items that trash restore brings back', async () => {
  await runHere(server.data, 'bucket set', server.bucket, '--trash-days', '1')
  const [one, two] = [await upload(server, 'one', { name: 'a b.txt' }), await upload(server, 'two')]
  await run('rm', one.id, two.id)
  const shown = await run('trash', 'list')
  expect(lines(shown.stdout)).toEqual([
    expect.stringMatching(new RegExp(`^${two.id} +3 B +\\S+Z +\\S+Z +"file.txt"$`)),
    expect.stringMatching(new RegExp(`^${one.id} .*"a b.txt"$`)),
  ])
  expect(lines((await run('trash', 'list', '--json')).stdout).map((line) => JSON.parse(line).id)).toEqual([
    two.id,
    one.id,
  ])
  const restored = await run('trash', 'restore', one.url, 'nobody')
  expect([restored.code, lines(restored.stderr)]).toEqual([
    4,
    [
      `Restored ${one.url}`,
      'mediabucket: nobody: The trash has no such item.',
      'mediabucket: 1 of 2 items is not in the trash. See: mediabucket trash list',
    ],
  ])
  await run('rm', one.id)
  expect((await run('trash', 'empty')).stderr).toBe('Emptied the trash.\n')
  expect((await run('trash', 'list')).stdout).toBe('')
  await runHere(server.data, 'bucket set', server.bucket, '--trash-days', '0')
})

test('T1 whoami shows the properties of the token, and never the token', async () => {
  const shown = await run('whoami')
  expect([shown.code, shown.stderr]).toEqual([0, ''])
  expect(shown.stdout).toMatch(new RegExp(`^bucket +${server.bucket}$`, 'm'))
  expect(shown.stdout).toMatch(/^scopes +media:read, media:write, media:delete$/m)
  expect(shown.stdout).toMatch(/^expires +never$/m)
  expect(shown.stdout).not.toContain('mbkt_')
  const json = JSON.parse((await run('whoami', '--json')).stdout)
  expect(json).toEqual(await (await server.request('/api/token')).json())
})

test('client commands ignore the settings of a server', async () => {
  const { stdout } = await runCommand(['whoami', '--json'], {
    MEDIABUCKET_URL: server.url,
    MEDIABUCKET_TOKEN: server.token,
    MEDIABUCKET_PORT: 'x',
  })
  expect(JSON.parse(stdout).bucket).toBe(server.bucket)
})

test.each([
  ['whoami'],
  ['ls', '--json'],
  ['ls', '--nope'],
  ['get', 'aaaaaaaaaaaa'],
  ['sync', '/nonexistent'],
  [],
])(
  'the command %s has the same result in a process of its own as in one that ran others',
  async (...args) => {
    expect(await run(...args)).toEqual(await runAlone(server, ...args))
  },
)
