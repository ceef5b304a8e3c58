import { rename, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Media } from '../../../src/catalog/records.ts'
import { service } from '../../../src/core/actor.ts'
import { newMediaId } from '../../../src/core/media-id.ts'
import { createMediaRemover } from '../../../src/media/deletion/remove-media.ts'
import { recover } from '../../../src/media/recover.ts'
import { chunksOf } from '../../blobs/blob-contract.ts'
import { newItem, withBytes } from '../../catalog/samples.ts'
import { thumb } from '../../variant-samples.ts'
import { type TemporaryMedia, temporaryMedia } from '../temporary-media.ts'

const unknown = { code: 'media-unknown', message: 'There is no such item.' }

const unexpected = (_id: string, error: unknown): never => {
  throw error
}

/** A remover with a record of its steps in order; `before` runs before each step. */
function watchedRemoval(
  media: TemporaryMedia,
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
  const removal = createMediaRemover({
    catalog: {
      removeMedia: (bucketId, ids) => step('commit', () => media.catalog.removeMedia(bucketId, ids)),
      purgeMedia: media.catalog.purgeMedia,
      expireItems: media.catalog.expireItems,
      clearTombstones: (ids) => step(`clear ${ids.length}`, () => media.catalog.clearTombstones(ids)),
    },
    blobs: { remove: (id) => step('unlink', () => media.blobs.remove(id)) },
    isBackupRunning: () => false,
    onDeletionFailure: (id, error) => leftovers.push([id, error]),
  })
  return { ...removal, steps, leftovers }
}

const shardOf = (media: TemporaryMedia, { id }: Media): string =>
  join(media.disk.directory, 'blobs', id.slice(0, 2))

/** Replaces the item's shard by a link, so that its bytes cannot be removed. */
async function obstruct(media: TemporaryMedia, item: Media): Promise<void> {
  const away = join(media.disk.directory, 'away')
  await rename(shardOf(media, item), away)
  await symlink(away, shardOf(media, item))
}

async function clearWay(media: TemporaryMedia, item: Media): Promise<void> {
  await unlink(shardOf(media, item))
  await rename(join(media.disk.directory, 'away'), shardOf(media, item))
}

describe('E2, E3 removing expired items', () => {
  test('concurrent calls share the work, and remove the bytes at once', async () => {
    await using media = await temporaryMedia()
    const { bucketId } = await media.store('text')
    const late = newItem({ expiresAt: Date.now() - 1 })
    await media.catalog.addMedia(bucketId, [withBytes(late)])
    let calls = 0
    const remover = createMediaRemover({
      ...media,
      catalog: {
        ...media.catalog,
        async expireItems(id) {
          calls += 1
          return media.catalog.expireItems(id)
        },
      },
      onDeletionFailure: unexpected,
    })
    await Promise.all([remover.removeExpired(bucketId)(), remover.removeExpired(bucketId)()])
    expect(calls).toBe(1)
    expect(await media.listed(bucketId)).toHaveLength(1)
    await remover.settled()
    expect(await media.catalog.tombstones()).toEqual([])
    await remover.removeExpired(bucketId)()
    expect(calls).toBe(2)
  })

  test('a call that takes long fails, and the work continues', async () => {
    await using media = await temporaryMedia()
    const { bucketId } = await media.store('text')
    const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const steps = [500, 3]
    const remover = createMediaRemover({
      ...media,
      catalog: {
        ...media.catalog,
        async expireItems() {
          begun.resolve()
          await ended.promise
          return { ids: Array.from({ length: steps.shift() ?? 0 }, newMediaId), tombstones: [] }
        },
      },
      longestExpiry: 1,
      onDeletionFailure: unexpected,
    })
    await expect(remover.removeExpired(bucketId)()).rejects.toMatchObject({ code: 'catalog-busy' })
    await begun.promise
    await expect(remover.removeExpired(bucketId)()).rejects.toMatchObject({ code: 'catalog-busy' })
    ended.resolve()
    await remover.settled()
    expect(steps).toEqual([])
  })
})

