import { chmod, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { noise, storedVariants, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { runCommand, startServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

// Child processes inherit the most permissive umask.
let umask: number
beforeEach(() => {
  umask = process.umask(0)
})
afterEach(() => {
  process.umask(umask)
})

/** The entries of a directory, and the directory itself, that group or others can access, with their modes. */
async function openToOthers(directory: string): Promise<string[]> {
  const names = ['', ...(await readdir(directory, { recursive: true }))]
  const modes = await Promise.all(
    names.map(async (name) => {
      const { mode } = await stat(join(directory, name))
      return (mode & 0o077) === 0 ? [] : [`${name} ${(mode & 0o777).toString(8)}`]
    }),
  )
  return modes.flat()
}

test('S1 all files and directories are accessible only to their owner, with any umask', async () => {
  await using directory = await temporaryDirectory()
  await chmod(directory.path, 0o777)
  const data = join(directory.path, 'data')
  const backup = join(directory.path, 'backup')
  const restored = join(directory.path, 'restored')
  await using server = await startServer({}, data)
  const { id } = await uploadPicture(server, noise(1000).jpeg().toBuffer(), 'image/jpeg')
  await upload(server, 'x'.repeat(100_000))
  for (const variant of ['thumb', 'medium'])
    expect((await fetch(variantUrl(server, id, variant))).status).toBe(200)
  await until('the variants are stored', () =>
    Object.values(storedVariants(server)).every((names) => names.length === 1),
  )
  const tus = tusOf(server)
  await tus.sendChunk(await tus.createWithLength(100), 0, 'x')
  await server.command('fsck', '--repair')
  await server.command('backup', backup)
  expect(await openToOthers(data)).toEqual([])
  await server.stop()
  await runCommand(['restore', backup], { MEDIABUCKET_DATA: restored })
  for (const path of [data, backup, restored]) expect(await openToOthers(path)).toEqual([])
})

test('S1 a start warns about files in the data directory that other users can read', async () => {
  await using server = await startServer()
  await server.stop()
  await chmod(join(server.data, 'catalog.db'), 0o644)
  await using later = await startServer({}, server.data)
  expect(later.log().find(({ msg }) => /chmod/.test(msg))).toMatchObject({ exposed: ['catalog.db'] })
})
