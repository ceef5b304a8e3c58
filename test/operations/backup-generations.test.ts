import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runAndKillAt } from '../faults/kill-upkeep.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { seededRandom } from '../harness/random.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { canMount, smallDisk } from '../harness/small-disk.ts'
import { brokenItems, fsck, listAll, outcome } from '../harness/upkeep.ts'
import { onDisk, upload } from '../harness/upload.ts'

/** The times of the backups in a directory, the latest first. */
const timesOf = async (backups: string) =>
  (await runCommand(['backup', '--list', backups], {})).stdout
    .trim()
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')

/** The ids of the items whose bytes are in a directory. */
async function blobsOf(backups: string): Promise<string[]> {
  const blobs = join(backups, 'blobs')
  const names = await readdir(blobs, { recursive: true, withFileTypes: true })
  return names.flatMap((entry) => (entry.isFile() && entry.name.length === 28 ? [entry.name] : [])).toSorted()
}

const verify = (backups: string, ...options: string[]) =>
  outcome(['backup', '--verify', backups, ...options], '')

async function places() {
  const directory = await temporaryDirectory()
  onTestFinished(() => directory[Symbol.asyncDispose]())
  return { backups: join(directory.path, 'backups'), at: (name: string) => join(directory.path, name) }
}

/** Restores each generation and expects these texts, the latest generation first. */
async function expectGenerations(
  backups: string,
  at: (name: string) => string,
  { token }: Pick<TestServer, 'token'>,
  texts: readonly (readonly string[])[],
): Promise<void> {
  const times = await timesOf(backups)
  expect(times).toHaveLength(texts.length)
  const round = Math.random()
  for (const [index, expected] of texts.entries()) {
    expect((await verify(backups, '--at', times[index] ?? '')).code).toBe(0)
    const data = at(`restored-${round}-${index}`)
    await runCommand(['restore', backups, '--at', times[index] ?? ''], { MEDIABUCKET_DATA: data })
    expect(await fsck(data, '--verify-bytes')).toMatchObject({ code: 0, found: {} })
    await using server = await startServer({}, data)
    const urls = await listAll(server, `Bearer ${token}`)
    expect(await brokenItems(server, urls, `Bearer ${token}`)).toEqual([])
    const bodies = await Promise.all(
      urls.map(async (url) => (await fetch(new URL(new URL(url).pathname, server.url))).text()),
    )
    expect(bodies.toSorted()).toEqual([...expected].toSorted())
  }
}

test('F14 --keep keeps generations that share bytes, and removes those that none of them needs', async () => {
  const { backups, at } = await places()
  await using server = await startServer(onDisk)
  const ids: string[] = []
  // Each generation has one item more, and not the first one of the last generation.
  for (const text of ['one', 'two', 'three', 'four']) {
    ids.push((await upload(server, text)).id)
    if (ids.length > 1) await server.request(`/api/media/${ids.at(-2)}`, { method: 'DELETE' })
    ids.push((await upload(server, `stays ${text}`)).id)
    await server.command('backup', backups, ...(text === 'one' ? ['--keep', '2'] : []))
  }
  await expectGenerations(backups, at, server, [
    ['one', 'two', 'three', 'four', 'stays four'],
    ['one', 'two', 'three', 'stays three'],
  ])
  const [, one, , two, , three, , four] = ids
  const blobs = await blobsOf(backups)
  expect(blobs).not.toContain(one)
  expect(blobs).not.toContain(two)
  expect(blobs).toContain(three)
  expect(blobs).toContain(four)
  // Once for both generations.
  expect(blobs).toHaveLength(6)
  const { stdout } = await server.command('backup', backups, '--keep', '1')
  expect(stdout).toContain('1 backup kept.')
  expect(stdout).toContain('Removed the bytes of 1 item')
  expect(await blobsOf(backups)).toHaveLength(5)
  await expectGenerations(backups, at, server, [['one', 'two', 'three', 'four', 'stays four']])
})

