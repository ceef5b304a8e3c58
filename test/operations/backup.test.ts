import { spawn } from 'node:child_process'
import { readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectProblem } from '../harness/problem.ts'
import { seed } from '../harness/seed.ts'
import { basics, bin, runCommand, startServer, type TestServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { brokenItems, fsck, listAll, outcome } from '../harness/upkeep.ts'
import { blobPath, onDisk, upload } from '../harness/upload.ts'

const stopBeforeFinish = new URL('stop-before-finish.ts', import.meta.url).href

const restore = (from: string, data: string) => runCommand(['restore', from], { MEDIABUCKET_DATA: data })

const pathsOf = (urls: readonly string[]) => urls.map((url) => new URL(url).pathname)

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

/** Whether the bytes of a deleted item are gone. */
const isGone = async (server: TestServer, id: string) => !(await exists(blobPath(server, id)))

test('F7, F8 a backup of a running server restores the same listing and bytes, with other ETags', async () => {
  await using directory = await temporaryDirectory()
  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  // Both servers use the same base URL, so that only the data can differ.
  const settings = { MEDIABUCKET_BASE_URL: 'http://media.test' }
  await using server = await startServer(settings)
  for (const text of ['one', '', 'three']) await upload(server, text)
  const deleted = await upload(server, 'deleted')
  await server.request(`/api/media/${deleted.id}`, { method: 'DELETE' })
  await seed(server, '--items', '12')
  const tus = tusOf(server)
  const unfinished = await tus.createWithLength(100)
  const page = await server.request('/api/media')
  const listed = await listAll(server)
  const { stdout } = await server.command('backup', to)
  expect(stdout).toMatch(
    /^Backed up 15 items to .*: 0 copied \(0 B\), 0 already there; the bytes of 15 are in the catalog\./,
  )
  expect((await readdir(to)).filter((name) => /lock|hold/.test(name))).toEqual([])

  expect((await restore(to, data)).stdout).toMatch(/^Restored 15 items/)
  expect(await fsck(data, '--verify-bytes')).toMatchObject({ code: 0, found: {} })
  await using later = await startServer(settings, data)
  const authorization = `Bearer ${server.token}`
  const again = await listAll(later, authorization)
  expect(pathsOf(again)).toEqual(pathsOf(listed))
  expect(await brokenItems(later, again, authorization)).toEqual([])
  const etag = page.headers.get('etag') ?? ''
  const asked = await later.request('/api/media', { headers: { authorization, 'if-none-match': etag } })
  expect([asked.status, asked.headers.get('etag') === etag]).toEqual([200, false])
  const bucket = await later.request('/api/bucket', { headers: { authorization } })
  expect(await bucket.json()).toMatchObject({ items: 3, reserved_items: 0, reserved_bytes: 0 })
  expect((await tusOf({ ...later, token: server.token }).head(unfinished)).status).toBe(404)
  expect(
    (await later.request('/api/media', { method: 'POST', body: 'x', headers: { authorization } })).status,
  ).toBe(201)
})

test('F7 the second backup copies only new items; both backups restore their items, including later deleted ones', async () => {
  await using directory = await temporaryDirectory()
  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  await using server = await startServer(onDisk)
  const first = await upload(server, 'first')
  await upload(server, 'second')
  await server.command('backup', to)
  await server.request(`/api/media/${first.id}`, { method: 'DELETE' })
  await upload(server, 'third')
  const { stdout } = await server.command('backup', to)
  expect(stdout).toMatch(/2 items to .*: 1 copied \(5 B\), 1 already there\./)
  expect((await readdir(to)).filter((name) => name.startsWith('snapshot-'))).toHaveLength(1)
  await restore(to, data)
  await using later = await startServer({}, data)
  const authorization = `Bearer ${server.token}`
  expect(pathsOf(await listAll(later, authorization))).toEqual(pathsOf(await listAll(server)))
  expect(await exists(blobPath(later, first.id))).toBe(false)
})

test('F6, F7 uploads and deletes continue during a backup, and the backup is complete', async () => {
  await using directory = await temporaryDirectory()
  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  await using server = await startServer()
  const doomed = await Promise.all(Array.from({ length: 60 }, (_, index) => upload(server, `item ${index}`)))
  let running = true
  async function client(): Promise<void> {
    while (running) {
      await upload(server, 'new')
      const item = doomed.pop()
      if (item) await server.request(`/api/media/${item.id}`, { method: 'DELETE' })
    }
  }
  const clients = Promise.all([client(), client()])
  for (let round = 0; round < 2; round++)
    expect(await outcome(['backup', to], server.data)).toMatchObject({ code: 0 })
  running = false
  await clients
  await restore(to, data)
  expect(await fsck(data, '--verify-bytes')).toMatchObject({ code: 0, found: {} })
  expect(await brokenItems(server, await listAll(server))).toEqual([])
  await until('all removals', async () => (await fsck(server.data)).code === 0)
})

test('F6 bytes of items deleted during a backup are removed after its end; a killed backup delays no removal', async () => {
  await using directory = await temporaryDirectory()
  const to = join(directory.path, 'backup')
  await using server = await startServer(onDisk)
  const early = await upload(server, 'early')
  await server.command('backup', to)
  const marker = await readFile(join(to, 'backup.json'), 'utf8')

  const env = { ...basics, MEDIABUCKET_DATA: server.data, NODE_OPTIONS: `--import ${stopBeforeFinish}` }
  const backup = spawn(process.execPath, [bin, 'backup', to], { env, stdio: 'ignore' })
  const ended = new Promise((done) => backup.once('exit', done))
  await until('the backup to stop', async () =>
    /\) T /.test(await readFile(`/proc/${backup.pid}/stat`, 'utf8')),
  )
  expect((await readdir(to)).filter((name) => name.startsWith('snapshot-'))).toHaveLength(2)
  await server.request(`/api/media/${early.id}`, { method: 'DELETE' })
  const other = await upload(server, 'other')
  await server.request(`/api/media/${other.id}`, { method: 'DELETE' })
  expect(await outcome(['backup', join(directory.path, 'second')], server.data)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Another backup of these data is running'),
  })
  // Two backups never prepare one directory at the same time.
  expect(await exists(join(directory.path, 'second'))).toBe(false)
  expect([await isGone(server, early.id), await isGone(server, other.id)]).toEqual([false, false])
  expect((await fetch(`${server.url}/media/${early.id}`)).status).toBe(404)
  backup.kill('SIGKILL')
  await ended
  await until(
    'the removals',
    async () => (await isGone(server, early.id)) && (await isGone(server, other.id)),
  )

  expect(await readFile(join(to, 'backup.json'), 'utf8')).toBe(marker)
  const data = join(directory.path, 'data')
  await restore(to, data)
  await using later = await startServer({}, data)
  const authorization = `Bearer ${server.token}`
  const urls = await listAll(later, authorization)
  expect([urls.length, await brokenItems(later, urls, authorization)]).toEqual([1, []])
  await server.command('backup', to)
  expect((await readdir(to)).filter((name) => name.startsWith('snapshot-'))).toHaveLength(1)
})

