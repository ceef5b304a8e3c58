import { createHash } from 'node:crypto'
import { chmod, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectProblem } from '../harness/problem.ts'
import { startServer } from '../harness/server.ts'
import { fsck, outcome } from '../harness/upkeep.ts'
import { readItem, readItems, readPage, readTrash } from '../harness/wire.ts'

const fixture = join(import.meta.dirname, '../fixtures/development-backup')
const good = { authorization: 'Bearer mbkt_nks4tnw0qc8cdvbp98a9f3bqvp2zdy1tvmveg2' }
/** Of the catalog of version 19. */
const later = { authorization: 'Bearer mbkt_aynvdqttn92wnd7kgdqqanf0cfhd1mf081dsen' }
const revoked = { authorization: 'Bearer mbkt_j5kj75hwyck9beyt8dj3wt7rwr46vymg2n69e8' }

/** Writes the catalog of the fixture, of version 18 or 19, changed by `sql`. */
async function writeCatalog(path: string, sql = '', version = 18): Promise<void> {
  const db = new DatabaseSync(path)
  db.exec(`${await readFile(join(fixture, `catalog-${version}.sql`), 'utf8')}; ${sql}`)
  db.close()
}

/** Writes the fixture as a backup. */
async function writeBackup(directory: string, sql = '', version = 18): Promise<void> {
  const snapshot = 'snapshot-67f69833bf75aeae'
  await mkdir(join(directory, snapshot), { recursive: true })
  await cp(join(fixture, 'blobs'), join(directory, 'blobs'), { recursive: true })
  const rows = join(directory, snapshot, 'catalog.db')
  await writeCatalog(rows, sql, version)
  const sha256 = createHash('sha256')
    .update(await readFile(rows))
    .digest('hex')
  const items = version === 18 ? 6 : 3
  const finished = { snapshot, items, faulty: [], sha256, finishedAt: '2026-11-25T11:34:33.018Z' }
  await writeFile(join(directory, 'backup.json'), JSON.stringify({ format: 1, finished }))
}

test('O8 a backup of commit 7ac0c5b8 is restored: its items are listed and served, and accept others', async () => {
  await using scratch = await temporaryDirectory()
  const [backup, data] = [join(scratch.path, 'backup'), join(scratch.path, 'data')]
  await writeBackup(backup)
  // Two items of `mediabucket seed` had no bytes.
  expect(await outcome(['restore', backup], data)).toMatchObject({
    code: 5,
    stdout: expect.stringMatching(/^Restored 6 items.*2 items without bytes.*q5cte3qbphzva9wfw7wwbw9x82fq/s),
  })
  await using server = await startServer({ MEDIABUCKET_AUDIT: 'changes' }, data)
  expect(server.token).toBe('')

  const page = await readPage(await server.request('/api/media', { headers: good }))
  expect(page.data.map((url) => new URL(url).pathname)).toEqual([
    '/media/w2wg9k305mgp7a4psp3h62pw407d.txt',
    '/media/w21n1m1p48xeb0grrrgvsmvmntp0.png',
    '/media/6bhsz011k89ek8z54mjn0gtfvqv1.txt',
    '/media/ej34cct4t4jj8rsfjde01n9z8g4p.txt',
  ])
  expect(await (await fetch(page.data[0] ?? '')).text()).toBe('one\n')
  expect(await (await fetch(page.data[2] ?? '')).text()).toBe('long line\n'.repeat(30))
  const last = await server.request('/api/media/6bhsz011k89ek8z54mjn0gtfvqv1', { headers: good })
  expect(await readItem(last)).toMatchObject({
    filename: 'ünï "quoted".txt',
    created_at: '2026-11-25T11:34:27.115Z',
  })
  const found = await server.request('/api/items?name=uni', { headers: good })
  expect((await readItems(found)).data).toMatchObject([{ filename: 'ünï "quoted".txt' }])
  const expiring = await server.request('/api/media/ej34cct4t4jj8rsfjde01n9z8g4p', { headers: good })
  expect(await readItem(expiring)).toMatchObject({ expires_at: '2999-01-01T00:00:00.000Z' })
  const deleted = await server.request('/api/media/w2samhsg0vfx5dx286s2cremwzw3', { headers: good })
  await expectProblem(deleted, 404, 'media-unknown')
  await expectProblem(await server.request('/api/media', { headers: revoked }), 401, 'token-revoked')
  expect((await server.command('audit', '--json')).stdout).toContain('w2samhsg0vfx5dx286s2cremwzw3')

  await server.request('/api/media', { method: 'POST', body: 'new', headers: good })
  expect(await readPage(await server.request('/api/media', { headers: good }))).toMatchObject({ total: 5 })
  await server.stop()
  expect(await fsck(data, '--verify-bytes')).toMatchObject({ code: 1, found: { 'bytes-missing': [2, 0] } })
})

test('O8 a backup of the last version with a table `media` is restored, with its trash', async () => {
  await using scratch = await temporaryDirectory()
  const [backup, data] = [join(scratch.path, 'backup'), join(scratch.path, 'data')]
  await writeBackup(backup, '', 19)
  expect(await outcome(['restore', backup], data)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Restored 3 items/),
  })
  expect(await fsck(data, '--verify-bytes')).toMatchObject({ code: 0 })
  await using server = await startServer({}, data)
  const page = await readPage(await server.request('/api/media', { headers: later }))
  expect(page.data.map((url) => new URL(url).pathname)).toEqual([
    '/media/skge6jjgx80bhhsyckkkzjqna9xe.txt',
    '/media/jdd3xpgj19f6tvm3qvrj202max2k.txt',
  ])
  for (const url of page.data) expect(await (await fetch(url)).text()).toBe('vm\n')
  const found = await server.request('/api/items?name=uni', { headers: later })
  expect((await readItems(found)).data).toMatchObject([{ filename: 'ünï.txt' }])
  const named = await server.request('/api/items?order=name-desc&limit=1', { headers: later })
  expect((await readItems(named)).data).toMatchObject([{ filename: 'ünï.txt' }])
  const trash = await readTrash(await server.request('/api/trash', { headers: later }))
  expect(trash.data.map(({ id, filename }) => [id, filename])).toEqual([
    ['skak5gx3e2tv4e96w55vmj40pfdb', 'two.txt'],
  ])
})

test.each([
  [18, '7ac0c5b8'],
  [19, '661e7aee'],
])(
  'O8 data of the development version %i are refused in one sentence, and not changed',
  async (version, commit) => {
    await using scratch = await temporaryDirectory()
    const catalog = join(scratch.path, 'catalog.db')
    await writeCatalog(catalog, 'PRAGMA journal_mode = WAL', version)
    await chmod(catalog, 0o600)
    const before = await readFile(catalog)
    for (const command of ['serve', 'fsck', 'vacuum'])
      expect(await outcome([command], scratch.path)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(
          new RegExp(
            `^mediabucket: \\S+catalog\\.db was written by a development version: make a backup of it with mediabucket of commit ${commit}, and restore that with this version \\(docs/operations/upgrade\\.md\\)\\.\n$`,
          ),
        ),
      })
    expect(await readFile(catalog)).toEqual(before)
  },
)

test('O8 a backup of an earlier development version is refused, and the sentence says how to restore it', async () => {
  await using scratch = await temporaryDirectory()
  const backup = join(scratch.path, 'backup')
  await writeBackup(backup, 'PRAGMA user_version = 17')
  expect(await outcome(['restore', backup], join(scratch.path, 'data'))).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^mediabucket: .*restore it with mediabucket of commit 7ac0c5b8, [^\n]+\n$/,
    ),
  })
})
