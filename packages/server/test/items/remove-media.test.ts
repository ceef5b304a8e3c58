import { rename, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { newItemId } from '../../src/core/ids.ts'
import { service } from '../../src/core/token-rules.ts'
import { ItemRemover } from '../../src/items/deletion.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import type { BucketId, Item } from '../../src/storage/catalog/records.ts'
import { recover } from '../../src/upkeep/recovery.ts'
import { chunksOf } from '../storage/blobs/blob-contract.ts'
import { inBlobStore, newItem, withBytes } from '../storage/catalog/samples.ts'
import { type TemporaryData, temporaryData } from '../uploads/temporary-media.ts'
import { thumb } from '../variant-samples.ts'

const unknown = { code: 'media-unknown', message: 'There is no such item.' }

/** What a removal returns where nothing has expired. */
const nothingExpired = { ids: [], tombstones: [], counted: 0, waiting: 0 }

/** What a step returns after which others follow. */
const manyExpired = () => ({ ...nothingExpired, ids: Array.from({ length: 100 }, newItemId) })

/** A remover with turns of one step, whose steps `expire` replaces, and the buckets with these names. */
async function namedRemover(
  data: TemporaryData,
  names: readonly string[],
  expire: (name: string) => ReturnType<Catalog['expireItems']>,
) {
  const buckets = new Map<string, BucketId>()
  for (const name of names) buckets.set(name, await data.bucket(name))
  const expireItems = (id: BucketId) => expire(names.find((name) => buckets.get(name) === id) ?? '')
  return {
    remover: new ItemRemover({
      ...data,
      catalog: { ...data.catalog, expireItems },
      turn: 0,
      onDeletionFailure: unexpected,
    }),
    bucketOf: (name: string) => buckets.get(name) ?? expect.unreachable(),
  }
}

const unexpected = (_id: unknown, error: unknown): never => {
  throw error
}

/** A remover with a record of its steps in order; `before` runs before each step. */
function watchedRemoval(
  data: TemporaryData,
  before: (step: string) => void | Promise<void> = () => undefined,
) {
  const steps: string[] = []
  const leftovers: [id: string, error: unknown][] = []
  async function step<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    await before(name)
    const result = await work()
    steps.push(name)
    return result
  }
  const removal = new ItemRemover({
    catalog: {
      item: data.catalog.item,
      removeItems: (bucketId, ids) => step('commit', () => data.catalog.removeItems(bucketId, ids)),
      removeUnchanged: data.catalog.removeUnchanged,
      replaceItems: data.catalog.replaceItems,
      purgeItems: data.catalog.purgeItems,
      expireItems: data.catalog.expireItems,
      removableBlobs: data.catalog.removableBlobs,
      clearTombstones: (ids) => step(`clear ${ids.length}`, () => data.catalog.clearTombstones(ids)),
    },
    blobs: { removalsAtOnce: 2, remove: (id) => step('unlink', () => data.blobs.remove(id)) },
    isBackupRunning: () => false,
    onDeletionFailure: (id, error) => leftovers.push([id, error]),
  })
  const remove = removal.remove.bind(removal)
  return { remove, idle: () => removal.idle(), steps, leftovers }
}

const shardOf = (data: TemporaryData, { id }: Item): string =>
  join(data.disk.directory, 'blobs', id.slice(0, 2))

/** Replaces the item's shard by a link, so that its bytes cannot be removed. */
async function obstruct(data: TemporaryData, item: Item): Promise<void> {
  const away = join(data.disk.directory, 'away')
  await rename(shardOf(data, item), away)
  await symlink(away, shardOf(data, item))
}

async function clearWay(data: TemporaryData, item: Item): Promise<void> {
  await unlink(shardOf(data, item))
  await rename(join(data.disk.directory, 'away'), shardOf(data, item))
}

