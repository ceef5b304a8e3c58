import { expect, test } from 'vitest'
import { service } from '../../src/core/actor.ts'
import { newMediaId } from '../../src/core/media-id.ts'
import { findByNameOperation, findMedia } from '../../src/media/find-media.ts'
import { storeMediaOperation } from '../../src/media/store-media.ts'
import { file, incoming, temporaryMedia } from './temporary-media.ts'

const unknown = { code: 'media-unknown', message: 'There is no such item.' }

test('A6, M3: an id that is unknown, deleted, malformed or of another bucket gives the same fault', async () => {
  await using media = await temporaryMedia()
  const item = await media.store('text')
  expect(await findMedia(media.catalog, item.bucketId, item.id)).toMatchObject({ id: item.id, size: 4 })
  const deleted = await media.store('text')
  await media.catalog.removeMedia(deleted.bucketId, [deleted.id])
  await expect(findMedia(media.catalog, await media.bucket('other'), item.id)).rejects.toMatchObject(unknown)
  for (const id of [
    newMediaId(),
    deleted.id,
    '',
    '../x',
    `${item.id}\0`,
    item.id.toUpperCase(),
    `${item.id}.txt`,
  ])
    await expect(findMedia(media.catalog, item.bucketId, id)).rejects.toMatchObject(unknown)
})

test('B1, B7: an item is found only by its id, with or without its own extension', async () => {
  await using media = await temporaryMedia()
  const storeMedia = storeMediaOperation({ ...media, maxFileSize: 100, now: Date.now })
  const { media: stored } = await storeMedia(
    { bucketId: await media.bucket('default'), removesMetadata: false },
    incoming(file(Buffer.from('%PDF-1.7')), file(Buffer.from('?'))),
    { by: service },
  )
  const [item, plain] = stored
  const find = findByNameOperation(media)
  expect(await find(`${item?.id}`)).toMatchObject({ id: item?.id })
  expect(await find(`${item?.id}.pdf`)).toMatchObject({ id: item?.id, extension: 'pdf' })
  expect(await find(`${plain?.id}`)).toMatchObject({ id: plain?.id, extension: null })
  for (const suffix of ['.', '.PDF', '.png', '.pdf.pdf', '.pdf/', '/.pdf', '%00', '\0', ' ', '.null'])
    for (const id of [item?.id, plain?.id, newMediaId()]) expect(await find(`${id}${suffix}`)).toBeNull()
  for (const name of ['', '.', '..', '.pdf', 'x'.repeat(100_000)]) expect(await find(name)).toBeNull()
})
