import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newMediaId } from '../../packages/server/src/core/media-id.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { quarters, uploadPicture, variantUrl } from '../harness/pictures.ts'
import { runCommand, startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { fsck } from '../harness/upkeep.ts'

const variantsOf = (server: TestServer, id: string) => join(server.data, 'variants', id.slice(0, 2))

async function withThumb(server: TestServer) {
  const item = await uploadPicture(server, quarters(60, 40).png().toBuffer(), 'image/png')
  const answer = await fetch(variantUrl(server, item.id))
  const thumb = Buffer.from(await answer.arrayBuffer())
  await until('it is kept', () => readdir(variantsOf(server, item.id)).catch(() => null))
  return { ...item, thumb }
}

test('V9, F1 fsck moves orphaned variants, also while a server is running, and leaves those of items', async () => {
  await using server = await startServer()
  const { id } = await withThumb(server)
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })

  const orphan = newMediaId()
  await mkdir(variantsOf(server, orphan), { recursive: true })
  await writeFile(join(variantsOf(server, orphan), `${orphan}.thumb-1`), 'left behind')
  expect(await fsck(server.data)).toMatchObject({ code: 1, found: { 'variant-orphaned': [1, 0] } })
  expect(await fsck(server.data, '--repair')).toMatchObject({
    code: 0,
    found: { 'variant-orphaned': [1, 1] },
  })
  expect(await readdir(join(server.data, 'lost+found'))).toEqual([
    expect.stringMatching(`^variant.${orphan}.thumb-1.`),
  ])
  expect(await fsck(server.data)).toMatchObject({ code: 0, found: {} })
  expect(await readdir(variantsOf(server, id))).toEqual([`${id}.thumb-1`])
})

test('V9, F7, F8 backups contain no variants; they are generated again after a restore', async () => {
  await using directory = await temporaryDirectory()
  const [to, data] = [join(directory.path, 'backup'), join(directory.path, 'data')]
  await using server = await startServer()
  const { id, thumb } = await withThumb(server)
  await server.command('backup', to)
  expect(await readdir(to)).not.toContain('variants')
  await runCommand(['restore', to], { MEDIABUCKET_DATA: data })
  await using later = await startServer({}, data)
  const answer = await fetch(variantUrl(later, id))
  expect([answer.status, Buffer.from(await answer.arrayBuffer())]).toEqual([200, thumb])
})