test('F14 without --keep the bytes of earlier backups stay, and --at finds no other one', async () => {
  const { backups } = await places()
  await using server = await startServer(onDisk)
  const { id } = await upload(server, 'deleted later')
  await server.command('backup', backups)
  await server.request(`/api/media/${id}`, { method: 'DELETE' })
  await server.command('backup', backups)
  expect(await blobsOf(backups)).toEqual([id])
  expect(await timesOf(backups)).toHaveLength(1)
  for (const args of [
    ['restore', backups, '--at', '1999'],
    ['backup', '--verify', backups, '--at', '1999'],
  ])
    expect(await outcome(args, join(backups, 'none'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has no backup of 1999. It has those of:'),
    })
  for (const args of [
    ['backup', backups, '--keep', '0'],
    ['backup', backups, '--keep', '2', '--verify'],
    ['backup', backups, '--at', '1999'],
  ])
    expect((await outcome(args, server.data)).code).toBe(2)
})

/** With `MEDIABUCKET_TEST_KILLS=all`, a backup is killed at every step; otherwise at a sixteenth of them. */
const isWhole = process.env['MEDIABUCKET_TEST_KILLS'] === 'all'

test('F14 a backup that is killed at any step leaves all earlier generations whole, and the next one completes it', async () => {
  const { backups, at } = await places()
  await using server = await startServer(onDisk)
  const first = await upload(server, 'first')
  await server.command('backup', backups, '--keep', '2')
  // Only the generation that is removed needs its bytes.
  await server.request(`/api/media/${first.id}`, { method: 'DELETE' })
  await upload(server, 'second')
  await server.command('backup', backups)
  await upload(server, 'third')
  await server.stop()
  const log = at('calls')
  const complete = at('complete')
  await cp(backups, complete, { recursive: true })
  await runCommand(['backup', complete], {
    MEDIABUCKET_DATA: server.data,
    NODE_OPTIONS: `--import ${new URL('../faults/kill-at-call.ts', import.meta.url).href}`,
    CALLS: log,
  })
  const calls = (await readFile(log, 'utf8')).trimEnd().split('\n')
  expect(calls.some((call) => call.startsWith('unlink') && call.includes(first.id))).toBe(true)
  const pick = seededRandom()
  for (const [index, call] of calls.entries()) {
    if (!isWhole && pick(16) > 0) continue
    // Statements that write rows of a snapshot are alike.
    const [kind = '', word] = call.split(' ')
    const isAlike =
      ['exec', 'run'].includes(kind) && calls.findIndex((one) => one.startsWith(`${kind} ${word}`)) !== index
    if (isAlike) continue
    const copy = at(`copy-${index}`)
    await cp(backups, copy, { recursive: true })
    await runAndKillAt(['backup', copy], server.data, index + 1)
    for (const time of await timesOf(copy)) expect((await verify(copy, '--at', time)).code, call).toBe(0)
    await runCommand(['backup', copy], { MEDIABUCKET_DATA: server.data })
    expect((await verify(copy)).code).toBe(0)
    expect(await timesOf(copy)).toHaveLength(2)
    await rm(copy, { recursive: true })
  }
  await expectGenerations(complete, at, server, [['second', 'third'], ['second']])
}, 900_000)

test('F15 the rows that a killed --verify has copied are removed by the next one', async () => {
  const { backups, at } = await places()
  await using server = await startServer()
  await server.command('backup', backups)
  const settings = { TMPDIR: at('temporary') }
  await mkdir(settings.TMPDIR)
  const args = ['backup', '--verify', backups]
  await runAndKillAt(args, '', 3, settings)
  expect(await readdir(settings.TMPDIR)).toHaveLength(1)
  expect(await outcome(args, '', settings)).toMatchObject({ code: 0 })
  expect(await readdir(settings.TMPDIR)).toEqual([])
})

test('F15 --verify finds a flipped byte, a missing file, bytes that cannot be read and a damaged catalog, and changes nothing', async () => {
  const { backups } = await places()
  await using server = await startServer({ MEDIABUCKET_INLINE_SIZE: '10' })
  await upload(server, 'small')
  const [changed, missing, shorter] = [
    await upload(server, 'a text of some length'),
    await upload(server, 'another text of some length'),
    await upload(server, 'a third text of some length'),
  ]
  await server.command('backup', backups, '--keep', '3')
  const before = await readdir(backups, { recursive: true })
  expect(await verify(backups)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('No faults were found.'),
  })
  expect(await readdir(backups, { recursive: true })).toEqual(before)

  const path = ({ id }: { readonly id: string }) => join(backups, 'blobs', id.slice(0, 2), id)
  await writeFile(path(changed), 'a tExt of some length')
  await rm(path(missing))
  await writeFile(path(shorter), 'a third')
  const faulty = await verify(backups)
  expect(faulty.code).toBe(5)
  expect(faulty.stdout).toContain(`${changed.id} changed: `)
  expect(faulty.stdout).toContain(`${missing.id} missing: `)
  expect(faulty.stdout).toContain(`${shorter.id} changed: `)
  expect(faulty.stdout).toContain('3 items without bytes')
  expect(faulty.stdout).toContain(
    `→ Delete the changed files from ${join(backups, 'blobs')}, then run: mediabucket backup ${backups}\n`,
  )

  const [snapshot = ''] = (await readdir(backups)).filter((name) => name.startsWith('snapshot-'))
  const list = join(backups, snapshot, 'blobs.txt')
  const ids = await readFile(list)
  await chmod(list, 0o600)
  await writeFile(list, ids.subarray(0, 29))
  expect(await verify(backups)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('list of the bytes'),
  })
  // No bytes are removed by a damaged list.
  const next = await outcome(['backup', backups], server.data)
  expect([next.code, next.stdout]).toEqual([5, expect.stringContaining('No bytes were removed')])
  await writeFile(list, ids)

  const catalog = join(backups, snapshot, 'catalog.db')
  const rows = await readFile(catalog)
  rows.writeUInt8((rows[5_000] ?? 0) ^ 1, 5_000)
  await writeFile(catalog, rows)
  const [, earlier = ''] = await timesOf(backups)
  expect(await verify(backups, '--at', earlier)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is damaged. Use another backup'),
  })
  // The later backup has copied the bytes that were missing or of another size. Wrong ones of the same size are removed by hand.
  const later = await verify(backups)
  expect([later.code, later.stdout]).toEqual([5, expect.stringContaining('1 item without bytes')])
  await rm(path(changed))
  await server.command('backup', backups)
  expect((await verify(backups)).code).toBe(0)
})

test.skipIf(process.env['CI'] === undefined && !(await canMount()))(
  'F15 --verify needs the space of one copy of the rows in TMPDIR',
  async () => {
    const { backups } = await places()
    await using server = await startServer()
    for (let number = 0; number < 50; number += 1) await upload(server, `${number}`.padEnd(60_000, '.'))
    await server.command('backup', backups)
    const before = await readdir(backups, { recursive: true })
    await using disk = await smallDisk(5)
    expect(await outcome(['backup', '--verify', backups], '', { TMPDIR: disk.path })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('No faults were found.'),
    })
    expect(await readdir(disk.path)).toEqual([])
    expect(await readdir(backups, { recursive: true })).toEqual(before)
  },
)
