import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  appendFile,
  chown,
  mkdir,
  readdir,
  readFile,
  rmdir,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newItemId, newUploadId } from '../../packages/server/src/core/ids.ts'
import { runHere } from '../harness/commands.ts'
import { usePostgres } from '../harness/database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectProblem } from '../harness/problem.ts'
import { catalogRows } from '../harness/rows.ts'
import { makePair, sendSigned, startS3Server } from '../harness/s3-door.ts'
import { seed } from '../harness/seed.ts'
import { basics, bin, startServer, type TestServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'
import { brokenItems, fsckHere, listAll, outcome, readReport } from '../harness/upkeep.ts'
import { blobPath, onDisk, upload } from '../harness/upload.ts'

/** Changes rows of the catalog directly. */
function tamper(server: TestServer, sql: string): void {
  const db = new DatabaseSync(join(server.data, 'catalog.db'))
  db.exec(sql)
  db.close()
}

/** Writes bytes to the path of an item's bytes. */
async function plant(server: TestServer, id = newItemId()) {
  const path = blobPath(server, id)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, 'planted')
  return { id, path }
}

const aside = (server: TestServer) => readdir(join(server.data, 'lost+found'))

test('F1 a start with a catalog whose epoch is missing warns, and names the command that corrects it', async () => {
  await using server = await startServer(onDisk)
  await server.stop()
  const warnings = (running: TestServer) =>
    running.log().flatMap(({ msg }) => (String(msg).includes('epoch of the catalog') ? [msg] : []))
  await (await catalogRows(server.data)).change("DELETE FROM meta WHERE key = 'epoch'")
  await using again = await startServer(onDisk, server.data)
  expect(warnings(again)).toEqual([expect.stringContaining('mediabucket fsck --repair')])
  await again.stop()
  expect(await fsckHere(server.data, '--repair')).toMatchObject({ code: 0, found: { 'meta-wrong': [1, 1] } })
  await using corrected = await startServer(onDisk, server.data)
  expect(warnings(corrected)).toEqual([])
})

test('F1 a bucket with impossible numbers does not keep fsck --repair from counting the others', async () => {
  await using server = await startServer(onDisk)
  await upload(server, 'one')
  for (const name of ['two', 'three']) await server.command('bucket', 'create', name)
  await server.stop()
  const rows = await catalogRows(server.data)
  await rows.change(`UPDATE buckets SET next_seq = ${2 ** 50} WHERE name = 'two';
    UPDATE buckets SET bytes = bytes + 7`)
  const { code, found, report } = await fsckHere(server.data, '--repair')
  expect([code, found]).toEqual([
    1,
    { 'row-wrong': [1, 0], 'check-failed': [1, 0], 'bucket-bytes-wrong': [2, 2] },
  ])
  const id = String((await rows.read("SELECT id FROM buckets WHERE name = 'two'"))[0]?.['id'])
  expect(JSON.stringify(report)).toContain(`counters and ranks of bucket ${id}: rows have impossible numbers`)
})

