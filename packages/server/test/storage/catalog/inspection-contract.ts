import { describe, expect, onTestFinished, test } from 'vitest'
import { newItemId, newMultipartId } from '../../../src/core/ids.ts'
import { dayOf } from '../../../src/core/times.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { CatalogInspection, CopyableInspection } from '../../../src/storage/catalog/checks/inspection.ts'
import { placeOf } from '../../../src/storage/catalog/lists/item-lists.ts'
import type { ItemPlace, ItemRows, ItemSelection, TokenId } from '../../../src/storage/catalog/records.ts'
import {
  allPages,
  contentOf,
  inBlobStore,
  newBucket,
  newItem,
  newItems,
  newMultipart,
  newPart,
  newToken,
  newUpload,
  withBytes,
} from './samples.ts'

interface Audited {
  readonly catalog: Catalog
  readonly inspection: CatalogInspection
  /** Changes rows with statements of the engine, without the catalog. */
  tamper(
    fault:
      | 'counters'
      | 'ranks'
      | 'names'
      | 'name-keys'
      | 'contents'
      | 'expiry'
      | 'labels'
      | 'feed'
      | 'feed-start'
      | 'feed-early'
      | 'limits'
      | 'usage'
      | 'usage-damaged',
  ): void | Promise<void>
}

interface Copied {
  readonly catalog: Catalog
  readonly inspection: CopyableInspection
  /** A new directory for `snapshot`, and a function that opens the copy in it. */
  copy(): Promise<{
    readonly directory: string
    open(): Promise<{ catalog: Catalog; inspection: CopyableInspection }>
  }>
}

/** The filenames of a list that is read `limit` items at a time, 100 at most. */
async function namesInOrder(
  catalog: Catalog,
  list: Pick<ItemSelection, 'bucketId' | 'order' | 'by' | 'labels'>,
  limit: number,
): Promise<(string | null)[]> {
  const selection = { kind: null, from: null, to: null, name: null, ...list }
  const found: (string | null)[] = []
  for (let after: ItemPlace | null = null; found.length < 100; ) {
    const { rows }: ItemRows = await catalog.items(selection, after, limit)
    found.push(...rows.map(({ item }) => item.filename))
    const last = rows.at(-1)
    if (last === undefined) break
    after = placeOf(selection, last)
  }
  return found
}

