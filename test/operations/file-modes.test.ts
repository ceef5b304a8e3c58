import { chmod, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { runCommand, startServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

// Child processes inherit it: the most that anybody could be given.
let umask: number
beforeEach(() => {
  umask = process.umask(0)
})
afterEach(() => {
  process.umask(umask)
})

/** Every entry of a directory and the directory itself with its mode, where others have any part in it. */
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

test('S1 all files and directories are for their owner alone, whatever the umask', async () => {
  await using directory = await temporaryDirectory()
  await chmod(directory.path, 0o777)
  const data = join(directory.path, 'data')
  const backup = join(directory.path, 'backup')
  const restored = join(directory.path, 'restored')
  await using server = await startServer({}, data)
  const { id } = await uploadPicture(server, quarters(600, 600).jpeg().toBuffer(), 'image/jpeg')
  await upload(server, 'x'.repeat(100_000))
  expect((await fetch(variantUrl(server, id))).status).toBe(200)
  await until('the variant is stored', async () =>
    (await readdir(data, { recursive: true })).some((name) => name.includes('.thumb')),
  )
  const tus = tusOf(server)
  await tus.piece(await tus.beginOf(100), 0, 'x')
  await server.command('fsck', '--repair')
  await server.command('backup', backup)
  expect(await openToOthers(data)).toEqual([])
  await server.stop()
  await runCommand(['restore', backup], { MEDIABUCKET_DATA: restored })
  for (const path of [data, backup, restored]) expect(await openToOthers(path)).toEqual([])
})

test('S1 a start names what other users may read in the data directory', async () => {
  await using server = await startServer()
  await server.stop()
  await chmod(join(server.data, 'catalog.db'), 0o644)
  await using later = await startServer({}, server.data)
  expect(later.log().find(({ msg }) => /chmod/.test(msg))).toMatchObject({ exposed: ['catalog.db'] })
})