test('F1 fsck finds every kind of fault, reports it with a stable code, and repairs it where no data is destroyed', async () => {
  await using server = await startServer(onDisk)
  const names = ['missing', 'longer', 'kept', 'gone', 'also gone']
  const items = await Promise.all(names.map((name) => upload(server, name)))
  const [missing, longer, kept, gone, alsoGone] = items.map(({ id }) => id)
  if (!missing || !longer || !kept || !gone || !alsoGone) throw new Error('five items')
  await server.stop()
  expect(await fsckHere(server.data)).toMatchObject({ code: 0, found: {} })

  await unlink(blobPath(server, missing))
  await appendFile(blobPath(server, longer), '!')
  const orphan = await plant(server)
  await writeFile(join(server.data, 'blobs', 'notes.txt'), 'mine')
  await symlink('/etc/passwd', join(dirname(orphan.path), newItemId()))
  await writeFile(join(server.data, 'tmp', 'ab'), 'half')
  await writeFile(join(server.data, 'uploads', newUploadId()), 'piece')
  tamper(
    server,
    `DELETE FROM items WHERE id IN ('${gone}', '${alsoGone}');
    INSERT INTO tombstones VALUES ('${gone}'), ('${alsoGone}');
    UPDATE items SET item_expires_at = 9000000000000 WHERE id = '${kept}';
    UPDATE item_names SET names = names || 'x';
    UPDATE buckets SET bytes = bytes + 7, reserved_items = 2, next_seq = 1 WHERE name = 'default'`,
  )
  await unlink(blobPath(server, alsoGone))
  const faults = {
    'bucket-total-wrong': 1,
    'bucket-usage-wrong': 1,
    'bucket-bytes-wrong': 1,
    'bucket-reserved-wrong': 1,
    'bucket-sequence-wrong': 1,
    'bucket-expiry-wrong': 1,
    'bucket-ranks-wrong': 1,
    'bucket-names-wrong': 1,
    'bytes-missing': 1,
    'size-wrong': 1,
    'bytes-orphaned': 1,
    'entry-foreign': 2,
    'temporary-stale': 1,
    'part-stale': 1,
    'tombstone-with-bytes': 1,
    'tombstone-without-bytes': 1,
  }
  const counted = (repaired: (code: string, count: number) => number) =>
    Object.fromEntries(Object.entries(faults).map(([code, count]) => [code, [count, repaired(code, count)]]))

  const before = await fsckHere(server.data)
  expect([before.code, before.report.clean, before.found]).toEqual([1, false, counted(() => 0)])
  expect(await readFile(orphan.path, 'utf8')).toBe('planted')

  const lasting = ['bytes-missing', 'size-wrong']
  const repaired = await fsckHere(server.data, '--repair')
  expect([repaired.code, repaired.found]).toEqual([
    1,
    counted((code, count) => (lasting.includes(code) ? 0 : count)),
  ])
  const after = await fsckHere(server.data)
  expect([after.code, after.found]).toEqual([1, { 'bytes-missing': [1, 0], 'size-wrong': [1, 0] }])
  expect(after.report.findings[0]?.subjects).toEqual([missing])

  const moved = await aside(server)
  expect(moved).toHaveLength(5)
  expect(moved).toContainEqual(expect.stringMatching(`^kept.${orphan.id}.`))
  await using later = await startServer({}, server.data)
  const authorization = `Bearer ${server.token}`
  const urls = await listAll(later, authorization)
  expect(urls).toHaveLength(3)
  expect(new Set(await brokenItems(later, urls, authorization))).toEqual(new Set([missing, longer]))
})

test('F1 fsck reports a damaged catalog, and neither reports nor moves anything based on it', async () => {
  await using server = await startServer(onDisk)
  await upload(server, 'kept')
  await seed(server, '--items', '2000')
  await plant(server)
  await server.stop()
  const path = join(server.data, 'catalog.db')
  const bytes = await readFile(path)
  await writeFile(path, bytes.fill(7, 20 * 4_096, 60 * 4_096))
  const { code, found } = await fsckHere(server.data, '--repair')
  expect([code, Object.keys(found)]).toEqual([1, ['catalog-damaged']])
  expect(await readdir(server.data)).not.toContain('lost+found')
})

test('F2 while a server is running, orphans are moved; files of items and of uploads in progress are not', async () => {
  await using server = await startServer(onDisk)
  const { url } = await upload(server, 'kept')
  const orphan = await plant(server)
  const found = await fsckHere(server.data)
  expect([found.code, found.report.server_running, found.found]).toEqual([
    1,
    true,
    { 'bytes-orphaned': [1, 0] },
  ])
  const repaired = await fsckHere(server.data, '--repair')
  expect([repaired.code, repaired.found]).toEqual([0, { 'bytes-orphaned': [1, 1] }])
  const [name = ''] = await aside(server)
  expect(name).toMatch(`kept.${orphan.id}.`)
  expect(await readFile(join(server.data, 'lost+found', name), 'utf8')).toBe('planted')
  expect(await (await fetch(url)).text()).toBe('kept')
})

test('F2 uploads and deletes continue during fsck --repair, and no acknowledged item is lost', async () => {
  await using server = await startServer(onDisk)
  const kept = new Set<string>()
  let running = true
  let failures = 0
  async function client(): Promise<void> {
    while (running) {
      const items = await Promise.all(['a', 'b', 'c'].map((text) => upload(server, `${text}${randomUUID()}`)))
      for (const [index, { id }] of items.entries()) {
        if (index > 0) kept.add(id)
        else
          failures += (await server.request(`/api/media/${id}`, { method: 'DELETE' })).status === 204 ? 0 : 1
      }
    }
  }
  const clients = Promise.all([client(), client()])
  const orphans: string[] = []
  for (let round = 0; round < 3; round++) {
    orphans.push((await plant(server)).id)
    const { code, report } = await fsckHere(server.data, '--repair', '--verify-bytes')
    expect([code, report.clean, report.server_running]).toEqual([0, true, true])
  }
  running = false
  await clients
  const urls = await listAll(server)
  const listed = new Set(urls.map((url) => /\/media\/(\w+)/.exec(url)?.[1] ?? ''))
  expect([failures, listed]).toEqual([0, kept])
  expect(await brokenItems(server, urls)).toEqual([])
  const moved = await aside(server)
  for (const id of orphans) expect(moved).toContainEqual(expect.stringContaining(id))
  await server.stop()
  expect(await fsckHere(server.data, '--verify-bytes')).toMatchObject({ code: 0, report: { findings: [] } })
})

