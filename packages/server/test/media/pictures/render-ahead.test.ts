import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { BucketId, Media, NewMedia } from '../../../src/catalog/records.ts'
import { Fault } from '../../../src/core/fault.ts'
import { newMediaId } from '../../../src/core/media-id.ts'
import { PictureTaskPreempted } from '../../../src/media/pictures/picture-errors.ts'
import { createRenderAhead } from '../../../src/media/pictures/render-ahead.ts'
import { type TemporaryMedia, temporaryMedia } from '../temporary-media.ts'

/** A queue whose items wait until `begin` is called, and the ids that it has rendered. */
function heldQueue(media: TemporaryMedia, render: (item: Media) => Promise<void> = async () => undefined) {
  const idle = Promise.withResolvers<void>()
  const rendered: string[] = []
  const failures: unknown[] = []
  const workers = { whenIdle: () => idle.promise }
  const queue = createRenderAhead({
    catalog: media.catalog,
    async render(item) {
      rendered.push(item.id)
      await render(item)
    },
    workers,
    toolWorkers: workers,
    tools: new Map([['ffmpeg', '/usr/bin/ffmpeg']]),
    maxPixels: 100,
    onFailure: (_id, error) => failures.push(error),
  })
  const { add, stop } = queue
  return { add, stop, queue, rendered, failures, begin: idle.resolve }
}

const picture = { contentType: 'image/png', width: 10, height: 10 }
const bucketOne = 1 as BucketId

/** Stores pictures in the bucket `default`. */
async function storePictures(media: TemporaryMedia, ...changes: Partial<NewMedia>[]): Promise<NewMedia[]> {
  const bucketId = await media.bucket('default')
  const items = changes.map((change) => ({
    ...{ id: newMediaId(), filename: null, extension: 'png', size: 1, sha256: null, createdAt: 0 },
    ...picture,
    ...change,
  }))
  await media.catalog.addMedia(
    bucketId,
    items.map((item) => ({ item, bytes: null })),
  )
  return items
}

test('V16 items that were deleted or trashed, or have expired, are not rendered; of the others the newest is first', async () => {
  await using media = await temporaryMedia()
  const bucketId = await media.bucket('default')
  const { add, queue, rendered, begin } = heldQueue(media)
  const items = await storePictures(media, {}, {}, {}, {}, { expiresAt: 1 })
  const [first, second, deleted, trashed] = items.map(({ id }) => id)
  for (const item of items) add(bucketId, item)
  await media.catalog.removeMedia(
    bucketId,
    [deleted].flatMap((id) => id ?? []),
  )
  await media.catalog.setBucket('default', { trashDays: 1 })
  await media.catalog.removeMedia(
    bucketId,
    [trashed].flatMap((id) => id ?? []),
  )
  expect(queue.length).toBe(5)
  begin()
  await expect.poll(() => rendered.at(-1)).toBe(first)
  expect(rendered).toEqual([second, first])
})

test('V16 only items that may have variants, within the limit of pixels, are queued, and none after a stop', async () => {
  await using media = await temporaryMedia()
  const { add, stop, queue } = heldQueue(media)
  const lengthWith = (item: Partial<NewMedia>) => {
    add(bucketOne, { ...picture, id: newMediaId(), ...item })
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
  await using media = await temporaryMedia()
  const bucketId = await media.bucket('default')
  const { add, queue, rendered, begin } = heldQueue(media)
  const [early, late] = await storePictures(media, {}, {})
  const other = await media.bucket('other')
  if (early) add(bucketId, early)
  for (let times = 1; times < 10_000; times += 1) add(bucketId, { ...picture, id: newMediaId() })
  expect(queue.length).toBe(10_000)
  if (late) add(other, late)
  expect(queue.length).toBe(10_000)
  begin()
  await expect.poll(() => queue.length).toBe(0)
  expect(rendered).toEqual([late?.id])
})

test('V16 a render that has given way to requests is tried again, a few times; one that has failed is not', async () => {
  await using media = await temporaryMedia()
  const bucketId = await media.bucket('default')
  const [last, unexpected, failing, hindered] = await storePictures(media, {}, {}, {}, {})
  const error = new Error('the disk is gone')
  const { add, rendered, failures, begin } = heldQueue(media, async ({ id }) => {
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

test('V16 while uploads arrive, the queue rests longer after a render than the render took', async () => {
  await using media = await temporaryMedia()
  const bucketId = await media.bucket('default')
  const [second, first] = await storePictures(media, {}, {})
  const uploads: string[] = []
  const { add, rendered, begin } = heldQueue(media, async ({ id }) => {
    if (id === first?.id) await setTimeout(100)
    uploads.push(id)
  })
  for (const item of [second, first]) if (item) add(bucketId, item)
  begin()
  const text = { ...picture, id: newMediaId(), contentType: 'text/plain' }
  while (uploads.length === 0 || uploads.at(-1) !== second?.id) {
    add(bucketId, text)
    uploads.push(rendered.length === 1 ? 'upload' : 'before')
    await setTimeout(5)
  }
  const end = uploads.indexOf(first?.id ?? '')
  const during = uploads.slice(0, end).filter((upload) => upload === 'upload').length
  const after = uploads.slice(end).filter((upload) => upload === 'upload').length
  expect(after).toBeGreaterThan(during)
})
