import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectProblem } from '../harness/problem.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { fsck, listAll, outcome } from '../harness/upkeep.ts'
import { blobPath, onDisk, upload } from '../harness/upload.ts'

/** Loaded before a command: every read of these files fails with EIO, as on a disk with a bad block. */
const failingReads = (...ids: readonly string[]) =>
  `--import=data:text/javascript,${encodeURIComponent(`
    import fs, { readlinkSync } from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    const { read } = fs
    fs.read = (fd, ...rest) =>
      ${JSON.stringify(ids)}.some((id) => readlinkSync('/proc/self/fd/' + fd).endsWith(id))
        ? process.nextTick(rest.at(-1), Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' }))
        : read(fd, ...rest)
    syncBuiltinESMExports()`)}`

const run = (args: readonly string[], data: string, failing: readonly string[] = []) =>
  runCommand(args, { MEDIABUCKET_DATA: data, NODE_OPTIONS: failingReads(...failing) }).then(
    (output) => ({ code: 0, ...output }),
    (failure: { code: number; stdout: string; stderr: string }) => failure,
  )

/** Each way to damage an item's bytes, and the reason that backup and restore report for it. */
const spoiled: readonly [string, (path: string) => unknown][] = [
  ['missing', () => undefined],
  ['foreign', (path) => symlink('/etc/hostname', path)],
  ['foreign', (path) => mkdir(path)],
  ['foreign', (path) => execFileSync('mknod', [path, 'p'])],
  ['foreign', (path) => new Promise<void>((done) => createServer().listen(path, done).unref())],
  ['changed', (path) => writeFile(path, 'shorter')],
  ['changed', (path) => writeFile(path, 'not what was sent')],
  ['unreadable', (path) => writeFile(path, 'has no readable bytes')],
]
const isRoot = process.getuid?.() === 0
const all = isRoot
  ? [...spoiled, ['foreign', (path: string) => execFileSync('mknod', [path, 'c', '1', '3'])] as const]
  : spoiled

async function uploadAll(server: TestServer): Promise<{ sound: string[]; faulty: string[] }> {
  const [sound, faulty]: [string[], string[]] = [[], []]
  for (const [what] of all) {
    const text = what === 'unreadable' ? 'has no readable bytes' : 'what was sent was'
    faulty.push((await upload(server, text)).id)
    sound.push((await upload(server, `sound ${what}`)).id)
  }
  return { sound, faulty }
}

async function spoil(ids: readonly string[], pathOf: (id: string) => string): Promise<void> {
  for (const [index, id] of ids.entries()) {
    await rm(pathOf(id))
    await all[index]?.[1](pathOf(id))
  }
}

const unreadable = (ids: readonly string[]) => ids.filter((_, index) => all[index]?.[0] === 'unreadable')
const named = (ids: readonly string[]) => ids.map((id, index) => `  ${id} ${all[index]?.[0]}: `).toSorted()
const reported = (stdout: string) => [...stdout.matchAll(/^ {2}\w+ \w+: /gm)].map(([line]) => line).toSorted()

test('F7 one bad entry of any kind among the bytes: a backup copies everything else and names the items', async () => {
  await using directory = await temporaryDirectory()
  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  await using server = await startServer(onDisk)
  const { sound, faulty } = await uploadAll(server)
  await spoil(faulty, (id) => blobPath(server, id))
  const { code, stdout, stderr } = await run(['backup', to], server.data, unreadable(faulty))
  expect([code, stderr]).toEqual([5, ''])
  expect(stdout).toContain(`${all.length} items without bytes`)
  expect(reported(stdout)).toEqual(named(faulty))
  const { finished } = JSON.parse(await readFile(join(to, 'backup.json'), 'utf8'))
  expect(finished.items).toBe(2 * all.length)
  expect(finished.faulty.map(({ id }: { id: string }) => id).toSorted()).toEqual(faulty.toSorted())

  const restored = await outcome(['restore', to], data)
  expect([restored.code, reported(restored.stdout)]).toEqual([
    5,
    faulty.map((id) => `  ${id} missing: `).toSorted(),
  ])
  await expectRestored(data, server, sound, faulty)
})

test('F8 one bad entry of any kind in a backup: a restore restores everything else and names the items', async () => {
  await using directory = await temporaryDirectory()
  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  await using server = await startServer(onDisk)
  const { sound, faulty } = await uploadAll(server)
  await server.command('backup', to)
  await spoil(faulty, (id) => blobPath({ ...server, data: to }, id))
  const { code, stdout, stderr } = await run(['restore', to], data, unreadable(faulty))
  expect([code, stderr]).toEqual([5, ''])
  expect(reported(stdout)).toEqual(named(faulty))
  await expectRestored(data, server, sound, faulty)

  // A later backup replaces the damaged copies if it can, and names the entries that prevent it.
  const again = await outcome(['backup', to], server.data)
  const blocked = faulty.filter((_, index) => all[index]?.[0] === 'foreign')
  expect([again.code, reported(again.stdout)]).toEqual([
    5,
    blocked.map((id) => `  ${id} blocked: `).toSorted(),
  ])
})

/** All items are listed; a request for missing bytes receives a 500 problem. */
async function expectRestored(
  data: string,
  { token }: TestServer,
  sound: readonly string[],
  faulty: readonly string[],
): Promise<void> {
  await using later = await startServer({}, data)
  expect(await listAll(later, `Bearer ${token}`)).toHaveLength(sound.length + faulty.length)
  for (const id of sound) expect((await fetch(`${later.url}/media/${id}`)).status).toBe(200)
  for (const id of faulty) {
    const response = await fetch(`${later.url}/media/${id}`)
    expect(response.headers.get('cache-control')).toBe('no-store')
    await expectProblem(response, 500, 'bytes-missing')
  }
}

/** Changes the rows of a backup, as somebody who can write to its disk. */
async function tamper(backup: string, sql: string): Promise<void> {
  const marker = join(backup, 'backup.json')
  const content = JSON.parse(await readFile(marker, 'utf8'))
  const rows = join(backup, content.finished.snapshot, 'catalog.db')
  const db = new DatabaseSync(rows)
  db.exec(sql)
  db.close()
  const sha256 = createHash('sha256')
    .update(await readFile(rows))
    .digest('hex')
  await writeFile(marker, JSON.stringify({ ...content, finished: { ...content.finished, sha256 } }))
}

test('F8, B8 rows of a tampered backup whose ids are paths: nothing outside is written or removed, and all commands report them', async () => {
  await using directory = await temporaryDirectory()
  const at = (...names: string[]) => join(directory.path, ...names)
  // From `from/backup/blobs/..`, the id leads to `outside`, and from `to/data/restoring/blobs/..` to `to/outside`.
  const id = '../../outside'
  await mkdir(at('from'))
  await using server = await startServer(onDisk)
  const [tampered, sound] = [await upload(server, 'tampered'), await upload(server, 'sound')]
  await server.command('backup', at('from', 'backup'))
  await server.stop()
  await rename(blobPath({ ...server, data: at('from', 'backup') }, tampered.id), at('outside'))
  await tamper(at('from', 'backup'), `UPDATE items SET id = '${id}' WHERE id = '${tampered.id}'`)
  await mkdir(at('to'))
  await writeFile(at('to', 'outside'), 'precious')
  const unharmed = async () => {
    expect(await readFile(at('outside'), 'utf8')).toBe('tampered')
    expect(await readFile(at('to', 'outside'), 'utf8')).toBe('precious')
  }

  const data = at('to', 'data')
  const report = `  ${id} malformed: the row has an id that the service did not create\n`
  expect(await outcome(['restore', at('from', 'backup')], data)).toMatchObject({
    code: 5,
    stdout: expect.stringContaining(report),
  })
  await unharmed()
  // What a restore removes, and a copied data directory has.
  const db = new DatabaseSync(join(data, 'catalog.db'))
  db.exec(`INSERT INTO tombstones VALUES ('${id}');
    INSERT INTO intents VALUES ('../${id}', 0);
    INSERT INTO uploads (id, bucket_id, length, received, item_id, expires_at) VALUES ('${id}', 1, 3, 3, '${sound.id}', 1);
    INSERT INTO uploads (id, bucket_id, length, received, item_id, expires_at) VALUES ('up', 1, 3, 3, '../../to/outside', 1);
    UPDATE buckets SET reserved_items = 2, reserved_bytes = 6`)
  db.close()
  expect(await fsck(data)).toMatchObject({ code: 1, found: { 'id-malformed': [5, 0] } })
  {
    await using later = await startServer(onDisk, data)
    expect(await listAll(later, `Bearer ${server.token}`)).toHaveLength(2)
    expect(await (await fetch(`${later.url}/media/${sound.id}`)).text()).toBe('sound')
  }
  await unharmed()
  expect((await outcome(['backup', at('to', 'again')], data)).stdout).toContain(report)
  expect((await outcome(['migrate', '--to', at('to', 'other')], data)).stdout).toContain(report)
  expect(await outcome(['migrate', '--reopen'], data)).toMatchObject({ code: 0 })
  expect(await fsck(data, '--repair')).toMatchObject({
    code: 1,
    found: { 'id-malformed': [expect.any(Number), expect.any(Number)] },
  })
  expect(await outcome(['bucket', 'delete', 'default', '--yes'], data)).toMatchObject({ code: 0 })
  expect(await fsck(data, '--repair')).toMatchObject({ code: 0 })
  await unharmed()
})

test('F7 a link at the temporary name of backup.json is not followed', async () => {
  await using directory = await temporaryDirectory()
  const [to, target] = [join(directory.path, 'backup'), join(directory.path, 'precious')]
  await writeFile(target, 'precious')
  await using server = await startServer()
  await server.command('backup', to)
  await symlink(target, join(to, 'backup.json.new'))
  await server.command('backup', to)
  expect([await readFile(target, 'utf8'), (await readdir(to)).includes('backup.json.new')]).toEqual([
    'precious',
    false,
  ])
})