describe('M2: removing', () => {
  test('a deleted item is removed from the listing and the disk, and leaves no tombstone', async () => {
    await using media = await temporaryMedia()
    const item = await media.store('text')
    const { remove, settled } = createMediaRemover({ ...media, onDeletionFailure: unexpected })
    await remove(item.bucketId, item.id, service)
    expect(await media.listed(item.bucketId)).toEqual([])
    await settled()
    expect(await media.disk.stored()).toEqual([])
    expect(await media.catalog.tombstones()).toEqual([])
  })

  test('an item with bytes in the catalog is deleted in one step; variants of a picture are removed after it', async () => {
    await using media = await temporaryMedia(undefined, 100)
    const text = await media.store('text')
    const picture = newItem({ contentType: 'image/png' })
    await media.catalog.addMedia(text.bucketId, [withBytes(picture)])
    await media.blobs.variants.store(picture.id, thumb.key, Buffer.from('small'))
    const { remove, settled, steps } = watchedRemoval(media)
    await remove(text.bucketId, text.id, service)
    await settled()
    expect(steps).toEqual(['commit'])
    expect(text.contentId && (await media.catalog.content(text.contentId))).toBeNull()
    await remove(text.bucketId, picture.id, service)
    await settled()
    expect(steps.slice(1)).toEqual(['commit', 'unlink', 'clear 1'])
    expect(await media.blobs.variants.open(picture.id, thumb.key)).toBeNull()
    expect(await media.catalog.tombstones()).toEqual([])
  })

  test('a second removal, an unknown id, an id of another bucket and any other text are media-unknown', async () => {
    await using media = await temporaryMedia()
    const item = await media.store('text')
    const { remove, settled } = createMediaRemover({ ...media, onDeletionFailure: unexpected })
    await expect(remove(await media.bucket('other'), item.id, service)).rejects.toMatchObject(unknown)
    await remove(item.bucketId, item.id, service)
    for (const id of [item.id, newMediaId(), '', '../../x'])
      await expect(remove(item.bucketId, id, service)).rejects.toMatchObject(unknown)
    await settled()
  })

  test('of two concurrent removals of one item, one succeeds', async () => {
    await using media = await temporaryMedia()
    const item = await media.store('text')
    const { remove, settled } = createMediaRemover({ ...media, onDeletionFailure: unexpected })
    const results = await Promise.allSettled([
      remove(item.bucketId, item.id, service),
      remove(item.bucketId, item.id, service),
    ])
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await settled()
  })

  test('the order is commit < return < unlink < clear the tombstone', async () => {
    await using media = await temporaryMedia()
    const item = await media.store('text')
    const unlink = Promise.withResolvers<void>()
    const removal = watchedRemoval(media, (step) => (step === 'unlink' ? unlink.promise : undefined))
    await removal.remove(item.bucketId, item.id, service)
    expect(removal.steps).toEqual(['commit'])
    expect(await media.catalog.tombstones()).toEqual([item.id])
    unlink.resolve()
    await removal.settled()
    expect(removal.steps).toEqual(['commit', 'unlink', 'clear 1'])
    expect(await media.catalog.tombstones()).toEqual([])
  })

  test('tombstones that arrive during a removal are cleared in batches, and settled waits for all of them', async () => {
    await using media = await temporaryMedia()
    const items = await Promise.all(Array.from({ length: 130 }, () => media.store('text')))
    const first = Promise.withResolvers<void>()
    const removal = watchedRemoval(media, (step) => (step === 'unlink' ? first.promise : undefined))
    await Promise.all(items.map((item) => removal.remove(item.bucketId, item.id, service)))
    first.resolve()
    await removal.settled()
    expect(removal.steps.filter((step) => step.startsWith('clear'))).toEqual([
      'clear 1',
      'clear 100',
      'clear 29',
    ])
    expect(await media.disk.stored()).toEqual([])
    expect(removal.leftovers).toEqual([])
  })

  test('items can be removed after settled', async () => {
    await using media = await temporaryMedia()
    const { remove, settled } = createMediaRemover({ ...media, onDeletionFailure: unexpected })
    await settled()
    for (const item of [await media.store('1'), await media.store('2')]) {
      await remove(item.bucketId, item.id, service)
      await settled()
      expect(await media.disk.stored()).not.toContainEqual(expect.stringContaining(item.id))
    }
    expect(await media.catalog.tombstones()).toEqual([])
  })

  test('B7: text that is not an id does not reach the catalog', async () => {
    await using media = await temporaryMedia()
    const { remove, steps } = watchedRemoval(media)
    const bucketId = await media.bucket('default')
    await expect(remove(bucketId, '../../x', service)).rejects.toMatchObject(unknown)
    expect(steps).toEqual([])
  })
})

