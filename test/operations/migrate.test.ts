import { existsSync } from 'node:fs'
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { withoutPassword } from '../../packages/server/src/core/storage-urls.ts'
import { s3Settings } from '../harness/ceph.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { createDatabase, databasePassword, rowsOf } from '../harness/postgres.ts'
import { seed } from '../harness/seed.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { brokenItems, fsck, listAll, outcome } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

/** Both servers use the same base URL, so that only the data can differ. */
const base = { MEDIABUCKET_BASE_URL: 'http://media.test' }

const migrate = (settings: Readonly<Record<string, string>>, ...targets: string[]) =>
  runCommand(['migrate', ...targets.flatMap((target) => ['--to', target])], settings)

/** Uploads small and large files, some deleted. Returns what the service lists. */
async function fill(server: TestServer) {
  for (const text of ['one', '', 'three']) await upload(server, text)
  await upload(server, new Uint8Array(100_000).fill(7), { name: 'large.bin' })
  const deleted = await upload(server, 'deleted')
  await server.request(`/api/media/${deleted.id}`, { method: 'DELETE' })
  await upload(server, 'last')
  return listAll(server)
}

/** How many rows an unfinished migration has copied. */
function copiedItems(target: string): number {
  const path = join(target, 'catalog.db')
  if (!existsSync(path)) return 0
  using db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  const isCreated = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'intents'").get() !== undefined
  return isCreated ? Number(db.prepare('SELECT count(*) AS items FROM items').get()?.['items']) : 0
}

/** Runs a migration, and kills it before its call of this number, among those with such a line (test/faults/kill-at-call.ts). */
async function killMigration(
  settings: Readonly<Record<string, string>>,
  targets: readonly string[],
  calls: string,
  number = 1,
): Promise<void> {
  const NODE_OPTIONS = `--import ${new URL('../faults/kill-at-call.ts', import.meta.url).href}`
  const env = { ...settings, NODE_OPTIONS, KILL_MATCH: calls, KILL_AT: `${number}` }
  await expect(migrate(env, ...targets)).rejects.toMatchObject({ signal: 'SIGKILL' })
}

