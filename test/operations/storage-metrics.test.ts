import { execFileSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openConnection } from '../harness/connection.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { scrape } from '../harness/scrape.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { arriving, blobPath, onDisk, upload } from '../harness/upload.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer(onDisk)
})
afterAll(() => server[Symbol.asyncDispose]())

/** The service's samples of these names. */
async function values(...names: string[]) {
  const { value } = await scrape(server)
  return names.map((name) => value(name))
}

test('O2 metrics show the versions of the service and of Node.js', async () => {
  const { samples } = await scrape(server)
  const [info = ''] = [...samples.keys()].filter((name) => name.startsWith('mediabucket_build_info'))
  expect(info).toMatch(/^mediabucket_build_info\{version="\d+\.\d+\.\d+",node="\d+\.\d+\.\d+"\}$/)
  expect(samples.get(info)).toBe(1)
})

test('O2 metrics show the items and bytes of all buckets, and change with uploads and deletes', async () => {
  const [items = 0, bytes = 0] = await values('items', 'items_bytes')
  await server.command('token', 'create', '--bucket', 'other')
  const { id } = await upload(server, 'hello')
  await upload(server, 'hello world')
  expect(await values('items', 'items_bytes')).toEqual([items + 2, bytes + 16])
  await server.request(`/api/media/${id}`, { method: 'DELETE' })
  expect(await values('items', 'items_bytes')).toEqual([items + 1, bytes + 11])
})

test('O2 metrics show the disk space that the system reports, and the size of the write-ahead log', async () => {
  const df = execFileSync('df', ['--output=avail,size', '-B1', server.data]).toString()
  const [avail = 0, size = 0] = df.trim().split('\n')[1]?.trim().split(/\s+/).map(Number) ?? []
  const [free = 0, total, wal] = await values('data_free_bytes', 'data_size_bytes', 'wal_bytes')
  expect(total).toBe(size)
  // Other tests write to the disk at the same time.
  expect(Math.abs(free - avail) / size).toBeLessThan(0.2)
  expect(wal).toBeGreaterThan(0)
})

test('O2 commits and syncs are timed', async () => {
  const names = ['commit_seconds_count', 'commit_seconds_sum', 'fsync_seconds_count', 'fsync_seconds_sum']
  const [commits = 0, commitTime = 0, syncs = 0, syncTime = 0] = await values(...names)
  await upload(server, 'timed')
  const after = await values(...names)
  expect(after[0]).toBeGreaterThan(commits)
  expect(after[1]).toBeGreaterThan(commitTime)
  // The file itself, and its directory.
  expect(after[2]).toBeGreaterThanOrEqual(syncs + 2)
  expect(after[3]).toBeGreaterThan(syncTime)
  expect(await values('writer_queue_changes')).toEqual([0])
})

test('O2 syncs of resumable uploads are timed', async () => {
  const tus = tusOf(server)
  const location = await tus.createWithLength(10)
  const [before = 0] = await values('fsync_seconds_count')
  await tus.sendChunk(location, 0, 'half.')
  const [after = 0] = await values('fsync_seconds_count')
  expect(after).toBeGreaterThan(before)
  await tus.terminate(location)
})

test('O2 metrics show uploads in progress and unfinished resumable uploads', async () => {
  const names = ['active_uploads', 'unfinished_uploads', 'unfinished_upload_bytes']
  const [active = 0, unfinished = 0, reserved = 0] = await values(...names)
  const tus = tusOf(server)
  const location = await tus.createWithLength(1234)
  const connection = await openConnection(server.url)
  connection.send(
    `POST /api/media HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 100000\r\n\r\nhalf`,
  )
  await until('it arrives', async () => (await arriving(server)).length > 0)
  expect(await values(...names)).toEqual([active + 1, unfinished + 1, reserved + 1234])
  connection[Symbol.dispose]()
  await tus.terminate(location)
  await until('both are over', async () => {
    const now = await values(...names)
    return now[0] === active && now[1] === unfinished && now[2] === reserved
  })
})

test('O2 a request that fails because of the disk is counted with its cause', async () => {
  const { id, url } = await upload(server, 'lost')
  const errors = async () => (await scrape(server)).value('storage_errors_total', 'cause="bytes-missing"')
  expect(await errors()).toBe(0)
  await rm(blobPath(server, id))
  expect((await fetch(url)).status).toBe(500)
  expect(await errors()).toBe(1)
  expect((await fetch(`${server.url}/media/nothing`)).status).toBe(404)
  expect(await errors()).toBe(1)
})

test('O2, F1, F7 metrics show when backup and fsck last finished, and their findings', async () => {
  await using other = await startServer(onDisk)
  await using backups = await temporaryDirectory()
  const names = [
    'last_backup_timestamp_seconds',
    'last_backup_faults',
    'last_fsck_timestamp_seconds',
    'last_fsck_faults',
  ]
  const read = async () => {
    const { value } = await scrape(other)
    return names.map((name) => value(name))
  }
  expect(await read()).toEqual([0, 0, 0, 0])
  const { id } = await upload(other, 'x')
  await upload(other, 'y')
  const before = Date.now() / 1000 - 1
  await other.command('backup', join(backups.path, 'first'))
  await other.command('fsck')
  const [backup = 0, backupFaults, fsck = 0, fsckFaults] = await read()
  expect(Math.min(backup, fsck)).toBeGreaterThan(before)
  expect(Math.max(backup, fsck)).toBeLessThanOrEqual(Date.now() / 1000)
  expect([backupFaults, fsckFaults]).toEqual([0, 0])

  await rm(blobPath(other, id))
  await expect(other.command('fsck')).rejects.toMatchObject({ code: 1 })
  await expect(other.command('backup', join(backups.path, 'second'))).rejects.toMatchObject({
    code: expect.any(Number),
  })
  expect(await read()).toEqual([expect.any(Number), 1, expect.any(Number), 1])
})
