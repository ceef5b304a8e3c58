import { expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import type { ItemId } from '../../src/core/ids.ts'
import { createIntentSweep, intentLog } from '../../src/items/blob-deletion.ts'
import { openDiskBlobs } from '../../src/storage/blobs/disk/disk-blobs.ts'
import { readBytes, receiveBytes } from '../storage/blobs/blob-contract.ts'
import { inBlobStore, newItem } from '../storage/catalog/samples.ts'
import { type TemporaryData, temporaryData } from '../uploads/temporary-media.ts'

/** A store that records its intents in the catalog, with this lifetime, and a sweep of it. */
async function sweptStore(data: TemporaryData, lifetime: number) {
  const { catalog, disk } = data
  const blobs = await openDiskBlobs({
    directory: disk.directory,
    intents: intentLog(catalog, lifetime),
  })
  const failures: ItemId[] = []
  const removal = { remove: (id: ItemId) => blobs.remove(id) }
  const sweep = createIntentSweep({
    catalog,
    blobs: { removalsAtOnce: 2, removeInterrupted: (id) => removal.remove(id) },
    onDeletionFailure: (id) => failures.push(id),
  })
  const orphan = async () => {
    const received = await receiveBytes(blobs, Buffer.from('orphan'))
    await blobs.commit([received])
    return received
  }
  const isStored = async (id: ItemId) => (await readBytes(blobs, id)) !== null
  return { blobs, sweep, removal, failures, orphan, isStored }
}

test('S8 the second sweep after the deadline removes bytes without an item, and no item can have their id later', async () => {
  await using data = await temporaryData()
  const { sweep, orphan, isStored } = await sweptStore(data, 0)
  const { id } = await orphan()
  expect([await sweep(), await isStored(id)]).toEqual([0, true])
  expect([await sweep(), await isStored(id)]).toEqual([1, false])
  expect(await data.catalog.listIntents()).toEqual([])
  const bucketId = await data.bucket('default')
  await expect(data.catalog.addItems(bucketId, inBlobStore([newItem({ id })]))).rejects.toThrow()
})

test('S8 bytes of uploads in progress and of items stay, also when the clock is set forward', async () => {
  await using data = await temporaryData()
  const { catalog } = data
  const { blobs, sweep, orphan, isStored } = await sweptStore(data, 60_000)
  const uploading = await orphan()
  expect([await sweep(), await sweep(), await isStored(uploading.id)]).toEqual([0, 0, true])

  // The deadline passes at once, and the upload extends it between two sweeps.
  const { sweep: sweepOther, orphan: other } = await sweptStore(data, 0)
  const extended = await other()
  expect(await sweepOther()).toBe(0)
  await intentLog(catalog, 60_000).record([extended.id])
  expect([await sweepOther(), await sweepOther(), await isStored(extended.id)]).toEqual([0, 0, true])

  const bucketId = await data.bucket('default')
  await catalog.addItems(bucketId, inBlobStore([newItem({ id: uploading.id })]))
  await catalog.addIntents([uploading.id], 0)
  expect([await sweep(), await sweep(), await isStored(uploading.id)]).toEqual([0, 0, true])
  await blobs.close()
})

test('S8 bytes that cannot be removed keep their intent, and a later sweep removes them', async () => {
  await using data = await temporaryData()
  const { blobs, sweep, removal, failures, orphan, isStored } = await sweptStore(data, 0)
  const { id } = await orphan()
  await sweep()
  removal.remove = () => Promise.reject(new Fault('storage-full', 'no'))
  expect([await sweep(), failures, await data.catalog.listIntents()]).toEqual([0, [id], [id]])
  removal.remove = (id) => blobs.remove(id)
  expect([await sweep(), await isStored(id), await data.catalog.listIntents()]).toEqual([1, false, []])
})

test('S8 discarded bytes leave no intent', async () => {
  await using data = await temporaryData()
  const { blobs, orphan, isStored } = await sweptStore(data, 60_000)
  const received = await orphan()
  expect(await data.catalog.listIntents()).toEqual([received.id])
  await blobs.discard([received])
  expect([await isStored(received.id), await data.catalog.listIntents()]).toEqual([false, []])
})

test('S8, O5 an outage of the store ends the removal of interrupted uploads, which stay for a later sweep', async () => {
  await using data = await temporaryData()
  const { sweep, removal, failures, orphan } = await sweptStore(data, 0)
  for (let count = 0; count < 5; count += 1) await orphan()
  await sweep()
  let attempts = 0
  removal.remove = async () => {
    attempts += 1
    throw new Fault('storage-unavailable', 'later')
  }
  expect([await sweep(), attempts, failures.length]).toEqual([0, 2, 5])
  expect([await sweep(() => true), attempts]).toEqual([0, 2])
  expect((await data.catalog.listIntents()).length).toBe(5)
})
