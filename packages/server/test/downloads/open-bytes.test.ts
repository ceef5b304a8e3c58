import { appendFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { openBytesOperation } from '../../src/downloads/bytes-cache.ts'
import { temporaryData } from '../uploads/temporary-media.ts'

test('B1: the bytes of an item are opened', async () => {
  await using data = await temporaryData()
  const item = await data.store('some text')
  const blob = await openBytesOperation(data)(item)
  expect((await buffer(blob.stream(0, blob.size - 1))).toString()).toBe('some text')
})

test('B9: bytes of the wrong size are not served, and their file is closed', async () => {
  await using data = await temporaryData()
  const item = await data.store('some text')
  for (const path of await data.disk.stored()) await appendFile(path, '!')
  await expect(openBytesOperation(data)(item)).rejects.toMatchObject({ code: 'bytes-missing' })
  expect(data.disk.openFiles()).toEqual([])
})

test('B9: missing bytes of a listed item are a fault', async () => {
  await using data = await temporaryData()
  const item = await data.store('some text')
  await data.blobs.remove(item.id)
  await expect(openBytesOperation(data)(item)).rejects.toMatchObject({ code: 'bytes-missing' })
})

test('M2: missing bytes of an item that was just deleted are media-unknown', async () => {
  await using data = await temporaryData()
  const item = await data.store('some text')
  await data.catalog.removeItems(item.bucketId, [item.id])
  await data.blobs.remove(item.id)
  await expect(openBytesOperation(data)(item)).rejects.toMatchObject({ code: 'media-unknown' })
})

test('B1: bytes in the catalog are opened, in whole and in part', async () => {
  await using data = await temporaryData(undefined, 100)
  const item = await data.store('some text')
  expect(await data.disk.stored()).toEqual([])
  const blob = await openBytesOperation(data)(item)
  expect((await buffer(blob.stream(0, 8))).toString()).toBe('some text')
  const part = Buffer.alloc(4)
  await blob.read(part, 5)
  expect(part.toString()).toBe('text')
  await expect(blob.read(part, 6)).rejects.toThrow('ended before')
  expect(blob.content).toEqual({ type: 'bytes', bytes: new Uint8Array(Buffer.from('some text')) })
})

test('B9: bytes in the catalog that fsck marked as damaged are not served', async () => {
  await using data = await temporaryData(undefined, 100)
  const item = await data.store('some text')
  await expect(openBytesOperation(data)({ ...item, isDamaged: true })).rejects.toMatchObject({
    code: 'bytes-missing',
  })
})

test('B9, M2: bytes that are missing in the catalog are a fault, unless their item was just deleted', async () => {
  await using data = await temporaryData(undefined, 100)
  const item = await data.store('some text')
  const catalog = { ...data.catalog, content: async () => null }
  await expect(openBytesOperation({ ...data, catalog })(item)).rejects.toMatchObject({
    code: 'bytes-missing',
  })
  await data.catalog.removeItems(item.bucketId, [item.id])
  await expect(openBytesOperation(data)(item)).rejects.toMatchObject({ code: 'media-unknown' })
})
