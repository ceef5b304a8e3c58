import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newItemId } from '../../packages/server/src/core/ids.ts'
import { openVariantRows } from '../../packages/server/src/storage/blobs/disk/variant-database.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters, storedVariants, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { fsck } from '../harness/upkeep.ts'

const variantsOf = (server: TestServer, id: string) => join(server.data, 'variants', id.slice(0, 2))

async function withThumb(server: TestServer) {
  const item = await uploadPicture(server, quarters(60, 40).png().toBuffer(), 'image/png')
  const response = await fetch(variantUrl(server, item.id))
  const thumb = Buffer.from(await response.arrayBuffer())
  await until('the variant is stored', () => storedVariants(server).rows.length === 1)
  return { ...item, thumb }
}

test('V9, F1 fsck moves orphaned variants, also while a server is running, and leaves those of items', async () => {
  await using server = await startServer()
  const { id } = await withThumb(server)
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })

  const [file, row] = [newItemId(), newItemId()]
  await mkdir(variantsOf(server, file), { recursive: true })
  await writeFile(join(variantsOf(server, file), `${file}.thumb-1`), 'left behind')
  const rows = openVariantRows(server.data)
  rows.store(`${row}.thumb-1`, Buffer.from('left behind'))
  rows.close()
  expect(await fsck(server.data)).toMatchObject({ code: 1, found: { 'variant-orphaned': [2, 0] } })
  expect(await fsck(server.data, '--repair')).toMatchObject({
    code: 0,
    found: { 'variant-orphaned': [2, 2] },
  })
  const lost = await readdir(join(server.data, 'lost+found'))
  expect(lost.map((name) => name.split('.', 3).join('.')).sort()).toEqual(
    [file, row].map((orphan) => `variant.${orphan}.thumb-1`).sort(),
  )
  for (const name of lost)
    expect(await readFile(join(server.data, 'lost+found', name), 'utf8')).toBe('left behind')
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })
  expect(storedVariants(server)).toEqual({ rows: [`${id}.thumb-3`], files: [] })
})

test('V9, F1 fsck moves a variants.db that is not a database, and the next start creates another one', async () => {
  await using server = await startServer()
  const { id, thumb } = await withThumb(server)
  await server.stop()
  await writeFile(join(server.data, 'variants.db'), 'not a database')
  expect(await fsck(server.data)).toMatchObject({ code: 1, found: { 'entry-foreign': [1, 0] } })
  expect(await fsck(server.data, '--repair')).toMatchObject({ code: 0, found: { 'entry-foreign': [1, 1] } })
  await using later = await startServer({}, server.data)
  const response = await fetch(variantUrl(later, id))
  expect(Buffer.from(await response.arrayBuffer())).toEqual(thumb)
})

test('bucket delete removes the variants of its items beside a running server', async () => {
  await using server = await startServer()
  await withThumb(server)
  await server.command('bucket', 'delete', 'default', '--yes')
  expect(storedVariants(server)).toEqual({ rows: [], files: [] })
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })
})

test('V9, F7, F8 backups contain no variants; they are generated again after a restore', async () => {
  await using directory = await temporaryDirectory()
  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  await using server = await startServer()
  const { id, thumb } = await withThumb(server)
  await server.command('backup', to)
  expect((await readdir(to)).filter((name) => name.includes('variants'))).toEqual([])
  await runCommand(['restore', to], { MEDIABUCKET_DATA: data })
  await using later = await startServer({}, data)
  const response = await fetch(variantUrl(later, id))
  expect([response.status, Buffer.from(await response.arrayBuffer())]).toEqual([200, thumb])
})