describe('E2, E3 removing expired items', () => {
  test('concurrent calls share the work, and remove the bytes at once', async () => {
    await using data = await temporaryData()
    const { bucketId } = await data.store('text')
    const late = newItem({ expiresAt: Date.now() - 1 })
    await data.catalog.addItems(bucketId, [withBytes(late)])
    let calls = 0
    const remover = new ItemRemover({
      ...data,
      catalog: {
        ...data.catalog,
        async expireItems(id) {
          calls += 1
          return data.catalog.expireItems(id)
        },
      },
      onDeletionFailure: unexpected,
    })
    await Promise.all([remover.removeExpired(bucketId)(), remover.removeExpired(bucketId)()])
    expect(calls).toBe(1)
    expect(await data.listed(bucketId)).toHaveLength(1)
    await remover.idle()
    expect(await data.catalog.listTombstones()).toEqual([])
    await remover.removeExpired(bucketId)()
    expect(calls).toBe(2)
  })

  test('a call that takes long fails, and the work continues', async () => {
    await using data = await temporaryData()
    const { bucketId } = await data.store('text')
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const steps = [100, 3]
    const remover = new ItemRemover({
      ...data,
      catalog: {
        ...data.catalog,
        async expireItems() {
          begun.resolve()
          await ended.promise
          const ids = Array.from({ length: steps.shift() ?? 0 }, newItemId)
          return { ids, tombstones: [], counted: 0, waiting: steps.length }
        },
      },
      longestExpiry: 1,
      onDeletionFailure: unexpected,
    })
    await expect(remover.removeExpired(bucketId)()).rejects.toMatchObject({ code: 'catalog-busy' })
    await begun.promise
    await expect(remover.removeExpired(bucketId)()).rejects.toMatchObject({ code: 'catalog-busy' })
    ended.resolve()
    await remover.idle()
    expect(steps).toEqual([])
  })

  test('a removal that fails delays the next one of its bucket only', async () => {
    await using data = await temporaryData()
    const [broken, whole] = [await data.bucket('default'), await data.bucket('other')]
    const called: BucketId[] = []
    const remover = new ItemRemover({
      ...data,
      catalog: {
        ...data.catalog,
        async expireItems(id) {
          called.push(id)
          if (id === broken) throw new Error('broken')
          return nothingExpired
        },
      },
      onDeletionFailure: unexpected,
    })
    await remover.removeExpired(broken)()
    await remover.idle()
    for (const id of [broken, whole]) await remover.removeExpired(id)()
    expect(called).toEqual([broken, whole])
  })

  test('the sweep removes the items of all buckets in turns: neither a failure nor a slow removal holds back the others', async () => {
    await using data = await temporaryData()
    const names = ['broken', 'slow', 'many', 'more', 'few', 'last']
    const called: string[] = []
    const [go, isDone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { remover, bucketOf } = await namedRemover(data, names, async (name) => {
      called.push(name)
      if (name === 'broken') throw new Error('broken')
      if (name === 'slow') await go.promise
      if (name !== 'many') return nothingExpired
      if (called.filter((other) => other === name).length < 3) return manyExpired()
      isDone.resolve()
      return nothingExpired
    })
    const failures: unknown[] = []
    const swept = remover.expire({
      list: async () => names.map(bucketOf),
      onFailure: (...failure) => failures.push(failure),
    })
    // While the slow removal goes on.
    await isDone.promise
    go.resolve()
    await swept
    expect(called).toEqual([...names, 'many', 'many'])
    expect(failures).toEqual([[bucketOf('broken'), new Error('broken')]])
  })

  test('a bucket that begins to expire during the sweep has its turn before a bucket with many items is done', async () => {
    await using data = await temporaryData()
    const listed = ['many']
    const called: string[] = []
    const { remover, bucketOf } = await namedRemover(data, ['many', 'later'], async (name) => {
      called.push(name)
      if (name === 'later') return nothingExpired
      listed.push('later')
      return called.includes('later') || called.length > 20 ? nothingExpired : manyExpired()
    })
    await remover.expire({ list: async () => listed.map(bucketOf), onFailure: unexpected })
    expect(called).toContain('later')
  })

  test('the sweep reports the failure of a removal that a request has started', async () => {
    await using data = await temporaryData()
    const [begun, fail] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()]
    const { remover, bucketOf } = await namedRemover(data, ['broken'], () => {
      begun.resolve()
      return fail.promise
    })
    const settled = remover.removeExpired(bucketOf('broken'))()
    await begun.promise
    const failures: unknown[] = []
    const swept = remover.expire({
      async list() {
        // When the sweep has begun to wait.
        setImmediate(() => fail.reject(new Error('broken')))
        return [bucketOf('broken')]
      },
      onFailure: (...failure) => failures.push(failure),
    })
    await Promise.all([settled, swept])
    expect(failures).toEqual([[bucketOf('broken'), new Error('broken')]])
  })

  test('E3, O5 an outage ends the sweep at once', async () => {
    await using data = await temporaryData()
    const names = Array.from({ length: 12 }, (_, index) => `b${index}`)
    let steps = 0
    const { remover, bucketOf } = await namedRemover(data, names, async () => {
      steps += 1
      throw new Fault('catalog-busy', 'later')
    })
    const swept = remover.expire({ list: async () => names.map(bucketOf), onFailure: unexpected })
    await expect(swept).rejects.toThrow()
    expect(steps).toBeLessThanOrEqual(4)
  })
})