test('F3 fsck finds a flipped byte; its item receives 500 until a later check finds the bytes correct', async () => {
  await using server = await startServer(onDisk)
  const item = await upload(server, 'some bytes')
  const path = blobPath(server, item.id)
  const fetchIt = () => fetch(`${server.url}/media/${item.id}`)
  await writeFile(path, 'some bytez')
  expect((await fetchIt()).status).toBe(200)
  expect((await fsckHere(server.data)).code).toBe(0)
  expect(await fsckHere(server.data, '--verify-bytes')).toMatchObject({
    code: 1,
    found: { 'hash-wrong': [1, 0] },
  })
  await expectProblem(await fetchIt(), 500, 'bytes-missing')
  expect((await server.request(`/api/media/${item.id}`)).status).toBe(200)
  expect(await fsckHere(server.data, '--repair')).toMatchObject({
    code: 1,
    found: { 'bytes-damaged': [1, 0] },
  })
  expect(await listAll(server)).toHaveLength(1)

  await writeFile(path, 'some bytes')
  await expectProblem(await fetchIt(), 500, 'bytes-missing')
  expect((await fsckHere(server.data, '--verify-bytes')).code).toBe(0)
  expect(await (await fetchIt()).text()).toBe('some bytes')
  expect((await fsckHere(server.data)).found).toEqual({})
})

test('F1, F3, MU7 fsck finds parts of unfinished uploads whose bytes are missing, of another size, or changed', async () => {
  await using started = await startS3Server(onDisk)
  const { server, endpoint } = started
  const pair = await makePair(server, '--bucket', 'default')
  const url = `${endpoint}/default/film.mp4`
  const created = await (await sendSigned(pair, `${url}?uploads=`, { method: 'POST' })).text()
  const id = /<UploadId>(\w+)</.exec(created)?.[1] ?? ''
  const put = (number: number) =>
    sendSigned(pair, `${url}?uploadId=${id}&partNumber=${number}`, { method: 'PUT', body: `part ${number}` })
  for (let number = 1; number <= 4; number += 1) expect((await put(number)).status).toBe(200)
  expect(await fsckHere(server.data, '--verify-bytes')).toMatchObject({ code: 0, found: {} })
  const rows = await (await catalogRows(server.data)).read('SELECT item_id FROM object_parts ORDER BY number')
  const [missing = '', longer = '', changed = ''] = rows.map(({ item_id }) =>
    blobPath(server, String(item_id)),
  )
  await unlink(missing)
  await appendFile(longer, '!')
  await writeFile(changed, 'parT 3')
  const check = async (...args: string[]) => {
    const { code, report } = await fsckHere(server.data, ...args)
    return [code, report.findings.map((finding) => [finding.code, finding.subjects.toSorted()])]
  }
  const faults = [`${id} 1: its bytes are missing`, `${id} 2: it has 7 bytes, not 6`]
  expect(await check('--repair')).toEqual([1, [['object-part-wrong', faults]]])
  expect(await check('--verify-bytes')).toEqual([
    1,
    [['object-part-wrong', [...faults, `${id} 3: its bytes have changed`]]],
  ])
  for (let number = 1; number <= 3; number += 1) expect((await put(number)).status).toBe(200)
  // The server removes the replaced parts in the background.
  await expect.poll(() => check('--verify-bytes')).toEqual([0, []])
})

test('F4 the text report shows the findings, examples and the next step', async () => {
  await using server = await startServer(onDisk)
  const items = await Promise.all(Array.from({ length: 7 }, () => upload(server, 'x')))
  for (const { id } of items) await unlink(blobPath(server, id))
  const { code, stdout } = await outcome(['fsck'], server.data)
  expect(code).toBe(1)
  expect(stdout).toMatch(
    /^Checked 7 items with 0 B\.\n\nItems whose bytes are missing: 7 \[bytes-missing\]\n/,
  )
  expect(stdout).toMatch(/\n {2}and 2 more; --json lists them\n {2}→ Copy the files back from a backup/)
  expect(stdout).toMatch(/\n7 faults remain\.\n$/)
  await using other = await startServer(onDisk)
  expect(await outcome(['fsck'], other.data)).toMatchObject({
    code: 0,
    stdout: 'Checked 0 items with 0 B.\n\nNo faults were found.\n',
  })
})

