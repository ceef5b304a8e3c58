import { expect, test } from 'vitest'
import { noise } from '../../../../test/harness/pictures.ts'
import { createItemIds } from '../../src/core/ids.ts'
import { received } from '../../src/storage/blobs/received-file.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'
import { newItem } from '../../src/uploads/new-items.ts'

test('X3 a file with the structure of TIFF is stored as it is sent if its name is that of a RAW file, and only then', async () => {
  const bytes = await noise(16).tiff().toBuffer()
  const removedFrom = async (filename: string) => {
    let isRemoved = false
    const file = received(Uint8Array.from(bytes))
    const id = createItemIds(Date.now)()
    const given = { id, createdAt: 0, expiresAt: null }
    const parts = {
      blobs: { peek: () => Promise.reject(new Error('the bytes are in memory')) },
      measurePicture: async () => null,
      readTaken: () => null,
      removeMetadata: async () => {
        isRemoved = true
        return { stored: file, reading: null }
      },
    }
    const bucket = { bucketId: 1 as BucketId, removesMetadata: true, limits: null }
    await newItem(parts, file, bucket, { filename, declaredType: null }, given)
    return isRemoved
  }
  expect([await removedFrom('a.SRW'), await removedFrom('a.tif'), await removedFrom('srw')]).toEqual([
    false,
    true,
    true,
  ])
})