/** The behaviour of every catalog engine in checks. */
export function describeAudit(engine: string, fresh: () => Promise<Audited>): void {
  async function open(): Promise<Audited> {
    const opened = await fresh()
    onTestFinished(async () => {
      await opened.inspection.close()
      await opened.catalog.close()
    })
    return opened
  }

  describe(`${engine}: inspection`, () => {
    test('Z6, F1 items in the trash are read with all others, and their counters match', async () => {
      const { catalog, inspection } = await open()
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 1 })
      const items = newItems(150)
      await catalog.addItems(bucketId, items.map(withBytes))
      const trashed = items.filter((_, index) => index % 2 === 0).map(({ id }) => id)
      await catalog.removeItems(bucketId, trashed)
      await catalog.restoreItems(bucketId, trashed.slice(0, 30))
      await catalog.purgeItems(bucketId, trashed.slice(30, 40))
      const found = (await inspection.items(null, 200)).map(({ id }) => id)
      const wanted = items.map(({ id }) => id).filter((id) => !trashed.slice(30, 40).includes(id))
      expect(found.toSorted()).toEqual(wanted.toSorted())
      expect(await inspection.bucketFaults()).toEqual([])
      expect(await inspection.orphanedContents()).toEqual([])
      expect(await inspection.findUnreferenced(wanted.map((id) => id))).toEqual([])
    })

    test('BK11, F1 the counters of a deleted bucket and its trash match after each step of its removal', async () => {
      const { catalog, inspection } = await open()
      await catalog.createBucket('b', { trashDays: 7 }, 1)
      const bucketId = await newBucket(catalog, 'b')
      const items = newItems(7)
      await catalog.addItems(bucketId, inBlobStore(items))
      const trashed = items.slice(0, 5).map(({ id }) => id)
      await catalog.removeItems(bucketId, trashed)
      await catalog.deleteBucket('b', true, 2, { owner: 'owner', lifetime: 30_000 })
      let isDeleted = false
      while (!isDeleted) {
        isDeleted = (await catalog.deleteBucketChunk(bucketId, 2, 3)).isDeleted
        expect(await inspection.bucketFaults()).toEqual([])
      }
    })

    test('M7, F1 the index of labels matches the items after every change, and is built again if it does not', async () => {
      const { catalog, inspection, tamper } = await open()
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 1 })
      const items = Array.from({ length: 40 }, (_, index) =>
        newItem(index % 4 === 0 ? {} : { labels: { album: `${index % 3}`, user: 'ü"' } }),
      )
      await catalog.addItems(bucketId, items.map(withBytes))
      const some = items.map(({ id }) => id).filter((_, index) => index % 2 === 0)
      await catalog.labelItems(bucketId, some, { album: 'x', user: null })
      await catalog.removeItems(bucketId, some)
      await catalog.restoreItems(bucketId, some.slice(0, 10))
      await catalog.purgeItems(bucketId, some.slice(10, 15))
      expect(await inspection.bucketFaults()).toEqual([])
      const keys = () => catalog.listLabels(bucketId, null, { maxKeys: 9, maxValues: 9 })
      const before = await keys()
      await tamper('labels')
      expect((await inspection.bucketFaults()).map(({ what }) => what)).toEqual(['labels'])
      expect((await inspection.recount()).map(({ what }) => what)).toEqual(['labels'])
      expect(await inspection.bucketFaults()).toEqual([])
      expect(await keys()).toEqual(before)
    })

    test('K5, K20 a list by name has each item once, also if another version of Node.js has computed some keys of names', async () => {
      const { catalog, tamper } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const others = Array.from({ length: 40 }, (_, index) => newItem({ filename: `a${index}` }))
      const named = ['b', 'c', 'd', 'e'].map((filename) => newItem({ filename, labels: { k: '1' } }))
      await catalog.addItems(bucketId, [...others, ...named].map(withBytes))
      await tamper('name-keys')
      const start = others.map(({ filename }) => filename)
      for (const order of ['oldest', 'newest'] as const)
        for (const labels of [null, { k: '1' }])
          for (const limit of [1, 3]) {
            const selection = { bucketId, order, by: 'name', labels } as const
            const wanted = [...(labels ? [] : start), 'd', 'c', 'b', 'e']
            const found = await namesInOrder(catalog, selection, limit)
            expect([selection, found]).toEqual([selection, order === 'oldest' ? wanted : wanted.toReversed()])
          }
    })

    test('K20, F1 keys of names that differ from the filenames are found and corrected', async () => {
      const { catalog, inspection, tamper } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const items = ['b', 'c', 'd', 'e', null].map((filename) => newItem({ filename }))
      await catalog.addItems(bucketId, items.map(withBytes))
      expect(await inspection.bucketFaults()).toEqual([])
      await tamper('name-keys')
      expect(await inspection.bucketFaults()).toMatchObject([
        { what: 'names', detail: '3 rows do not match the names of their items' },
      ])
      expect((await inspection.recount()).map(({ what }) => what)).toEqual(['names'])
      expect(await inspection.bucketFaults()).toEqual([])
      const selection = { bucketId, order: 'oldest', by: 'name' } as const
      expect(await namesInOrder(catalog, selection, 2)).toEqual([null, 'b', 'c', 'd', 'e'])
    })

    test('FE2, F1 a revision or a start that contradicts the numbers of the feed is corrected, and changes continue', async () => {
      const { catalog, inspection, tamper } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const add = () => catalog.addItems(bucketId, newItems(1).map(withBytes))
      await add()
      for (const fault of ['feed', 'feed-start', 'feed-early'] as const) {
        await add()
        const last = (await catalog.readChanges(bucketId, 'now', 0))?.next ?? 0
        await tamper(fault)
        expect((await inspection.bucketFaults()).map(({ what }) => what)).toEqual(['feed'])
        expect((await inspection.recount()).map(({ what }) => what)).toEqual(['feed'])
        expect(await inspection.bucketFaults()).toEqual([])
        await add()
        expect((await catalog.readChanges(bucketId, 'now', 0))?.next).toBeGreaterThan(last)
        const first = await catalog.readChanges(bucketId, 'start', 1)
        expect(await catalog.readChanges(bucketId, first?.next ?? 0, 1)).not.toBeNull()
      }
    })

    test('T10, F1 the reservations of each limited token are compared with its uploads', async () => {
      const { catalog, inspection, tamper } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const limits = { maxItems: 9, maxBytes: null, maxFileSize: null, types: null, itemDays: null }
      const ids = ['a', 'c'].map((name) => name as TokenId)
      for (const limitedBy of ids) {
        await catalog.addToken(newToken(limitedBy, { bucket: 'b', limits }))
        await catalog.createUpload(newUpload(bucketId, { limitedBy }))
      }
      expect(await inspection.bucketFaults()).toEqual([])
      // The sums of the bucket stay.
      await tamper('limits')
      expect((await inspection.bucketFaults()).map(({ what }) => what)).toEqual(['reserved', 'reserved'])
      expect(await inspection.recount()).toHaveLength(2)
      expect(await inspection.bucketFaults()).toEqual([])
      for (const id of ids)
        expect((await catalog.findToken(id))?.limits?.reserved).toEqual({ items: 1, bytes: 1_000 })
    })

    test('US7, F1 usage that does not add up to the items and bytes of its bucket is found and corrected', async () => {
      const { catalog, inspection, tamper } = await open()
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 1 })
      const items = newItems(5)
      await catalog.addItems(bucketId, items.map(withBytes))
      const ids = items.map(({ id }) => id)
      await catalog.removeItems(bucketId, ids.slice(2))
      await catalog.purgeItems(bucketId, ids.slice(4))
      const today = dayOf(Date.now())
      const requests = { listRequests: 1, downloadRequests: 0, uploadRequests: 0, otherRequests: 0 }
      await catalog.addUsage([{ bucketId, day: today - 1, downloadedBytes: 7, ...requests }])
      expect(await inspection.bucketFaults()).toEqual([])
      const states = async () =>
        (await catalog.findUsage(bucketId, today - 1, today)).map(({ items, bytes }) => [items, bytes])
      for (const fault of ['usage', 'usage-damaged'] as const) {
        await tamper(fault)
        expect((await inspection.bucketFaults()).map(({ what }) => what)).toEqual(['usage'])
        expect((await inspection.recount()).map(({ what }) => what)).toEqual(['usage'])
        expect(await inspection.bucketFaults()).toEqual([])
        expect((await states()).at(-1)).toEqual([2, 4_000])
        expect((await catalog.findUsage(bucketId, today - 1, today))[0]?.downloadedBytes).toBe(7)
      }
    })

    test('F1 items are read in batches, each once, across buckets and deleted items', async () => {
      const { catalog, inspection } = await open()
      const wanted: string[] = []
      for (const name of ['one', 'two']) {
        const bucketId = await newBucket(catalog, name)
        const items = newItems(7)
        await catalog.addItems(bucketId, inBlobStore(items))
        for (const item of items.slice(2, 4)) await catalog.removeItems(bucketId, [item.id])
        wanted.push(...items.filter((_, index) => index < 2 || index > 3).map(({ id }) => id))
      }
      const seen: string[] = []
      let last: Parameters<CatalogInspection['items']>[0] = null
      for (;;) {
        const items = await inspection.items(last, 3)
        if (items.length === 0) break
        seen.push(...items.map(({ id }) => id))
        last = items.at(-1) ?? null
      }
      expect(seen).toEqual(wanted)
      expect(await inspection.count()).toEqual({ items: 10, bytes: 10_000 })
      expect(await inspection.damage()).toEqual({ details: [], rows: [], bytes: [] })
    })

    test('F1, MU7 parts of unfinished uploads are read in batches, each once', async () => {
      const { catalog, inspection } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const wanted: string[] = []
      for (const numbers of [[2], [], [1, 7, 10_000], [3]]) {
        const upload = newMultipart({ id: newMultipartId(1_790_000_000_000 + wanted.length) })
        await catalog.createMultipart(bucketId, upload)
        for (const number of numbers.toReversed())
          await catalog.putPart(bucketId, upload.id, newPart(number), 1_800_000_000_000)
        wanted.push(...numbers.map((number) => `${upload.id} ${number}`))
      }
      const seen: string[] = []
      let last: Parameters<CatalogInspection['parts']>[0] = null
      for (;;) {
        const parts = await inspection.parts(last, 2)
        if (parts.length === 0) break
        seen.push(...parts.map(({ uploadId, number }) => `${uploadId} ${number}`))
        last = parts.at(-1) ?? null
      }
      expect(seen).toEqual(wanted)
    })

    test('F2 the ids of items, tombstones and unfinished uploads are referenced', async () => {
      const { catalog, inspection } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const [item, deleted] = newItems(2)
      if (!item || !deleted) throw new Error('two items')
      await catalog.addItems(bucketId, inBlobStore([item, deleted]))
      await catalog.removeItems(bucketId, [deleted.id])
      const upload = newUpload(bucketId)
      await catalog.createUpload(upload)
      const stranger = newItemId()
      const ids = [item.id, deleted.id, upload.itemId, stranger]
      expect(await inspection.findUnreferenced(ids)).toEqual([stranger])
      expect(await inspection.retire(ids)).toEqual([stranger])
      await catalog.removeUpload(upload.id)
      expect(await inspection.findUnreferenced(ids)).toEqual([upload.itemId, stranger])
    })

    test('F2 a retired id is never used for an item: a later commit with it fails completely', async () => {
      const { catalog, inspection } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const [late, other] = newItems(2)
      if (!late || !other) throw new Error('two items')
      expect(await inspection.retire([late.id])).toEqual([late.id])
      expect(await inspection.retire([late.id])).toEqual([late.id])
      await expect(catalog.addItems(bucketId, inBlobStore([other, late]))).rejects.toThrow('set aside')
      expect(await allPages(catalog, bucketId)).toEqual([])
      await catalog.addItems(bucketId, inBlobStore([other]))
      expect(await inspection.bucketFaults()).toEqual([])
    })

    test('F3 a damage mark stays until it is removed or its item is deleted, and only items have marks', async () => {
      const { catalog, inspection } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const item = newItem()
      await catalog.addItems(bucketId, inBlobStore([item]))
      expect(await catalog.item(item.id)).toMatchObject({ isDamaged: false })
      await inspection.markDamaged([item.id, newItemId()])
      await inspection.markDamaged([item.id])
      expect(await catalog.item(item.id)).toMatchObject({ isDamaged: true })
      expect(await catalog.servability([item.id])).toEqual(['not'])
      expect(await inspection.items(null, 9)).toMatchObject([{ id: item.id, damaged: true }])
      await inspection.unmarkDamaged([item.id])
      expect(await catalog.item(item.id)).toMatchObject({ isDamaged: false })
      expect(await catalog.servability([item.id])).toEqual(['servable'])
      await inspection.markDamaged([item.id])
      expect((await catalog.removeItems(bucketId, [item.id])).ids).toEqual([item.id])
      expect(await catalog.item(item.id)).toBeNull()
    })

    test('F1 a bucket that misses the expiry of an item is found and corrected; one that expects it earlier is right', async () => {
      const { catalog, inspection, tamper } = await open()
      const bucketId = await newBucket(catalog, 'b')
      await catalog.setBucket('b', { trashDays: 1 })
      const at = Date.now() + 60_000
      const [first, second, trashed] = [
        newItem({ expiresAt: at }),
        newItem({ expiresAt: at + 1 }),
        newItem({ expiresAt: at + 2 }),
      ]
      await catalog.addItems(bucketId, [first, second, trashed].map(withBytes))
      await catalog.removeItems(bucketId, [first.id, trashed.id])
      expect(await inspection.bucketFaults()).toEqual([])
      await tamper('expiry')
      const detail = `no expiry is stored, the first item expires at ${new Date(at + 1).toISOString()}`
      expect(await inspection.bucketFaults()).toEqual([{ bucket: 'b', what: 'expiry', detail }])
      expect(await inspection.recount()).toHaveLength(1)
      expect(await inspection.bucketFaults()).toEqual([])
      // That of the trashed item.
      expect(await catalog.expiringBuckets(at - 1)).toEqual([])
      expect(await catalog.expiringBuckets(at)).toEqual([bucketId])
    })

    test('F1 wrong counters, ranks and names are found and corrected, and the revision changes', async () => {
      const { catalog, inspection, tamper } = await open()
      const bucketId = await newBucket(catalog, 'b')
      // The ranks have two levels from 8,192 items on.
      const items = newItems(9_000)
      await catalog.addItems(bucketId, inBlobStore(items))
      for (const item of items.slice(100, 200)) await catalog.removeItems(bucketId, [item.id])
      await catalog.createUpload(newUpload(bucketId, { length: 50 }))
      expect(await inspection.bucketFaults()).toEqual([])
      const left = items.filter((_, index) => index < 100 || index >= 200).map(({ id }) => id)
      for (const [fault, what] of [
        ['counters', ['total', 'bytes', 'reserved']],
        ['ranks', ['ranks']],
        ['names', ['names']],
      ] as const) {
        const { revision } = await catalog.page(bucketId, 99_999)
        await tamper(fault)
        const found = await inspection.bucketFaults()
        expect(found.map((one) => one.what)).toEqual(what)
        expect(await inspection.recount()).toEqual(found)
        expect(await inspection.bucketFaults()).toEqual([])
        // At least one page of each leaf of the ranks, which has 64 numbers.
        for (let number = 1; number <= Math.ceil(left.length / 10) + 1; number += 6) {
          const { rows } = await catalog.page(bucketId, number)
          expect(rows.map(({ id }) => id)).toEqual(left.slice((number - 1) * 10, number * 10))
        }
        const page = await catalog.page(bucketId, 1)
        expect(page.total).toBe(left.length)
        expect(page.revision).toBeGreaterThan(revision)
        const [items, bytes] = [left.length, left.length * 1_000]
        const bucket = { items, bytes, reservedItems: 1, reservedBytes: 50 }
        expect(await catalog.bucket(bucketId)).toMatchObject(bucket)
        const [added] = newItems(1)
        if (!added) throw new Error('one item')
        await catalog.addItems(bucketId, inBlobStore([added]))
        left.push(added.id)
        expect(await inspection.recount()).toEqual([])
      }
    })

    test('F2 bytes in the catalog without an item are found and removed, and no others', async () => {
      const { catalog, inspection, tamper } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const [item, gone] = [newItem(), newItem()]
      await catalog.addItems(bucketId, [withBytes(item), withBytes(gone)])
      await catalog.removeItems(bucketId, [gone.id])
      expect(await inspection.orphanedContents()).toEqual([])
      await tamper('contents')
      const orphans = await inspection.orphanedContents()
      expect(orphans).toHaveLength(1)
      await inspection.removeContents(orphans)
      expect(await inspection.orphanedContents()).toEqual([])
      const [found] = await inspection.items(null, 9)
      expect(found?.contentId && (await inspection.content(found.contentId))).toEqual(contentOf(item))
    })
  })
}

