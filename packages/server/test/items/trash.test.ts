import { expect, test } from 'vitest'
import { isItemId } from '../../src/core/ids.ts'
import { service } from '../../src/core/tokens.ts'
import { findByNameOperation } from '../../src/items/items.ts'
import { purgeExpiredTrash, trashOperations } from '../../src/items/trash.ts'
import { newItem, withBytes } from '../storage/catalog/samples.ts'
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

test('Z2, Z4 a list of the trash that ends early continues after the examined items, and the trash is emptied past them', async () => {
  await using data = await temporaryData()
  const { bucketId } = await data.store('text')
  const [bucket] = await data.catalog.buckets()
  await data.catalog.setBucket(bucket?.name ?? '', { trashDays: 1 })
  const items = Array.from({ length: 12 }, () => newItem())
  await data.catalog.addItems(bucketId, items.map(withBytes))
  const ids = items.map(({ id }) => id)
  await data.catalog.removeItems(bucketId, ids, service)
  // Each read examines three items, of which only the first and the last ones have not expired.
  const live = new Set([ids[11], ids[1], ids[0]])
  const catalog = {
    ...data.catalog,
    async trash(id: typeof bucketId, after: number | null, limit: number) {
      const { rows } = await data.catalog.trash(id, after, 4)
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
    after = await listTrash(bucketId, { after, limit: 5 }, { add, pause: async () => undefined })
    parts.push(part)
    if (after === null) break
  }
  expect(parts).toEqual([[ids[11]], [], [], [ids[1], ids[0]]])
  expect(await emptyTrash(bucketId, service)).toBe(3)
})

test('Z5 a bucket whose expired items cannot be purged does not keep those of others', async () => {
  await using data = await temporaryData()
  const buckets = [await data.bucket('broken'), await data.bucket('whole')]
  const [broken] = buckets
  for (const name of ['broken', 'whole']) await data.catalog.setBucket(name, { trashDays: 1 })
  for (const [index, bucketId] of buckets.entries()) {
    const item = newItem()
    await data.catalog.addItems(bucketId, [withBytes(item)])
    await data.catalog.removeItems(bucketId, [item.id], service, index)
  }
  // The broken bucket has enough of them for a step.
  const many = Array.from({ length: 120 }, () => newItem())
  await data.catalog.addItems(broken ?? expect.unreachable(), many.map(withBytes))
  const ids = many.map(({ id }) => id)
  await data.catalog.removeItems(broken ?? expect.unreachable(), ids, service, 0)
  const now = 2 * 24 * 60 * 60 * 1000
  const purge = purgeExpiredTrash({
    catalog: {
      ...data.catalog,
      async purgeItems(bucketId, wanted, by) {
        if (bucketId === broken) throw new Error('broken')
        return data.catalog.purgeItems(bucketId, wanted, by)
      },
    },
    blobDeletion: { ...data, onDeletionFailure: () => expect.unreachable() },
    now: () => now,
  })
  await expect(purge).rejects.toThrow('broken')
  const left = await data.catalog.expiredTrash(now, 500)
  expect([left.length, new Set(left.map(({ bucketId }) => bucketId))]).toEqual([121, new Set([broken])])
})