test('F5 invalid arguments exit with code 2, and a directory without data is reported', async () => {
  await using directory = await temporaryDirectory()
  expect(await outcome(['fsck', '--fix'], directory.path)).toMatchObject({ code: 2, stdout: '' })
  expect(await outcome(['fsck', '--grace', 'soon'], directory.path)).toMatchObject({ code: 2 })
  expect(await outcome(['fsck'], join(directory.path, 'typo'))).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^mediabucket: .*typo contains no data of Mediabucket\. .*MEDIABUCKET_DATA/,
    ),
  })
  expect(await directory.names()).toEqual([])
})

test('F1, F3, F7 bytes in the catalog are checked as files are, by fsck, backup and restore', async () => {
  await using server = await startServer()
  await using directory = await temporaryDirectory()
  const names = ['sound', 'missing', 'shorter', 'changed']
  const [sound, missing, shorter, changed] = await Promise.all(names.map((name) => upload(server, name)))
  if (!sound || !missing || !shorter || !changed) throw new Error('four items')
  const at = ({ id }: { id: string }) => `id = (SELECT content_id FROM items WHERE id = '${id}')`
  expect(await fsckHere(server.data, '--verify-bytes')).toMatchObject({
    code: 0,
    found: {},
    report: { bytes: 26 },
  })
  tamper(
    server,
    `DELETE FROM contents WHERE ${at(missing)};
    UPDATE contents SET bytes = X'00' WHERE ${at(shorter)};
    UPDATE contents SET bytes = CAST('CHANGED' AS BLOB) WHERE ${at(changed)};
    INSERT INTO contents (bytes) VALUES (CAST('of no item' AS BLOB))`,
  )
  const found = { 'bytes-missing': [1, 0], 'size-wrong': [1, 0], 'hash-wrong': [1, 0] }
  expect(await fsckHere(server.data, '--verify-bytes')).toMatchObject({
    code: 1,
    found: { ...found, 'content-orphaned': [1, 0] },
  })
  for (const { url } of [missing, shorter, changed])
    await expectProblem(await fetch(url), 500, 'bytes-missing')
  expect(await (await fetch(sound.url)).text()).toBe('sound')

  const repaired = await fsckHere(server.data, '--repair', '--verify-bytes')
  expect(repaired.found).toEqual({ ...found, 'content-orphaned': [1, 1] })
  const [name = '', ...more] = await aside(server)
  expect(more).toEqual([])
  expect(await readFile(join(server.data, 'lost+found', name), 'utf8')).toBe('of no item')
  expect((await fsckHere(server.data, '--verify-bytes')).found).toEqual(found)

  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  const reported = { code: 5, stdout: expect.stringContaining(`  ${changed.id} changed: `) }
  expect(await outcome(['backup', to], server.data)).toMatchObject(reported)
  expect(await outcome(['restore', to], data)).toMatchObject(reported)
  await using later = await startServer({}, data)
  const paths = await listAll(later, `Bearer ${server.token}`)
  expect(paths).toHaveLength(4)
  expect(await (await fetch(`${later.url}/media/${sound.id}`)).text()).toBe('sound')
  await expectProblem(await fetch(`${later.url}/media/${changed.id}`), 500, 'bytes-missing')
})

/** The bytes of all items, by id. */
const bytesOf = async (server: TestServer, items: readonly { readonly id: string }[]) =>
  Promise.all(items.map(async ({ id }) => (await fetch(`${server.url}/media/${id}`)).text()))

