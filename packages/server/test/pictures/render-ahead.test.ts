import { expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { newItemId } from '../../src/core/ids.ts'
import { PictureTaskPreempted } from '../../src/pictures/picture-queue.ts'
import { RenderAhead } from '../../src/pictures/render-ahead.ts'
import type { BucketId, Item, NewItem } from '../../src/storage/catalog/records.ts'
import { inBlobStore, newItem } from '../storage/catalog/samples.ts'
import { type TemporaryData, temporaryData } from '../uploads/temporary-media.ts'

/** A queue whose items wait until `begin` is called, the ids that it has rendered, and its rests. Only rests and the test take time. */
function heldQueue(
  data: TemporaryData,
  render: (item: Item) => Promise<void> = async () => undefined,
  onRest: () => void = () => undefined,
) {
  const idle = Promise.withResolvers<void>()
  const rendered: string[] = []
  const failures: unknown[] = []
  const rests: number[] = []
  const clock = { time: 0 }
  const workers = { whenIdle: () => idle.promise }
  const queue = new RenderAhead(
    {
      catalog: data.catalog,
      async render(item) {
        rendered.push(item.id)
        await render(item)
      },
      workers,
      toolWorkers: workers,
      tools: new Map([['ffmpeg', '/usr/bin/ffmpeg']]),
      maxPixels: 100,
      onFailure: (_id, error) => failures.push(error),
    },
    {
      now: () => clock.time,
      async rest(time) {
        rests.push(time)
        clock.time += time
        onRest()
      },
    },
  )
  const add: RenderAhead['add'] = (bucketId, item) => queue.add(bucketId, item)
  const stop = () => queue.stop()
  return { add, stop, queue, rendered, failures, rests, clock, begin: idle.resolve }
}

const picture = { contentType: 'image/png', width: 10, height: 10 }
const bucketOne = 1 as BucketId

/** Stores pictures in the bucket `default`. */
async function storePictures(data: TemporaryData, ...changes: Partial<NewItem>[]): Promise<NewItem[]> {
  const bucketId = await data.bucket('default')
  const items = changes.map((change) => newItem({ filename: null, extension: 'png', ...picture, ...change }))
  await data.catalog.addItems(bucketId, inBlobStore(items))
  return items
}

test('V16 items that were deleted or trashed, or have expired, are not rendered; of the others the newest is first', async () => {
  await using data = await temporaryData()
  const bucketId = await data.bucket('default')
  const { add, queue, rendered, begin } = heldQueue(data)
  const items = await storePictures(data, {}, {}, {}, {}, { expiresAt: 1 })
  const [first, second, deleted, trashed] = items.map(({ id }) => id)
  for (const item of items) add(bucketId, item)
  await data.catalog.removeItems(
    bucketId,
    [deleted].flatMap((id) => id ?? []),
  )
  await data.catalog.setBucket('default', { trashDays: 1 })
  await data.catalog.removeItems(
    bucketId,
    [trashed].flatMap((id) => id ?? []),
  )
  expect(queue.length).toBe(5)
  begin()
  await expect.poll(() => rendered.at(-1)).toBe(first)
  expect(rendered).toEqual([second, first])
})

test('V16 only items that may have variants, within the limit of pixels, are queued, and none after a stop', async () => {
  await using data = await temporaryData()
  const { add, stop, queue } = heldQueue(data)
  const lengthWith = (item: Partial<NewItem>) => {
    add(bucketOne, { ...picture, id: newItemId(), ...item })
    return queue.length
  }
  expect(lengthWith({ contentType: 'text/plain' })).toBe(0)
  expect(lengthWith({ contentType: 'image/svg+xml' })).toBe(0)
  // Its program is not installed.
  expect(lengthWith({ contentType: 'application/pdf' })).toBe(0)
  expect(lengthWith({ width: 11 })).toBe(0)
  expect(lengthWith({ contentType: 'video/mp4', width: null, height: null })).toBe(1)
  expect(lengthWith({})).toBe(2)
  stop()
  expect(queue.length).toBe(0)
  expect(lengthWith({})).toBe(0)
})

test('V16 the queue is bounded: the earliest items of the bucket with the most are dropped', async () => {
  await using data = await temporaryData()
  const bucketId = await data.bucket('default')
  const { add, queue, rendered, begin } = heldQueue(data)
  const [early, late] = await storePictures(data, {}, {})
  const other = await data.bucket('other')
  if (early) add(bucketId, early)
  for (let times = 1; times < 10_000; times += 1) add(bucketId, { ...picture, id: newItemId() })
  expect(queue.length).toBe(10_000)
  if (late) add(other, late)
  expect(queue.length).toBe(10_000)
  begin()
  await expect.poll(() => queue.length).toBe(0)
  expect(rendered).toEqual([late?.id])
})

test('V16 a render that has given way to requests is tried again, a few times; one that has failed is not', async () => {
  await using data = await temporaryData()
  const bucketId = await data.bucket('default')
  const [last, unexpected, failing, hindered] = await storePictures(data, {}, {}, {}, {})
  const error = new Error('the disk is gone')
  const { add, rendered, failures, begin } = heldQueue(data, async ({ id }) => {
    if (id === hindered?.id) throw new PictureTaskPreempted('requests need the workers')
    if (id === failing?.id) throw new Fault('variant-unavailable', 'The picture is damaged.')
    if (id === unexpected?.id) throw error
  })
  for (const item of [last, unexpected, failing, hindered]) if (item) add(bucketId, item)
  begin()
  await expect.poll(() => rendered.at(-1)).toBe(last?.id)
  expect(rendered).toEqual([...Array(5).fill(hindered?.id), failing?.id, unexpected?.id, last?.id])
  expect(failures).toEqual([error])
})

test('V16 while uploads arrive, the queue rests nine times as long as a render took', async () => {
  await using data = await temporaryData()
  const bucketId = await data.bucket('default')
  const [last, second, first] = await storePictures(data, {}, {}, {})
  const text = { ...picture, id: newItemId(), contentType: 'text/plain' }
  const { add, rendered, rests, clock, begin } = heldQueue(
    data,
    async () => {
      clock.time += 30
    },
    () => {
      if (rendered.length === 1) add(bucketId, text)
    },
  )
  for (const item of [last, second, first]) if (item) add(bucketId, item)
  begin()
  await expect.poll(() => rendered).toEqual([first?.id, second?.id, last?.id])
  // The last upload is less than 100 ms before the end of the second render, and more than that before the end of the last one.
  expect(rests).toEqual([100, 100, 70, 100])
})

test('V16 after a fault of the storage, which is reported, the queue rests and tries the item again', async () => {
  await using data = await temporaryData()
  const bucketId = await data.bucket('default')
  const [second, first] = await storePictures(data, {}, {})
  const faults = (['storage-unavailable', 'overloaded', 'variants-busy'] as const).map(
    (code) => new Fault(code, 'The storage cannot be reached.'),
  )
  const left = [...faults]
  const { add, rendered, failures, rests, begin } = heldQueue(data, async () => {
    const fault = left.shift()
    if (fault) throw fault
  })
  for (const item of [second, first]) if (item) add(bucketId, item)
  begin()
  await expect.poll(() => rendered.at(-1)).toBe(second?.id)
  expect(rendered).toEqual([...Array(4).fill(first?.id), second?.id])
  expect(rests).toEqual([10_000, 10_000, 10_000])
  // Requests report `variants-busy` to their clients.
  expect(failures).toEqual(faults.slice(0, 2))
})
