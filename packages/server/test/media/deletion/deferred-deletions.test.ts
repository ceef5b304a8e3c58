import { expect, test } from 'vitest'
import { service } from '../../../src/core/actor.ts'
import { createDeferredDeletions } from '../../../src/media/deletion/deferred-deletions.ts'
import { createMediaRemover } from '../../../src/media/deletion/remove-media.ts'
import { recover } from '../../../src/media/recover.ts'
import { temporaryMedia } from '../temporary-media.ts'

test('F6 the bytes of items deleted during a backup are removed after it', async () => {
  await using media = await temporaryMedia()
  const item = await media.store('text')
  let isBackupRunning = true
  const parts = {
    ...media,
    isBackupRunning: () => isBackupRunning,
    onDeletionFailure: () => undefined,
    onHoldFailure: () => undefined,
  }
  const held = createDeferredDeletions(parts)
  const { remove, settled } = createMediaRemover({ ...parts, isBackupRunning: held.isBackupRunning })
  await remove(item.bucketId, item.id, service)
  await settled()
  await held.retry()
  expect([await media.disk.stored(), await media.catalog.tombstones()]).toEqual([
    [expect.any(String)],
    [item.id],
  ])
  isBackupRunning = false
  await held.retry()
  expect([await media.disk.stored(), await media.catalog.tombstones()]).toEqual([[], []])
})

test('F6 a start during a backup keeps deleted bytes until the backup ends', async () => {
  await using media = await temporaryMedia()
  const item = await media.store('text')
  await media.catalog.removeMedia(item.bucketId, [item.id])
  let isBackupRunning = true
  const held = createDeferredDeletions({
    ...media,
    isBackupRunning: () => isBackupRunning,
    onDeletionFailure: () => undefined,
    onHoldFailure: () => undefined,
  })
  expect(await recover({ ...media, isBackupRunning: held.isBackupRunning })).toMatchObject({
    tombstones: 0,
    leftovers: [],
  })
  expect(await media.disk.stored()).toHaveLength(1)
  isBackupRunning = false
  await held.retry()
  expect(await media.disk.stored()).toEqual([])
})

test('S3 a failed check for a backup counts as a running backup, and is reported once a minute', async () => {
  await using media = await temporaryMedia()
  const failures: unknown[] = []
  const planted = new Error('planted')
  let time = 0
  const held = createDeferredDeletions({
    ...media,
    isBackupRunning: () => {
      throw planted
    },
    onDeletionFailure: () => undefined,
    onHoldFailure: (error) => failures.push(error),
    now: () => time,
  })
  for (const at of [0, 1_000, 59_999, 60_000, 61_000]) {
    time = at
    expect(held.isBackupRunning()).toBe(true)
  }
  expect(failures).toEqual([planted, planted])
})
