import { spawn } from 'node:child_process'
import { cpSync, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { basics, bin, runCommand, startServer } from '../harness/server.ts'
import { brokenItems, fsck, listAll, outcome } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

const catalogSize = (data: string) => statSync(join(data, 'catalog.db')).size

function settingsOf(data: string): unknown[] {
  const db = new DatabaseSync(join(data, 'catalog.db'), { readOnly: true })
  try {
    return ['page_size', 'auto_vacuum', 'freelist_count'].flatMap((name) =>
      Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {}),
    )
  } finally {
    db.close()
  }
}

/** A directory with the catalog of an earlier version, and items that were added since. */
async function earlierData() {
  const directory = await temporaryDirectory()
  cpSync(join(import.meta.dirname, '../fixtures/data-version-1'), directory.path, { recursive: true })
  await runCommand(['seed', '--items', '40000', '--bucket', 'large'], { MEDIABUCKET_DATA: directory.path })
  await runCommand(['seed', '--items', '20'], { MEDIABUCKET_DATA: directory.path })
  return directory
}

const rowsOf = (data: string): unknown => {
  const db = new DatabaseSync(join(data, 'catalog.db'), { readOnly: true })
  try {
    return db.prepare('SELECT count(*), sum(seq), min(id), max(id) FROM media').get()
  } finally {
    db.close()
  }
}

test('F9 vacuum returns free space while the service is running and storing uploads', async () => {
  await using server = await startServer()
  await server.command('seed', '--items', '40000')
  await server.command('bucket', 'delete', 'seeded', '--yes')
  const stored = [await upload(server, 'before')]
  let running = true
  const uploads = (async () => {
    while (running) stored.push(await upload(server, 'beside'))
  })()
  const { stdout } = await server.command('vacuum')
  running = false
  await uploads
  expect(stdout).toMatch(/^Returned [\d.]+ MB; catalog\.db has [\d.]+ [kM]B\.\n$/)
  const urls = await listAll(server)
  expect([urls.length, await brokenItems(server, urls)]).toEqual([stored.length, []])
  await server.stop()
  expect(catalogSize(server.data)).toBeLessThan(3_000_000)
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })
})

test('F9 vacuum rewrites the catalog of an earlier version once, for which the service must be stopped', async () => {
  await using directory = await earlierData()
  const data = directory.path
  expect(settingsOf(data).slice(0, 2)).toEqual([4096, 0])
  await using server = await startServer({}, data)
  await runCommand(['bucket', 'delete', 'large', '--yes'], { MEDIABUCKET_DATA: data })
  expect(await outcome(['vacuum'], data)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Stop the service, then run this command again.'),
  })
  await server.stop()
  const before = catalogSize(data)
  const rows = rowsOf(data)
  const { code, stdout, stderr } = await outcome(['vacuum'], data)
  expect([code, stdout, stderr]).toEqual([
    0,
    expect.stringMatching(/^Returned [\d.]+ MB/),
    expect.stringMatching(/^Rewriting catalog\.db \([\d.]+ MB\)/),
  ])
  expect(settingsOf(data)).toEqual([8192, 2, 0])
  expect(catalogSize(data)).toBeLessThan(before / 4)
  expect(rowsOf(data)).toEqual(rows)
  expect((await fsck(data)).code).toBe(0)
  await using later = await startServer({}, data)
  expect((await fetch(`${later.url}/readyz?writes`)).status).toBe(200)
  expect(await outcome(['vacuum'], data)).toMatchObject({ code: 0 })
})

/** Data whose vacuum was killed between the first write of its journal and its commit. */
async function killedVacuum() {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const directory = await earlierData()
    const journal = join(directory.path, 'catalog.db-journal')
    const rows = rowsOf(directory.path)
    const env = { ...basics, MEDIABUCKET_DATA: directory.path }
    const child = spawn(process.execPath, [bin, 'vacuum'], { env, stdio: 'ignore' })
    const ended = new Promise((done) => child.once('exit', done))
    while (child.exitCode === null && !(statSync(journal, { throwIfNoEntry: false })?.size ?? 0))
      await setImmediate()
    child.kill('SIGKILL')
    await ended
    if (existsSync(journal)) return { directory, rows }
    // This vacuum was faster.
    await directory[Symbol.asyncDispose]()
  }
  return expect.unreachable('no vacuum was killed in time')
}

test('F9 a vacuum that is killed while it rewrites the catalog changes no row', async () => {
  const { directory, rows } = await killedVacuum()
  await using _ = directory
  const data = directory.path
  expect((await fsck(data)).code).toBe(0)
  expect(rowsOf(data)).toEqual(rows)
  expect(await outcome(['vacuum'], data)).toMatchObject({ code: 0 })
  expect(rowsOf(data)).toEqual(rows)
})