describe('M2: removing', () => {
  test('O5 an outage of the store ends the removal of bytes, of which as many run at once as the store allows; their tombstones stay', async () => {
    await using data = await temporaryData()
    const items = Array.from({ length: 9 }, () => newItem())
    const bucketId = await data.bucket('default')
    await data.catalog.addItems(bucketId, inBlobStore(items))
    const failed: string[] = []
    let attempts = 0
    const remover = new ItemRemover({
      ...data,
      blobs: {
        removalsAtOnce: 3,
        async remove() {
          attempts += 1
          throw new Fault('storage-unavailable', 'later')
        },
      },
      onDeletionFailure: (id) => failed.push(id),
    })
    const ids = items.map(({ id }) => id)
    await remover.removeMany(bucketId, ids, service)
    await remover.idle()
    expect([attempts, new Set(failed), new Set(await data.catalog.listTombstones())]).toEqual([
      3,
      new Set(ids),
      new Set(ids),
    ])
  })

  test('a deleted item is removed from the listing and the disk, and leaves no tombstone', async () => {
    await using data = await temporaryData()
    const item = await data.store('text')
    const remover = new ItemRemover({ ...data, onDeletionFailure: unexpected })
    await remover.remove(item.bucketId, item.id, service)
    expect(await data.listed(item.bucketId)).toEqual([])
    await remover.idle()
    expect(await data.disk.stored()).toEqual([])
    expect(await data.catalog.listTombstones()).toEqual([])
  })

  test('an item with bytes in the catalog is deleted in one step; variants of a picture are removed after it', async () => {
    await using data = await temporaryData(undefined, 100)
    const text = await data.store('text')
    const picture = newItem({ contentType: 'image/png' })
    await data.catalog.addItems(text.bucketId, [withBytes(picture)])
    await data.blobs.variants.store(picture.id, thumb.key, Buffer.from('small'))
    const { remove, idle, steps } = watchedRemoval(data)
    await remove(text.bucketId, text.id, service)
    await idle()
    expect(steps).toEqual(['commit'])
    expect(text.contentId && (await data.catalog.content(text.contentId))).toBeNull()
    await remove(text.bucketId, picture.id, service)
    await idle()
    expect(steps.slice(1)).toEqual(['commit', 'unlink', 'clear 1'])
    expect(await data.blobs.variants.open(picture.id, thumb.key)).toBeNull()
    expect(await data.catalog.listTombstones()).toEqual([])
  })

  test('a second removal, an unknown id, an id of another bucket and any other text are media-unknown', async () => {
    await using data = await temporaryData()
    const item = await data.store('text')
    const remover = new ItemRemover({ ...data, onDeletionFailure: unexpected })
    await expect(remover.remove(await data.bucket('other'), item.id, service)).rejects.toMatchObject(unknown)
    await remover.remove(item.bucketId, item.id, service)
    for (const id of [item.id, newItemId(), '', '../../x'])
      await expect(remover.remove(item.bucketId, id, service)).rejects.toMatchObject(unknown)
    await remover.idle()
  })

  test('of two concurrent removals of one item, one succeeds', async () => {
    await using data = await temporaryData()
    const item = await data.store('text')
    const remover = new ItemRemover({ ...data, onDeletionFailure: unexpected })
    const results = await Promise.allSettled([
      remover.remove(item.bucketId, item.id, service),
      remover.remove(item.bucketId, item.id, service),
    ])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await remover.idle()
  })

  test('the order is commit < return < unlink < clear the tombstone', async () => {
    await using data = await temporaryData()
    const item = await data.store('text')
    const unlink = Promise.withResolvers<void>()
    const removal = watchedRemoval(data, (step) => (step === 'unlink' ? unlink.promise : undefined))
    await removal.remove(item.bucketId, item.id, service)
    expect(removal.steps).toEqual(['commit'])
    expect(await data.catalog.listTombstones()).toEqual([item.id])
    unlink.resolve()
    await removal.idle()
    expect(removal.steps).toEqual(['commit', 'unlink', 'clear 1'])
    expect(await data.catalog.listTombstones()).toEqual([])
  })

  test('tombstones that arrive during a removal are cleared in batches, and idle waits for all of them', async () => {
    await using data = await temporaryData()
    const items = await Promise.all(Array.from({ length: 130 }, () => data.store('text')))
    const first = Promise.withResolvers<void>()
    const removal = watchedRemoval(data, (step) => (step === 'unlink' ? first.promise : undefined))
    await Promise.all(items.map((item) => removal.remove(item.bucketId, item.id, service)))
    first.resolve()
    await removal.idle()
    expect(removal.steps.filter((step) => step.startsWith('clear'))).toEqual([
      'clear 1',
      'clear 100',
      'clear 29',
    ])
    expect(await data.disk.stored()).toEqual([])
    expect(removal.leftovers).toEqual([])
  })

  test('items can be removed after idle', async () => {
    await using data = await temporaryData()
    const remover = new ItemRemover({ ...data, onDeletionFailure: unexpected })
    await remover.idle()
    for (const item of [await data.store('1'), await data.store('2')]) {
      await remover.remove(item.bucketId, item.id, service)
      await remover.idle()
      expect(await data.disk.stored()).not.toContainEqual(expect.stringContaining(item.id))
    }
    expect(await data.catalog.listTombstones()).toEqual([])
  })

  test('B7: text that is not an id does not reach the catalog', async () => {
    await using data = await temporaryData()
    const { remove, steps } = watchedRemoval(data)
    const bucketId = await data.bucket('default')
    await expect(remove(bucketId, '../../x', service)).rejects.toMatchObject(unknown)
    expect(steps).toEqual([])
  })
})