test('F7 backup reports damaged bytes and never overwrites an intact copy with them', async () => {
  await using directory = await temporaryDirectory()
  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  await using server = await startServer(onDisk)
  const saved = await upload(server, 'saved')
  await server.command('backup', to)
  const late = await upload(server, 'late')
  await writeFile(blobPath(server, saved.id), 'SAVED')
  await writeFile(blobPath(server, late.id), 'LATE')
  expect(await outcome(['backup', to], server.data)).toMatchObject({
    code: 5,
    stdout: expect.stringContaining(`  ${late.id} changed: the bytes are not those that were uploaded\n`),
  })
  expect(await outcome(['restore', to], data)).toMatchObject({
    code: 5,
    stdout: expect.stringContaining(`  ${late.id} missing: the bytes do not exist\n`),
  })
  await using later = await startServer({}, data)
  expect(await (await fetch(`${later.url}/media/${saved.id}`)).text()).toBe('saved')
  await expectProblem(await fetch(`${later.url}/media/${late.id}`), 500, 'bytes-missing')
})

test('F8 restore refuses existing data, a running server, a directory without a backup and a damaged backup, and changes nothing', async () => {
  await using directory = await temporaryDirectory()
  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  await using server = await startServer()
  await upload(server, 'kept')
  await server.command('backup', to)
  const refused = async (from: string, into: string, why: string) =>
    expect(await outcome(['restore', from], into)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(why),
    })

  await refused(to, server.data, 'already served by another mediabucket process')
  await server.stop()
  await refused(to, server.data, 'holds data already')
  // The record that a restore of another backup leaves if it is killed after its last step.
  const record = join(server.data, 'restoring.json')
  const result = { items: 9, copied: 9, bytes: 9, present: 0, inCatalog: 0, faulty: [] }
  await writeFile(record, JSON.stringify({ backup: 'another', result }))
  await refused(to, server.data, 'holds data already')
  await rm(record)
  await refused(server.data, data, 'holds no backup')
  await writeFile(join(to, 'backup.json'), '{"format":1,"finished":null}')
  await refused(to, data, 'interrupted and never finished')
  expect(await outcome(['backup', to], server.data)).toMatchObject({ code: 0 })
  const [snapshot = ''] = (await readdir(to)).filter((name) => name.startsWith('snapshot-'))
  await truncate(join(to, snapshot, 'catalog.db'), 4_096)
  await refused(to, data, 'is damaged')
  expect(await exists(join(data, 'catalog.db'))).toBe(false)
  await using again = await startServer({}, server.data)
  expect(await listAll(again, `Bearer ${server.token}`)).toHaveLength(1)
})
