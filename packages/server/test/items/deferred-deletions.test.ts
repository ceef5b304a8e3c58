import { expect, test } from 'vitest'
import { service } from '../../src/core/token-rules.ts'
import { createDeferredDeletions } from '../../src/items/blob-deletion.ts'
import { ItemRemover } from '../../src/items/deletion.ts'
import { recover } from '../../src/upkeep/recovery.ts'
import { temporaryData } from '../uploads/temporary-media.ts'

test('F6 the bytes of items deleted during a backup are removed after it', async () => {
  await using data = await temporaryData()
  const item = await data.store('text')
  let isBackupRunning = true
  const parts = {
    ...data,
    isBackupRunning: () => isBackupRunning,
    onDeletionFailure: () => undefined,
    onHoldFailure: () => undefined,
  }
  const held = createDeferredDeletions(parts)
  const remover = new ItemRemover({ ...parts, isBackupRunning: held.isBackupRunning })
  await remover.remove(item.bucketId, item.id, service)
  await remover.idle()
  await held.retry()
  expect([await data.disk.stored(), await data.catalog.listTombstones()]).toEqual([
    [expect.any(String)],
    [item.id],
  ])
  isBackupRunning = false
  await held.retry()
  expect([await data.disk.stored(), await data.catalog.listTombstones()]).toEqual([[], []])
})

test('F6 a start during a backup keeps deleted bytes until the backup ends', async () => {
  await using data = await temporaryData()
  const item = await data.store('text')
  await data.catalog.removeItems(item.bucketId, [item.id])
  let isBackupRunning = true
  const held = createDeferredDeletions({
    ...data,
    isBackupRunning: () => isBackupRunning,
    onDeletionFailure: () => undefined,
    onHoldFailure: () => undefined,
  })
  expect(await recover({ ...data, isBackupRunning: held.isBackupRunning })).toMatchObject({
    tombstones: 0,
    leftovers: [],
  })
  expect(await data.disk.stored()).toHaveLength(1)
  isBackupRunning = false
  await held.retry()
  expect(await data.disk.stored()).toEqual([])
})

test('S3 a failed check for a backup counts as a running backup, and is reported once a minute', async () => {
  await using data = await temporaryData()
  const failures: unknown[] = []
  const planted = new Error('planted')
  let time = 0
  const held = createDeferredDeletions({
    ...data,
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
