import { expect, test } from 'vitest'
import { service } from '../../src/core/tokens.ts'
import { findByNameOperation } from '../../src/items/items.ts'
import { purgeExpiredTrash } from '../../src/items/trash.ts'
import { temporaryData } from '../uploads/temporary-media.ts'

test('Z1, Z5 a trashed item is not served, and its bytes stay until it has expired', async () => {
  await using data = await temporaryData()
  const item = await data.store('text')
  const kept = await data.store('kept')
  const [bucket] = await data.catalog.buckets()
  await data.catalog.setBucket(bucket?.name ?? '', { trashDays: 1 })
  await data.catalog.removeItems(item.bucketId, [item.id], service, 0)
  const findByName = findByNameOperation(data)
  expect(await findByName(item.id)).toBeNull()
  const day = 24 * 60 * 60 * 1000
  const purge = (now: number) =>
    purgeExpiredTrash({
      catalog: data.catalog,
      blobDeletion: {
        ...data,
        onDeletionFailure: (_id, error) => {
          throw error
        },
      },
      now: () => now,
    })
  const before = await data.disk.stored()
  await purge(day - 1)
  expect(await data.disk.stored()).toEqual(before)
  expect(await data.catalog.item(item.id)).not.toBeNull()
  // Two servers at once.
  await Promise.all([purge(day), purge(day)])
  expect(await data.disk.stored()).toHaveLength(before.length - 1)
  expect([await data.catalog.item(item.id), await data.catalog.tombstones()]).toEqual([null, []])
  expect((await findByName(kept.id))?.id).toBe(kept.id)
})