describe('with a PostgreSQL server', () => {
  test('F11 rows and bytes move to PostgreSQL and a directory, and back, with the same URLs, tokens and order', async () => {
    await using directory = await temporaryDirectory()
    const { url, release } = await createDatabase()
    const [first, second, third] = ['first', 'second', 'third'].map((name) => join(directory.path, name))
    if (!first || !second || !third) throw new Error('no directories')
    const postgres = { MEDIABUCKET_DATABASE_URL: url, MEDIABUCKET_DATA: second }
    try {
      const server = await startServer(base, first)
      const authorization = `Bearer ${server.token}`
      const listed = await fill(server)
      expect(await server.stop()).toBe(0)

      const there = await migrate({ MEDIABUCKET_DATA: first }, url, second)
      expect(there.stdout).toMatch(/^Copied the rows of 5 items\.\nCopied the bytes of 5 items/)
      expect(there.stdout).toMatch(
        /Change these settings of the service, and start it: MEDIABUCKET_DATA=\S+ MEDIABUCKET_DATABASE_URL='postgres:/,
      )
      expect(there.stdout + there.stderr).not.toContain(databasePassword)
      {
        await using onPostgres = await startServer({ ...base, ...postgres }, second)
        expect(onPostgres.stdout()).toContain(JSON.stringify({ catalog: withoutPassword(url) }).slice(1, -1))
        const again = await listAll(onPostgres, authorization)
        expect(again).toEqual(listed)
        expect(await brokenItems(onPostgres, again, authorization)).toEqual([])
        listed.push((await upload(onPostgres, 'on PostgreSQL', { authorization })).url)
        expect(await onPostgres.stop()).toBe(0)
      }

      const back = await migrate(postgres, third)
      expect(back.stdout).toMatch(/^Copied the rows of 6 items\./)
      await using last = await startServer(base, third)
      const again = await listAll(last, authorization)
      expect(again).toEqual(listed)
      expect(await brokenItems(last, again, authorization)).toEqual([])
      expect(await last.stop()).toBe(0)
      expect(await fsck(third, '--verify-bytes')).toMatchObject({ code: 0, found: {} })
    } finally {
      await release()
    }
  })

  test('F7, F8, F11 a backup of a running server on PostgreSQL is restored to a directory, and moves back to a database', async () => {
    await using directory = await temporaryDirectory()
    const [first, second] = [await createDatabase(), await createDatabase()]
    const [data, backup, restored] = ['data', 'backup', 'restored'].map((name) => join(directory.path, name))
    if (!data || !backup || !restored) throw new Error('no directories')
    const settings = { ...base, MEDIABUCKET_DATABASE_URL: first.url, MEDIABUCKET_DATA: data }
    try {
      await using server = await startServer(settings, data)
      const authorization = `Bearer ${server.token}`
      const listed = await fill(server)
      const made = await runCommand(['backup', backup], settings)
      expect(made.stdout).toMatch(/^Backed up 5 items/)
      await upload(server, 'after the backup')
      const fromBackup = { MEDIABUCKET_DATA: restored }
      expect((await runCommand(['restore', backup], fromBackup)).stdout).toMatch(/^Restored 5 items/)
      await migrate(fromBackup, second.url)
      const again = { ...base, MEDIABUCKET_DATABASE_URL: second.url }
      await using later = await startServer(again, restored)
      const urls = await listAll(later, authorization)
      expect(urls).toEqual(listed)
      expect(await brokenItems(later, urls, authorization)).toEqual([])

      // No service ever ran on the restored catalog, but the bytes no longer belong to it either.
      urls.unshift((await upload(later, new Uint8Array(100_000).fill(8), { authorization })).url)
      await runCommand(['migrate', '--reopen'], fromBackup)
      const refused = {
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('holds the bytes of another catalog'),
      }
      for (const command of [
        ['fsck', '--repair'],
        ['backup', `${backup}-2`],
      ])
        expect(await outcome(command, restored)).toMatchObject(refused)
      expect(await brokenItems(later, urls, authorization)).toEqual([])
      expect(await later.stop()).toBe(0)
      await expect(startServer(base, restored)).rejects.toThrow('holds the bytes of another catalog')
    } finally {
      await Promise.all([first.release(), second.release()])
    }
  })

  test('F11 a service that was left running on the source confirms no change after the migration', async () => {
    await using directory = await temporaryDirectory()
    const { url, release } = await createDatabase()
    const [data, other, target] = ['data', 'other', 'target'].map((name) => join(directory.path, name))
    if (!data || !other || !target) throw new Error('no directories')
    const settings = { ...base, ...(await s3Settings()), MEDIABUCKET_DATABASE_URL: url }
    try {
      await using server = await startServer(settings, data)
      const listed = await fill(server)
      const { id } = await upload(server, 'deleted after the migration')
      const moved = await migrate({ ...settings, MEDIABUCKET_DATA: other }, target)
      expect(moved.stdout).toContain('Copied the rows of 6 items.')
      const json = { 'content-type': 'application/json' }
      const changes: readonly [string, RequestInit][] = [
        ['/api/media', { method: 'POST', body: 'lost', headers: { 'content-type': 'text/plain' } }],
        [`/api/media/${id}`, { method: 'DELETE' }],
        ['/api/tokens', { method: 'POST', body: '{"scopes":["media:read"]}', headers: json }],
      ]
      for (const [path, change] of changes)
        expect((await server.request(path, change)).status, path).toBe(503)
      expect((await listAll(server)).slice(0, listed.length)).toEqual(listed)
      await runCommand(['migrate', '--reopen'], { ...settings, MEDIABUCKET_DATA: other })
      await upload(server, 'after the source was opened again')
      expect(await server.stop()).toBe(0)
    } finally {
      await release()
    }
  })

  test('F11 a service that was left running on a store whose bytes have moved confirms no change after the migration', async () => {
    await using directory = await temporaryDirectory()
    const { url, release } = await createDatabase()
    const [data, other] = [join(directory.path, 'data'), join(directory.path, 'other')]
    const settings = { ...base, ...(await s3Settings()), MEDIABUCKET_DATABASE_URL: url }
    const { MEDIABUCKET_BLOBS_URL: store = '' } = await s3Settings()
    try {
      await using server = await startServer(settings, data)
      const authorization = `Bearer ${server.token}`
      const listed = await fill(server)
      const moved = await migrate({ ...settings, MEDIABUCKET_DATA: other }, store)
      expect(moved.stdout).toContain('Copied the bytes of 5 items')
      {
        await using later = await startServer({ ...settings, MEDIABUCKET_BLOBS_URL: store }, other)
        listed.push((await upload(later, 'on the new store', { authorization })).url)
        const lost = { method: 'POST', body: 'lost', headers: { 'content-type': 'text/plain' } }
        expect((await server.request('/api/media', lost)).status).toBe(503)
        expect(await listAll(server)).toEqual(listed)
        expect(await brokenItems(later, listed, authorization)).toEqual([])
        const reopened = await runCommand(['migrate', '--reopen'], { ...settings, MEDIABUCKET_DATA: other })
        expect(reopened.stdout).toMatch(
          /can be used again: start the service again\. .* items that were uploaded with MEDIABUCKET_BLOBS_URL=/,
        )
        const headers = { ...lost.headers, authorization }
        for (const one of [server, later])
          expect((await one.request('/api/media', { ...lost, headers })).status).toBe(503)
        expect(await later.stop()).toBe(0)
      }
      expect(await server.stop()).toBe(0)
      // S9: two services would write to two stores.
      await expect(startServer({ ...settings, MEDIABUCKET_BLOBS_URL: store }, other)).rejects.toThrow(
        'holds the bytes of another catalog',
      )
      await using again = await startServer(settings, data)
      await upload(again, 'on the earlier store again', { authorization })
    } finally {
      await release()
    }
  })

  test('F11 a migration of the bytes that is killed between its last steps is completed by the same command', async () => {
    await using directory = await temporaryDirectory()
    const { url, release } = await createDatabase()
    const [first, second] = [join(directory.path, 'first'), join(directory.path, 'second')]
    const settings = { ...base, MEDIABUCKET_DATABASE_URL: url, MEDIABUCKET_DATA: first }
    try {
      const server = await startServer(settings, first)
      const authorization = `Bearer ${server.token}`
      const listed = await fill(server)
      await server.stop()
      await killMigration(settings, [url, second], '^renameSync .*/second/blobs/.identity')
      await expect(startServer(settings, first)).rejects.toThrow('were moved by mediabucket migrate')
      await expect(startServer(settings, second)).rejects.toThrow('is not the directory')
      await expect(migrate(settings, url, `${second}-other`)).rejects.toMatchObject({
        stderr: expect.stringContaining('were moved'),
      })
      expect((await migrate(settings, url, second)).stdout).toContain('Copied the bytes of 5 items')
      await using later = await startServer(settings, second)
      listed.push((await upload(later, 'on the new disk', { authorization })).url)
      expect(await brokenItems(later, listed, authorization)).toEqual([])
    } finally {
      await release()
    }
  })

  test('F11 a migration to PostgreSQL that is killed as soon as the database has a table is completed by the same command', async () => {
    const { url, release } = await createDatabase()
    await using directory = await temporaryDirectory()
    try {
      const server = await startServer(base, directory.path)
      const authorization = `Bearer ${server.token}`
      const listed = await fill(server)
      await server.stop()
      const settings = { MEDIABUCKET_DATA: directory.path }
      // The first read after those that open the source.
      await killMigration(settings, [url], '^run BEGIN', 3)
      expect(await rowsOf(url, "SELECT FROM pg_class WHERE relname = 'meta'")).toHaveLength(1)
      const onPostgres = { ...base, MEDIABUCKET_DATABASE_URL: url }
      await expect(startServer(onPostgres, directory.path)).rejects.toThrow('migration was interrupted')
      expect((await migrate(settings, url)).stdout).toContain('Copied the rows of 5 items.')
      await using later = await startServer(onPostgres, directory.path)
      expect(await listAll(later, authorization)).toEqual(listed)
    } finally {
      await release()
    }
  })

  test('F11 only the rows move where the directory stays', async () => {
    const { url, release } = await createDatabase()
    await using directory = await temporaryDirectory()
    try {
      const server = await startServer(base, directory.path)
      const authorization = `Bearer ${server.token}`
      const listed = await fill(server)
      await server.stop()
      const { stdout } = await migrate({ MEDIABUCKET_DATA: directory.path }, url)
      expect(stdout).not.toContain('bytes')
      const there = { MEDIABUCKET_DATABASE_URL: url }
      expect(await outcome(['fsck', '--verify-bytes'], directory.path, there)).toMatchObject({
        ...{ code: 0, stdout: expect.stringContaining('No faults were found.') },
      })
      expect(await outcome(['fsck', '--repair'], directory.path, there)).toMatchObject({
        ...{ code: 1, stderr: expect.stringContaining('start it once, then try again') },
      })
      await using other = await temporaryDirectory()
      await cp(join(directory.path, 'blobs/.identity'), join(other.path, 'blobs/.identity'))
      expect(await outcome(['fsck'], other.path, there)).toMatchObject({
        ...{ code: 1, stderr: expect.stringContaining('does not have the bytes of the items') },
      })
      await using onPostgres = await startServer({ ...base, MEDIABUCKET_DATABASE_URL: url }, directory.path)
      const again = await listAll(onPostgres, authorization)
      expect(again).toEqual(listed)
      expect(await brokenItems(onPostgres, again, authorization)).toEqual([])
      expect(await onPostgres.stop()).toBe(0)
      // The old catalog is still there, but nothing acts on it unless it is opened again, and the bytes belong to the new one.
      const refusal = `The data of ${join(directory.path, 'catalog.db')} were moved by mediabucket migrate: use them with MEDIABUCKET_DATABASE_URL='${withoutPassword(url)}', or run mediabucket migrate --reopen to use the earlier data again.`
      await expect(startServer(base, directory.path)).rejects.toThrow(refusal)
      const settings = { MEDIABUCKET_DATA: directory.path }
      const commands = [
        ...[
          ['token', 'revoke', 'x'],
          ['token', 'create', '--bucket', 'default'],
          ['bucket', 'list'],
          ['audit'],
        ],
        ...[
          ['fsck'],
          ['vacuum'],
          ['backup', `${directory.path}-backup`],
          ['migrate', '--to', `${directory.path}-other`],
        ],
      ]
      for (const command of commands)
        expect(await outcome(command, directory.path)).toMatchObject({
          ...{ code: 1, stdout: '' },
          stderr: expect.stringContaining(refusal.slice(refusal.indexOf('were moved'))),
        })
      expect(existsSync(`${directory.path}-other`)).toBe(false)
      expect((await runCommand(['migrate', '--reopen'], settings)).stdout).toMatch(
        /^The earlier data can be used again/,
      )
      await expect(startServer(base, directory.path)).rejects.toThrow('holds the bytes of another catalog')
    } finally {
      await release()
    }
  })
})