describe('M2: bytes that cannot be removed', () => {
  test('are reported, keep their tombstone, and are removed at the next start', async () => {
    await using data = await temporaryData()
    const stuck = await data.store('stuck')
    let free = await data.store('free')
    while (free.id.slice(0, 2) === stuck.id.slice(0, 2)) free = await data.store('free')
    const removal = watchedRemoval(data)
    await obstruct(data, stuck)
    await removal.remove(stuck.bucketId, stuck.id, service)
    await removal.remove(free.bucketId, free.id, service)
    await removal.idle()
    expect(removal.leftovers).toEqual([[stuck.id, expect.any(Error)]])
    expect(await data.catalog.listTombstones()).toEqual([stuck.id])

    const failed = await recover(data)
    expect(failed).toMatchObject({ tombstones: 0, leftovers: [{ id: stuck.id }] })
    expect(await data.catalog.listTombstones()).toEqual([stuck.id])

    await clearWay(data, stuck)
    expect(await recover(data)).toEqual({
      temporary: 0,
      tombstones: 1,
      rewound: 0,
      orphans: 0,
      leftovers: [],
    })
    expect(await data.catalog.listTombstones()).toEqual([])
    expect((await data.disk.stored()).some((path) => path.endsWith(stuck.id))).toBe(false)
  })

  test('a tombstone that cannot be cleared stays and is reported', async () => {
    await using data = await temporaryData()
    const item = await data.store('text')
    const removal = watchedRemoval(data, (step) => {
      if (step === 'clear 1') throw new Error('the disk of the catalog is full')
    })
    await removal.remove(item.bucketId, item.id, service)
    await removal.idle()
    expect(removal.leftovers).toEqual([[item.id, expect.any(Error)]])
    expect(await data.catalog.listTombstones()).toEqual([item.id])
    expect(await recover(data)).toEqual({
      temporary: 0,
      tombstones: 1,
      rewound: 0,
      orphans: 0,
      leftovers: [],
    })
  })
})

describe('recovery', () => {
  test('deletes temporary bytes and completes tombstones, whether or not their bytes exist', async () => {
    await using data = await temporaryData()
    const [gone, left, kept] = [await data.store('1'), await data.store('2'), await data.store('3')]
    await data.blobs.receive(newItemId(), chunksOf(Buffer.from('half an upload')), 100)
    for (const item of [gone, left]) await data.catalog.removeItems(item.bucketId, [item.id])
    await data.blobs.remove(gone.id)

    expect(await recover(data)).toEqual({
      temporary: 1,
      tombstones: 2,
      rewound: 0,
      orphans: 0,
      leftovers: [],
    })
    expect(await data.catalog.listTombstones()).toEqual([])
    expect(await data.disk.temporary()).toEqual([])
    expect(await data.disk.stored()).toEqual([expect.stringContaining(kept.id)])
    expect(await data.listed(kept.bucketId)).toEqual([kept.id])
    expect(await recover(data)).toEqual({
      temporary: 0,
      tombstones: 0,
      rewound: 0,
      orphans: 0,
      leftovers: [],
    })
  })
})
