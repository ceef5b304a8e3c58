import { readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { runCommand, startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { outcome } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

test('F7 backup refuses the data directory, its subdirectories and its parents, by any path, and writes nothing', async () => {
  await using directory = await temporaryDirectory()
  await using server = await startServer()
  await upload(server, 'kept')
  const link = join(directory.path, 'link')
  await symlink(server.data, link)
  // The last entry that a start creates.
  const names = await until('catalog.db-ballast exists', async () => {
    const present = await readdir(server.data)
    return present.includes('catalog.db-ballast') && present
  })
  const refused = async (to: string, why: RegExp, data = server.data) =>
    expect(await outcome(['backup', to], data)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(why),
    })
  await refused(server.data, /is the data directory itself/)
  await refused(link, /is the data directory itself/)
  await refused(`${server.data}/blobs/../x`, /is inside the data directory/)
  await refused(join(link, 'x/y'), /is inside the data directory/)
  const inner = join(directory.path, 'inner')
  await symlink(join(server.data, 'blobs'), inner)
  await refused(`${inner}/../x`, /is inside the data directory/)
  await refused(join(server.data, 'x'), /is inside the data directory/, link)
  expect(await readdir(server.data)).toEqual(names)

  const to = join(directory.path, 'backup')
  await server.command('backup', to)
  await runCommand(['restore', to], { MEDIABUCKET_DATA: join(to, 'data') })
  await refused(to, /holds the data directory/, join(to, 'data'))
  // A directory whose name has the same prefix is accepted.
  expect(await outcome(['backup', `${server.data}-backup`], server.data)).toMatchObject({ code: 0 })
  await rm(`${server.data}-backup`, { recursive: true })
})

test('F7 a directory with backups of other data is refused, and accepted for the same data after a restore or a migration', async () => {
  await using directory = await temporaryDirectory()
  const [to, restored, moved] = ['backup', 'restored', 'moved'].map((name) => join(directory.path, name))
  if (!to || !restored || !moved) throw new Error('no directories')
  await using server = await startServer()
  await upload(server, 'kept')
  await server.command('backup', to)
  await server.command('backup', to)
  const marker = await readFile(join(to, 'backup.json'), 'utf8')
  await using other = await startServer()
  expect(await outcome(['backup', to, '--keep', '3'], other.data)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /has backups of the data [0-9a-f]{32}, and those of \S+ are the data [0-9a-f]{32}. Choose another directory/,
    ),
  })
  expect(await readFile(join(to, 'backup.json'), 'utf8')).toBe(marker)

  await runCommand(['restore', to], { MEDIABUCKET_DATA: restored })
  await runCommand(['migrate', '--to', moved], { MEDIABUCKET_DATA: restored })
  await (await startServer({}, moved)).stop()
  expect(await outcome(['backup', to], moved)).toMatchObject({ code: 0 })
  await server.command('backup', to)
})

test('F7 backup reports a directory that cannot be created, and without a terminal prints only its result', async () => {
  await using directory = await temporaryDirectory()
  await using server = await startServer()
  for (let item = 0; item < 10; item++) await upload(server, `${item}`)
  expect(await outcome(['backup', '/proc/mediabucket/backup'], server.data)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('cannot be created'),
  })
  const file = join(directory.path, 'file')
  await writeFile(file, '')
  for (const to of [file, join(file, 'below')]) {
    const { code, stderr } = await outcome(['backup', to], server.data)
    expect([code, stderr]).toEqual([
      1,
      `mediabucket: ${file} is a file, not a directory; choose a directory.\n`,
    ])
  }
  const to = join(directory.path, 'a', 'backup')
  expect(await outcome(['backup', to], server.data)).toMatchObject({ code: 0, stderr: '' })
  expect((await stat(dirname(to))).mode & 0o777).toBe(0o700)
  expect(await outcome(['fsck'], server.data)).toMatchObject({ code: 0, stderr: '' })
  const data = join(directory.path, 'data')
  expect(await outcome(['restore', to], data)).toMatchObject({ code: 0, stderr: '' })
})

test('F7 backup refuses a directory with other files in it, and invalid arguments', async () => {
  await using server = await startServer()
  await using directory = await temporaryDirectory()
  await writeFile(join(directory.path, 'mine.txt'), 'mine')
  expect(await outcome(['backup', directory.path], server.data)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not empty and holds no backup'),
  })
  expect(await outcome(['backup'], server.data)).toMatchObject({ code: 2 })
  expect(await outcome(['backup', ''], server.data)).toMatchObject({ code: 2 })
  expect(await outcome(['restore', 'a', 'b'], server.data)).toMatchObject({ code: 2 })
})