test('F11 the bytes move to an S3 store, the rows stay, and both move back', async () => {
  await using directory = await temporaryDirectory()
  const [first, second] = [join(directory.path, 'first'), join(directory.path, 'second')]
  const { MEDIABUCKET_BLOBS_URL: store = '', ...credentials } = await s3Settings()
  const server = await startServer(base, first)
  const authorization = `Bearer ${server.token}`
  const listed = await fill(server)
  await server.stop()

  const there = await migrate({ ...credentials, MEDIABUCKET_DATA: first }, store)
  expect(there.stdout).toMatch(/^Copied the bytes of 5 items to s3:/)
  const onS3 = { ...credentials, MEDIABUCKET_BLOBS_URL: store }
  {
    await using later = await startServer({ ...base, ...onS3 }, first)
    const again = await listAll(later, authorization)
    expect(again).toEqual(listed)
    expect(await brokenItems(later, again, authorization)).toEqual([])
    listed.push((await upload(later, 'on S3', { authorization })).url)
    expect(await later.stop()).toBe(0)
  }
  for (const command of [['fsck'], ['migrate', '--to', store]])
    await expect(runCommand(command, { ...credentials, MEDIABUCKET_DATA: first })).rejects.toMatchObject({
      stderr: expect.stringMatching(
        /were moved .* use them with MEDIABUCKET_BLOBS_URL='s3:.* migrate --reopen/,
      ),
    })

  const back = await migrate({ ...onS3, MEDIABUCKET_DATA: first }, second)
  expect(back.stdout).toMatch(/^Copied the rows of 6 items/)
  await using last = await startServer(base, second)
  const again = await listAll(last, authorization)
  expect(again).toEqual(listed)
  expect(await brokenItems(last, again, authorization)).toEqual([])
})