describe('M2: bytes that cannot be removed', () => {
  test('are reported, keep their tombstone, and are removed at the next start', async () => {
    await using media = await temporaryMedia()
    const stuck = await media.store('stuck')
    let free = await media.store('free')
    while (free.id.slice(0, 2) === stuck.id.slice(0, 2)) free = await media.store('free')
    const removal = watchedRemoval(media)
    await obstruct(media, stuck)
    await removal.remove(stuck.bucketId, stuck.id, service)
    await removal.remove(free.bucketId, free.id, service)
    await removal.settled()
    expect(removal.leftovers).toEqual([[stuck.id, expect.any(Error)]])
    expect(await media.catalog.tombstones()).toEqual([stuck.id])

    const failed = await recover(media)
    expect(failed).toMatchObject({ tombstones: 0, leftovers: [{ id: stuck.id }] })
    expect(await media.catalog.tombstones()).toEqual([stuck.id])

    await clearWay(media, stuck)
    expect(await recover(media)).toEqual({
      temporary: 0,
      tombstones: 1,
      rewound: 0,
      orphans: 0,
      leftovers: [],
    })
    expect(await media.catalog.tombstones()).toEqual([])
    expect((await media.disk.stored()).some((path) => path.endsWith(stuck.id))).toBe(false)
  })

  test('a tombstone that cannot be cleared stays and is reported', async () => {
    await using media = await temporaryMedia()
    const item = await media.store('text')
    const removal = watchedRemoval(media, (step) => {
      if (step === 'clear 1') throw new Error('the disk of the catalog is full')
    })
    await removal.remove(item.bucketId, item.id, service)
    await removal.settled()
    expect(removal.leftovers).toEqual([[item.id, expect.any(Error)]])
    expect(await media.catalog.tombstones()).toEqual([item.id])
    expect(await recover(media)).toEqual({
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
    await using media = await temporaryMedia()
    const [gone, left, kept] = [await media.store('1'), await media.store('2'), await media.store('3')]
    await media.blobs.receive(newMediaId(), chunksOf(Buffer.from('half an upload')), 100)
    for (const item of [gone, left]) await media.catalog.removeMedia(item.bucketId, [item.id])
    await media.blobs.remove(gone.id)

    expect(await recover(media)).toEqual({
      temporary: 1,
      tombstones: 2,
      rewound: 0,
      orphans: 0,
      leftovers: [],
    })
    expect(await media.catalog.tombstones()).toEqual([])
    expect(await media.disk.temporary()).toEqual([])
    expect(await media.disk.stored()).toEqual([expect.stringContaining(kept.id)])
    expect(await media.listed(kept.bucketId)).toEqual([kept.id])
    expect(await recover(media)).toEqual({
      temporary: 0,
      tombstones: 0,
      rewound: 0,
      orphans: 0,
      leftovers: [],
    })
  })
})
