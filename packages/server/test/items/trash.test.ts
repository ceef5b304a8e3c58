import { expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { isItemId } from '../../src/core/ids.ts'
import { service } from '../../src/core/token-rules.ts'
import { findByNameOperation } from '../../src/items/item-operations.ts'
import { purgeExpiredTrash, trashOperations } from '../../src/items/trash-operations.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'
import { newItem, withBytes } from '../storage/catalog/samples.ts'
import { type TemporaryData, temporaryData } from '../uploads/temporary-media.ts'

const day = 24 * 60 * 60 * 1000

test('Z1, Z5 a trashed item is not served, and its bytes stay until it has expired', async () => {
  await using data = await temporaryData()
  const item = await data.store('text')
  const kept = await data.store('kept')
  const [bucket] = await data.catalog.listBuckets()
  await data.catalog.setBucket(bucket?.name ?? '', { trashDays: 1 })
  await data.catalog.removeItems(item.bucketId, [item.id], service, 0)
  const findByName = findByNameOperation(data)
  expect(await findByName(item.id)).toBeNull()
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
      isStopping: () => false,
      onFailure: (_, error) => {
        throw error
      },
    })
  const before = await data.disk.stored()
  await purge(day - 1)
  expect(await data.disk.stored()).toEqual(before)
  expect(await data.catalog.item(item.id)).not.toBeNull()
  // Two servers at once.
  await Promise.all([purge(day), purge(day)])
  expect(await data.disk.stored()).toHaveLength(before.length - 1)
  expect([await data.catalog.item(item.id), await data.catalog.listTombstones()]).toEqual([null, []])
  expect((await findByName(kept.id))?.id).toBe(kept.id)
})

test('Z2, Z4 a list of the trash that ends early continues after the examined items, and the trash is emptied past them', async () => {
  await using data = await temporaryData()
  const { bucketId } = await data.store('text')
  const [bucket] = await data.catalog.listBuckets()
  await data.catalog.setBucket(bucket?.name ?? '', { trashDays: 1 })
  const items = Array.from({ length: 12 }, () => newItem())
  await data.catalog.addItems(bucketId, items.map(withBytes))
  const ids = items.map(({ id }) => id)
  await data.catalog.removeItems(bucketId, ids, service)
  // Each read examines three items, of which only the first and the last ones have not expired.
  const live = new Set([ids[11], ids[1], ids[0]])
  const catalog = {
    ...data.catalog,
    async listTrash(id: typeof bucketId, after: number | null, limit: number) {
      const { rows } = await data.catalog.listTrash(id, after, 4)
      const examined = rows.slice(0, 3)
      const shown = examined.filter(({ item }) => live.has(item.id)).slice(0, limit)
      return { rows: shown, examined: rows.length > 3 ? (examined.at(-1)?.seq ?? null) : null }
    },
  }
  const { listTrash, emptyTrash } = trashOperations({
    catalog,
    async purge(_, wanted) {
      const removed = await data.catalog.purgeItems(bucketId, wanted.filter(isItemId), service)
      return { deleted: removed.ids, missing: [] }
    },
  })
  const parts: string[][] = []
  for (let after: string | null = null; ; ) {
    const part: string[] = []
    const add = async (read: readonly { readonly item: { readonly id: string } }[]) =>
      part.push(...read.map(({ item }) => item.id)) && read.length
    const sink = { add, bytes: 0, pause: async () => undefined }
    after = await listTrash(bucketId, { after, limit: 5 }, sink)
    parts.push(part)
    if (after === null) break
  }
  expect(parts).toEqual([[ids[11]], [], [], [ids[1], ids[0]]])
  expect(await emptyTrash(bucketId, service)).toBe(3)
})

/** Buckets, each with so many expired items of its trash that one step does not remove all. */
async function expiredBuckets(data: TemporaryData, ...names: string[]): Promise<BucketId[]> {
  const buckets: BucketId[] = []
  for (const name of names) {
    const bucketId = await data.bucket(name)
    await data.catalog.setBucket(name, { trashDays: 1 })
    const items = Array.from({ length: 120 }, () => newItem())
    await data.catalog.addItems(bucketId, items.map(withBytes))
    const ids = items.map(({ id }) => id)
    await data.catalog.removeItems(bucketId, ids, service, 0)
    buckets.push(bucketId)
  }
  return buckets
}

/** The sweep of the trash of these buckets, with turns of one step; `before` runs before each step. */
function sweepTrash(data: TemporaryData, before: (bucketId: BucketId) => void, isStopping = () => false) {
  const failed: BucketId[] = []
  const catalog: Catalog = {
    ...data.catalog,
    async purgeItems(bucketId, wanted, by) {
      before(bucketId)
      return data.catalog.purgeItems(bucketId, wanted, by)
    },
  }
  const swept = purgeExpiredTrash({
    catalog,
    blobDeletion: { ...data, onDeletionFailure: () => expect.unreachable() },
    now: () => 2 * day,
    turn: 0,
    isStopping,
    onFailure: (bucketId) => failed.push(bucketId),
  })
  return { swept, failed, left: () => data.catalog.expiringTrashes(2 * day) }
}

test('Z5 the trashes of buckets are purged in turns, and one that fails does not keep the others', async () => {
  await using data = await temporaryData()
  const buckets = await expiredBuckets(data, 'broken', 'a', 'b', 'c', 'd', 'e')
  const steps: BucketId[] = []
  const { swept, failed, left } = sweepTrash(data, (bucketId) => {
    steps.push(bucketId)
    if (bucketId === buckets[0]) throw new Error('broken')
  })
  await swept
  expect([failed, await left()]).toEqual([buckets.slice(0, 1), buckets.slice(0, 1)])
  // Each has a turn before any has a second one.
  expect(new Set(steps.slice(0, buckets.length))).toEqual(new Set(buckets))
  expect(steps).toHaveLength(11)
})

test('Z5, O5 an outage ends the sweep of the trash at once, and a stop after the steps in progress', async () => {
  await using data = await temporaryData()
  await expiredBuckets(data, ...Array.from({ length: 12 }, (_, index) => `b${index}`))
  let steps = 0
  const busy = sweepTrash(data, () => {
    steps += 1
    throw new Fault('catalog-busy', 'later')
  })
  await expect(busy.swept).rejects.toThrow()
  expect([steps <= 4, busy.failed, (await busy.left()).length]).toEqual([true, [], 12])
  let isStopping = false
  const stopped = sweepTrash(
    data,
    () => {
      isStopping = true
    },
    () => isStopping,
  )
  await stopped.swept
  expect((await stopped.left()).length).toBe(12)
})