test('F11 where the bytes stay in an S3 store, the earlier catalog cannot use them once the service has started on the new one', async () => {
  await using directory = await temporaryDirectory()
  const { url, release } = await createDatabase()
  try {
    const onS3 = { ...(await s3Settings()), MEDIABUCKET_DATA: directory.path }
    const server = await startServer({ ...base, ...onS3 }, directory.path)
    const authorization = `Bearer ${server.token}`
    const listed = await fill(server)
    await server.stop()
    await migrate(onS3, url)
    await using later = await startServer({ ...base, ...onS3, MEDIABUCKET_DATABASE_URL: url }, directory.path)
    expect(await brokenItems(later, listed, authorization)).toEqual([])
    await runCommand(['migrate', '--reopen'], onS3)
    await expect(runCommand(['fsck', '--repair'], onS3)).rejects.toMatchObject({
      stderr: expect.stringContaining('holds the bytes of another catalog'),
    })
  } finally {
    await release()
  }
})

test('F11 a source that a service uses is refused', async () => {
  await using directory = await temporaryDirectory()
  await using server = await startServer(base)
  const refused = migrate({ MEDIABUCKET_DATA: server.data }, join(directory.path, 'target'))
  await expect(refused).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('already served') })
})

test('F11 a target with data is refused, and so is the same directory', async () => {
  await using directory = await temporaryDirectory()
  const target = join(directory.path, 'target')
  for (const data of [directory.path, target]) {
    const server = await startServer(base, data)
    await server.stop()
  }
  const settings = { MEDIABUCKET_DATA: directory.path }
  await expect(migrate(settings, target)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('holds the bytes of a catalog already'),
  })
  await expect(migrate(settings, directory.path)).rejects.toMatchObject({ code: 2 })
})