describe.each(['sqlite', 'postgres'] as const)('F12 with %s', (engine) => {
  let restore = () => {}
  beforeAll(() => {
    if (engine === 'postgres') restore = usePostgres()
  })
  afterAll(() => restore())

  test('F12 a tombstone or an upload with the id of an item removes no bytes at a start, by fsck or by an expiry', async () => {
    await using server = await startServer(onDisk)
    const items = await Promise.all(['a', 'b', 'c', 'd'].map((text) => upload(server, text)))
    const [buried, claimed, trashed, expired] = items.map(({ id }) => id)
    const tus = tusOf(server)
    const [first, second] = [await tus.createWithLength(4), await tus.createWithLength(4)]
    const rows = await catalogRows(server.data)
    const claim = (path: string, item = '') =>
      `UPDATE uploads SET item_id = '${item}' WHERE id = '${path.split('/').at(-1)}'`
    const settings = [server.data, 'bucket set', 'default', '--trash-days', '3'] as const
    await runHere(...settings)
    await server.request(`/api/media/${trashed}`, { method: 'DELETE' })
    await rows.change(`INSERT INTO tombstones (id) VALUES ('${buried}'), ('${trashed}');
      ${claim(first, claimed)}; ${claim(second, expired)}`)
    expect((await tus.sendChunk(first, 0, 'abcd')).status).toBe(404)
    expect((await tus.terminate(first)).status).toBe(404)
    await server.stop()

    const { authorization } = { authorization: `Bearer ${server.token}` }
    for (const round of [1, 2]) {
      await using later = await startServer(onDisk, server.data)
      await later.request(`/api/trash/restore`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify({ ids: [trashed] }),
      })
      expect(await bytesOf(later, items)).toEqual(['a', 'b', 'c', 'd'])
      await later.stop()
      if (round === 1) await rows.change('UPDATE uploads SET expires_at = 1')
    }
    await rows.change(`INSERT INTO tombstones (id) VALUES ('${claimed}')`)
    await using last = await startServer(onDisk, server.data)
    const found = { 'tombstone-wrong': [3, 0] }
    expect(await fsckHere(server.data)).toMatchObject({ code: 1, found })
    expect(await fsckHere(server.data, '--repair')).toMatchObject({
      code: 0,
      found: { 'tombstone-wrong': [3, 3] },
    })
    expect(await fsckHere(server.data)).toMatchObject({ code: 0, found: {} })
    expect(await bytesOf(last, items)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('F12 fsck ends an unfinished upload with the id of an item, and keeps the bytes of the item', async () => {
    await using server = await startServer(onDisk)
    const tus = tusOf(server)
    const path = await tus.createWithLength(2)
    await tus.sendChunk(path, 0, 'ab')
    await server.stop()
    const rows = await catalogRows(server.data)
    await rows.change('UPDATE uploads SET finished = 0')
    const found = await fsckHere(server.data)
    expect(found.found).toMatchObject({ 'upload-wrong': [1, 0] })
    expect(await fsckHere(server.data, '--repair')).toMatchObject({ code: 0 })
    await using later = await startServer(onDisk, server.data)
    const [url = ''] = await listAll(later, `Bearer ${server.token}`)
    expect(await (await fetch(new URL(new URL(url).pathname, later.url))).text()).toBe('ab')
  })
})

/** Runs fsck without the capabilities of root, which may read and write everything. */
async function fsckWithoutPrivileges(data: string, ...args: string[]) {
  const env = { ...basics, MEDIABUCKET_DATA: data }
  const command = [process.execPath, bin, 'fsck', '--json', '--grace', '1ms', ...args]
  const { code, stdout } = await promisify(execFile)(
    'setpriv',
    ['--bounding-set=-all', '--inh-caps=-all', ...command],
    { env },
  ).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: { code: number; stdout: string }) => error,
  )
  const { findings } = readReport(JSON.parse(stdout))
  return { code, found: Object.fromEntries(findings.map(({ code, count }) => [code, count])) }
}

test.skipIf(process.getuid?.() !== 0)(
  'F1 fsck passes by lost+found of a file system, and reports what its user can neither read nor move',
  async () => {
    await using server = await startServer(onDisk)
    const kept = await upload(server, 'kept')
    const orphan = await plant(server)
    await server.stop()
    const at = (...path: string[]) => join(server.data, ...path)
    // A volume has the first two at its root.
    for (const place of [at('lost+found'), at('blobs', 'lost+found'), at('blobs', 'zz')]) {
      await mkdir(place, { mode: 0o700 })
      await chown(place, 65_534, 65_534)
    }
    const found = { 'bytes-orphaned': 1, 'entry-unreadable': 1 }
    expect(await fsckWithoutPrivileges(server.data)).toEqual({ code: 1, found })
    expect(await fsckWithoutPrivileges(server.data, '--repair')).toEqual({ code: 1, found })
    const [name = ''] = await readdir(at('lost+found.mediabucket'))
    expect([name, await readdir(at('lost+found'))]).toEqual([expect.stringContaining(orphan.id), []])
    await rmdir(at('blobs', 'zz'))
    expect(await fsckWithoutPrivileges(server.data)).toEqual({ code: 0, found: {} })
    expect(await readFile(blobPath(server, kept.id), 'utf8')).toBe('kept')
  },
)
