import { appendFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { newMediaId } from '../../src/core/media-id.ts'
import { openBytesOperation } from '../../src/media/open-bytes.ts'
import { temporaryMedia } from './temporary-media.ts'

test('B1: the bytes of an item are opened', async () => {
  await using media = await temporaryMedia()
  const item = await media.store('some text')
  const blob = await openBytesOperation(media)(item)
  expect((await buffer(blob.stream(0, blob.size - 1))).toString()).toBe('some text')
})

test('B9: bytes of the wrong size are not served, and their file is closed', async () => {
  await using media = await temporaryMedia()
  const item = await media.store('some text')
  for (const path of await media.disk.stored()) await appendFile(path, '!')
  await expect(openBytesOperation(media)(item)).rejects.toMatchObject({ code: 'bytes-missing' })
  expect(media.disk.openFiles()).toEqual([])
})

test('B9: missing bytes of a listed item are a fault', async () => {
  await using media = await temporaryMedia()
  const item = await media.store('some text')
  await media.blobs.remove(item.id)
  await expect(openBytesOperation(media)(item)).rejects.toMatchObject({ code: 'bytes-missing' })
})

test('M2: missing bytes of an item that was just deleted are media-unknown', async () => {
  await using media = await temporaryMedia()
  const item = await media.store('some text')
  await media.catalog.removeMedia(item.bucketId, item.id)
  await media.blobs.remove(item.id)
  await expect(openBytesOperation(media)(item)).rejects.toMatchObject({ code: 'media-unknown' })
})

test('B9: an item that was seeded without bytes has missing bytes', async () => {
  await using media = await temporaryMedia()
  const bucketId = await media.bucket('default')
  const seeded = {
    id: newMediaId(),
    filename: null,
    contentType: 'image/png',
    extension: 'png',
    size: 10,
    sha256: null,
    width: null,
    height: null,
    createdAt: 0,
  }
  await media.catalog.addMedia(bucketId, [seeded])
  const item = { ...seeded, bucketId, isDamaged: false }
  await expect(openBytesOperation(media)(item)).rejects.toMatchObject({
    code: 'bytes-missing',
  })
})