test('F11 a directory with other files is refused and not changed', async () => {
  await using directory = await temporaryDirectory()
  const [source, target] = [join(directory.path, 'source'), join(directory.path, 'target')]
  const server = await startServer(base, source)
  await server.stop()
  await mkdir(join(target, 'uploads'), { recursive: true })
  await writeFile(join(target, 'uploads/photo.jpg'), 'of another program')
  await expect(migrate({ MEDIABUCKET_DATA: source }, target)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${target} has other files (uploads). Choose a directory`),
  })
  expect(await readdir(target)).toEqual(['uploads'])
})

test('F11 a migration that is killed is completed by the same command, and no service starts before', async () => {
  await using directory = await temporaryDirectory()
  const [source, target] = [join(directory.path, 'source'), join(directory.path, 'target')]
  const settings = { MEDIABUCKET_DATA: source }
  const server = await startServer(base, source)
  const authorization = `Bearer ${server.token}`
  const listed = await fill(server)
  await server.stop()
  await seed({ data: source }, '--items', '3000')

  async function killBefore(calls: string, number: number): Promise<void> {
    await killMigration(settings, [target], calls, number)
    await expect(startServer({}, target)).rejects.toThrow('migration was interrupted')
  }
  // The target has no tables.
  await killBefore('^exec CREATE TABLE meta', 1)
  // Bytes are being copied.
  await killBefore('^rename ', 1)
  await killBefore('^run INSERT INTO items', 2_500)
  expect(copiedItems(target)).toBeGreaterThan(0)
  expect(copiedItems(target)).toBeLessThan(3_005)
  {
    // As if it had been killed between its last two steps.
    using db = new DatabaseSync(join(source, 'catalog.db'))
    db.exec(`INSERT INTO meta (key, value) VALUES ('moved', 'MEDIABUCKET_DATA=${target}')`)
  }
  await expect(migrate(settings, `${target}-other`)).rejects.toMatchObject({
    stderr: expect.stringContaining('were moved'),
  })
  expect((await migrate(settings, target)).stdout).toContain('Copied the rows of 3005 items.')
  await expect(migrate(settings, target)).rejects.toMatchObject({
    stderr: expect.stringContaining('were moved'),
  })
  await using later = await startServer(base, target)
  expect(await listAll(later, authorization)).toEqual(listed)
})
