import { expect, test } from 'vitest'
import { service } from '../../../src/core/actor.ts'
import { purgeExpiredTrash } from '../../../src/media/deletion/trash.ts'
import { findByNameOperation } from '../../../src/media/find-media.ts'
import { temporaryMedia } from '../temporary-media.ts'

test('Z1, Z5 a trashed item is not served, and its bytes stay until it has expired', async () => {
  await using media = await temporaryMedia()
  const item = await media.store('text')
  const kept = await media.store('kept')
  const [bucket] = await media.catalog.buckets()
  await media.catalog.setBucket(bucket?.name ?? '', { trashDays: 1 })
  await media.catalog.removeMedia(item.bucketId, [item.id], service, 0)
  const findByName = findByNameOperation(media)
  expect(await findByName(item.id)).toBeNull()
  const day = 24 * 60 * 60 * 1000
  const purge = (now: number) =>
    purgeExpiredTrash({
      catalog: media.catalog,
      blobDeletion: {
        ...media,
        onDeletionFailure: (_id, error) => {
          throw error
        },
      },
      now: () => now,
    })
  const before = await media.disk.stored()
  await purge(day - 1)
  expect(await media.disk.stored()).toEqual(before)
  expect(await media.catalog.media(item.id)).not.toBeNull()
  // Two servers at once.
  await Promise.all([purge(day), purge(day)])
  expect(await media.disk.stored()).toHaveLength(before.length - 1)
  expect([await media.catalog.media(item.id), await media.catalog.tombstones()]).toEqual([null, []])
  expect((await findByName(kept.id))?.id).toBe(kept.id)
})
