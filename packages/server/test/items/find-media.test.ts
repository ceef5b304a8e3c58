import { expect, test } from 'vitest'
import { newItemId } from '../../src/core/ids.ts'
import { service } from '../../src/core/token-rules.ts'
import { findByNameOperation, findItem } from '../../src/items/item-operations.ts'
import { storeOperations } from '../../src/uploads/commit.ts'
import { file, incoming, temporaryData } from '../uploads/temporary-media.ts'

const unknown = { code: 'media-unknown', message: 'There is no such item.' }

test('A6, M3: an id that is unknown, deleted, malformed or of another bucket gives the same fault', async () => {
  await using data = await temporaryData()
  const item = await data.store('text')
  expect(await findItem(data.catalog, item.bucketId, item.id)).toMatchObject({ id: item.id, size: 4 })
  const deleted = await data.store('text')
  await data.catalog.removeItems(deleted.bucketId, [deleted.id])
  await expect(findItem(data.catalog, await data.bucket('other'), item.id)).rejects.toMatchObject(unknown)
  for (const id of [
    newItemId(),
    deleted.id,
    '',
    '../x',
    `${item.id}\0`,
    item.id.toUpperCase(),
    `${item.id}.txt`,
  ])
    await expect(findItem(data.catalog, item.bucketId, id)).rejects.toMatchObject(unknown)
})

test('B1, B7: an item is found only by its id, with or without its own extension', async () => {
  await using data = await temporaryData()
  const { storeItems } = storeOperations({ ...data, maxFileSize: 100, now: Date.now })
  const { items: stored } = await storeItems(
    { bucketId: await data.bucket('default'), removesMetadata: false, limits: null },
    incoming(file(Buffer.from('%PDF-1.7')), file(Buffer.from('?'))),
    { by: service },
  )
  const [item, plain] = stored
  const find = findByNameOperation(data)
  expect(await find(`${item?.id}`)).toMatchObject({ id: item?.id })
  expect(await find(`${item?.id}.pdf`)).toMatchObject({ id: item?.id, extension: 'pdf' })
  expect(await find(`${plain?.id}`)).toMatchObject({ id: plain?.id, extension: null })
  for (const suffix of ['.', '.PDF', '.png', '.pdf.pdf', '.pdf/', '/.pdf', '%00', '\0', ' ', '.null'])
    for (const id of [item?.id, plain?.id, newItemId()]) expect(await find(`${id}${suffix}`)).toBeNull()
  for (const name of ['', '.', '..', '.pdf', 'x'.repeat(100_000)]) expect(await find(name)).toBeNull()
})