/** The behaviour of every catalog engine in backups and restores. */
export function describeCopies(engine: string, fresh: () => Promise<Copied>): void {
  async function open(): Promise<Copied> {
    const opened = await fresh()
    onTestFinished(async () => {
      await opened.inspection.close()
      await opened.catalog.close()
    })
    return opened
  }

  describe(`${engine}: copies`, () => {
    test('F3, F7 bytes in the catalog are read by checks and are in a snapshot', async () => {
      const { catalog, inspection, copy } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const [item, other] = [newItem(), newItem()]
      await catalog.addItems(bucketId, [withBytes(item), ...inBlobStore([other])])
      const { directory, open: openCopy } = await copy()
      await inspection.snapshot(directory, null)
      const copied = await openCopy()
      for (const one of [inspection, copied.inspection]) {
        const [first, second] = await one.items(null, 9)
        expect(first?.contentId && (await one.content(first.contentId))).toEqual(contentOf(item))
        expect(second?.contentId).toBeNull()
      }
    })

    test('F7, F8 a snapshot has the rows of one moment; renewed, it has its own epoch, and no uploads and intents', async () => {
      const { catalog, inspection, copy } = await open()
      const bucketId = await newBucket(catalog, 'b')
      const items = newItems(12)
      await catalog.addItems(bucketId, inBlobStore(items))
      await catalog.createUpload(newUpload(bucketId))
      await catalog.addIntents([newItemId()], 1_000)
      const { directory, open: openCopy } = await copy()
      await inspection.snapshot(directory, null)
      await catalog.addItems(bucketId, inBlobStore(newItems(1)))
      const copied = await openCopy()
      expect(await allPages(copied.catalog, bucketId)).toEqual(items.map(({ id }) => id))
      expect(copied.catalog.epoch).toBe(catalog.epoch)
      await copied.inspection.renew()
      expect(await copied.catalog.unfinishedUploads()).toEqual([])
      expect(await copied.catalog.listIntents()).toEqual([])
      expect(await copied.inspection.bucketFaults()).toEqual([])
      const again = await openCopy()
      expect(again.catalog.epoch).not.toBe(catalog.epoch)
      expect(await catalog.unfinishedUploads()).toHaveLength(1)
    })
  })
}
