import { afterEach, expect, test, vi } from 'vitest'
import { until } from '../../../../test/harness/until.ts'
import { service } from '../../src/core/token-rules.ts'
import { failureKeyOf } from '../../src/core/variants.ts'
import { openBytesOperation } from '../../src/downloads/bytes-cache.ts'
import { ItemRemover } from '../../src/items/deletion.ts'
import {
  PictureOverLimits,
  PictureTaskPreempted,
  PictureWorkersBusy,
  VariantPending,
} from '../../src/pictures/picture-queue.ts'
import type { PictureResult } from '../../src/pictures/picture-task.ts'
import { Variants } from '../../src/pictures/rendered-variants.ts'
import type { BlobStore } from '../../src/storage/blobs/blobs.ts'
import type { Catalog } from '../../src/storage/catalog/catalog.ts'
import type { Item } from '../../src/storage/catalog/records.ts'
import { readVariant } from '../storage/blobs/variant-contract.ts'
import { type TemporaryData, temporaryData } from '../uploads/temporary-media.ts'
import { medium, thumb } from '../variant-samples.ts'
import { withMethods } from '../with-methods.ts'

afterEach(() => {
  vi.useRealTimers()
})

const rendered = Buffer.from('a picture')
const preview = { thumbhash: new Uint8Array([1, 2, 3]), duration: null, width: 4, height: 3 }

/** Variants whose renders wait until the test ends them. */
function slowVariants(
  data: TemporaryData,
  change: Partial<BlobStore['variants']> = {},
  catalogChange: Partial<Pick<Catalog, 'setPreview'>> = {},
  renderer: string | (() => Promise<string>) = 'version 1',
) {
  const renders: { resolve: (result: PictureResult) => void; reject: (error: Error) => void }[] = []
  const outcomes: string[] = []
  const storeFailures: unknown[] = []
  const lostFailures: unknown[] = []
  const opening = { closed: 0, shared: 0, released: 0, share: Promise.resolve(), release: Promise.resolve() }
  const catalog = { ...data.catalog, ...catalogChange }
  const run = () =>
    new Promise<PictureResult>((resolve, reject) => {
      renders.push({ resolve, reject })
    })
  const blobs = withMethods(data.blobs, { variants: withMethods(data.blobs.variants, change) })
  const openBytes = openBytesOperation({ catalog, blobs })
  const variants = new Variants({
    catalog,
    blobs,
    async openBytes(item) {
      const opened = await openBytes(item)
      return withMethods(opened, {
        async share() {
          opening.shared += 1
          await opening.share
          const shared = await opened.share()
          const release = async () => {
            opening.released += 1
            await opening.release
            await shared.release()
          }
          return { ...shared, release }
        },
        async close() {
          await opened.close()
          opening.closed += 1
        },
      })
    },
    workers: { run, runAhead: run },
    toolWorkers: { run: () => expect.unreachable(), runAhead: () => expect.unreachable() },
    tools: new Map(),
    maxPixels: 1,
    animationTime: 0,
    rendererOf: async () => (typeof renderer === 'string' ? renderer : renderer()),
    hasRoom: () => true,
    onRendered: ({ outcome }) => outcomes.push(outcome),
    onOverLimits: (id) => outcomes.push(id),
    onStoreFailure: (_id, error) => storeFailures.push(error),
    onLostFailure: (_id, error) => lostFailures.push(error),
    onUnsupported: (reason) => outcomes.push(reason),
  })
  const finish = async () => {
    await expect.poll(() => renders.length).toBeGreaterThan(0)
    renders.shift()?.resolve({ outcome: 'resized', bytes: rendered, preview })
  }
  const fail = async () => {
    await expect.poll(() => renders.length).toBeGreaterThan(0)
    renders.shift()?.reject(new PictureOverLimits('over the limits'))
  }
  return Object.assign(variants, { renders, opening, outcomes, storeFailures, lostFailures, finish, fail })
}

/** Variants whose second lookup of `thumb` ends when the test ends it. */
function slowLookup(data: TemporaryData) {
  const ended = Promise.withResolvers<void>()
  let lookups = 0
  const variants = slowVariants(data, {
    async open(id, key, options) {
      const found = await data.blobs.variants.open(id, key, options)
      if (key === thumb.key) lookups += 1
      if (lookups === 2) await ended.promise
      return found
    },
  })
  return { variants, lookups: () => lookups, endLookup: ended.resolve }
}

/** An item whose stored type is a picture. */
const asPicture = async (data: TemporaryData): Promise<Item> => ({
  ...(await data.store('bytes')),
  contentType: 'image/png',
})

async function remove(data: TemporaryData, { bucketId, id }: Item): Promise<void> {
  const removal = new ItemRemover({
    ...data,
    onDeletionFailure: (_id, error) => expect(error).toBeNull(),
  })
  await removal.remove(bucketId, id, service)
  await removal.idle()
}

const removed = { code: 'media-unknown', message: 'There is no such item.' }

test('V7 an item deleted during the render is media-unknown, and no variant is stored', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const variants = slowVariants(data)
  const opening = variants.open(item, thumb)
  const refused = expect(opening).rejects.toMatchObject(removed)
  await expect.poll(() => variants.renders.length).toBe(1)
  await remove(data, item)
  await variants.finish()
  await refused
  await variants.idle()
  expect(await readVariant(data.blobs, item.id, thumb.key)).toBeNull()
})

test('V7 the variant of an item deleted while the variant is stored is removed', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const variants = slowVariants(data, {
    async store(...args) {
      await remove(data, item)
      await data.blobs.variants.store(...args)
    },
  })
  const opening = variants.open(item, thumb)
  await variants.finish()
  await opening.catch((error) => expect(error).toMatchObject(removed))
  await variants.idle()
  expect(await readVariant(data.blobs, item.id, thumb.key)).toBeNull()
})

test('V5 concurrent requests share one render, and succeed even if the variant cannot be stored', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const failure = new Error('no room')
  const variants = slowVariants(data, { store: () => Promise.reject(failure) })
  const opening = Array.from({ length: 5 }, () => variants.open(item, thumb))
  await variants.finish()
  for (const opened of await Promise.all(opening)) {
    const bytes = Buffer.alloc(opened.size - 2)
    await opened.read(bytes, 2)
    expect(bytes).toEqual(rendered.subarray(2))
  }
  await variants.idle()
  expect([variants.renders, variants.outcomes, variants.storeFailures]).toEqual([[], ['made'], [failure]])
})

test.each(['open', 'renderAhead'] as const)(
  'V5 %s does not render a variant again that is stored while it looks the variant up',
  async (method) => {
    await using data = await temporaryData()
    const item = await asPicture(data)
    const { variants, lookups, endLookup } = slowLookup(data)
    const first = variants.open(item, thumb)
    await expect.poll(() => variants.renders.length).toBe(1)
    let isSettled = false
    const second = Promise.resolve(variants[method](item, thumb)).finally(() => {
      isSettled = true
    })
    await expect.poll(() => lookups() === 2 || isSettled).toBe(true)
    await variants.finish()
    await first
    await variants.idle()
    endLookup()
    await expect.poll(() => isSettled || variants.renders.length > 0).toBe(true)
    expect(variants.renders).toEqual([])
    await second
  },
)

test('V6 a request starts another render if the one in progress fails while it looks the variant up', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const { variants, lookups, endLookup } = slowLookup(data)
  const first = variants.open(item, thumb)
  await expect.poll(() => variants.renders.length).toBe(1)
  const second = variants.open(item, thumb)
  await expect.poll(lookups).toBe(2)
  variants.renders.shift()?.reject(new PictureWorkersBusy('busy'))
  await expect(first).rejects.toMatchObject({ code: 'variants-busy' })
  endLookup()
  await variants.finish()
  expect((await second).size).toBe(rendered.length)
  await variants.idle()
})

test('V17 requests for one variant that wait for different times share its render', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const variants = slowVariants(data)
  const waiting = [variants.open(item, thumb), variants.open(item, thumb, { wait: 60 })]
  for (let times = 0; times < 2; times += 1)
    await expect(variants.open(item, thumb, { wait: 0 })).rejects.toBeInstanceOf(VariantPending)
  await variants.finish()
  for (const { size } of await Promise.all(waiting)) expect(size).toBe(rendered.length)
  await variants.idle()
  expect((await variants.open(item, thumb, { wait: 0 })).size).toBe(rendered.length)
  expect(variants.outcomes).toEqual(['made'])
})

test('V6 no variant of a picture that exceeded the limits is rendered before the retry delay, and none after a second failure', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const variants = slowVariants(data)
  const opening = expect(variants.open(item, thumb)).rejects.toMatchObject({ code: 'variant-unavailable' })
  await variants.fail()
  await opening
  await expect(variants.open(item, thumb)).rejects.toMatchObject({ code: 'variant-unavailable' })
  await expect(variants.open(item, medium)).rejects.toMatchObject({ code: 'variant-unavailable' })
  expect([variants.renders, variants.outcomes]).toEqual([[], ['too-hard', item.id]])
})

test('V6 failures outlive the process, until the item is tried again after a delay, or rendered by another version', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const unavailable = { code: 'variant-unavailable' }
  const failing = async (variants: ReturnType<typeof slowVariants>) => {
    const opening = expect(variants.open(item, thumb)).rejects.toMatchObject(unavailable)
    await variants.fail()
    await opening
  }
  const refusing = async (restarted = slowVariants(data)) => {
    await expect(restarted.open(item, medium)).rejects.toMatchObject(unavailable)
    expect(restarted.renders).toEqual([])
  }
  vi.useFakeTimers({ toFake: ['Date'] })
  await failing(slowVariants(data))
  await refusing()
  vi.setSystemTime(Date.now() + 60_000)
  await failing(slowVariants(data))
  vi.setSystemTime(Date.now() + 365 * 86_400_000)
  await refusing()

  const upgraded = slowVariants(data, {}, {}, 'version 2')
  const opening = upgraded.open(item, thumb)
  await upgraded.finish()
  await opening
  await upgraded.idle()

  await remove(data, item)
  for (const renderer of ['version 1', 'version 2'])
    expect(await readVariant(data.blobs, item.id, failureKeyOf(renderer))).toBeNull()
})

test('V6 a failure is stored as soon as the version of the renderer can be read', async () => {
  await using data = await temporaryData()
  const [first, second] = [await asPicture(data), await asPicture(data)]
  const error = new Error('no process can be started')
  let reads = 0
  const variants = slowVariants(data, {}, {}, async () => {
    reads += 1
    if (reads <= 3) throw error
    return 'version 1'
  })
  const unavailable = { code: 'variant-unavailable' }
  for (const item of [first, second]) {
    const opening = expect(variants.open(item, thumb)).rejects.toMatchObject(unavailable)
    await variants.fail()
    await opening
  }
  // The search before the first render, and the search and the storage after it.
  expect(variants.lostFailures).toEqual([error, error, error])
  const restarted = slowVariants(data)
  await expect(restarted.open(second, medium)).rejects.toMatchObject(unavailable)
  expect(restarted.renders).toEqual([])
})

test('V6 a failure that was stored while the clock was ahead does not delay the next render until then', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  vi.useFakeTimers({ toFake: ['Date'] })
  const now = Date.now()
  vi.setSystemTime(now + 365 * 86_400_000)
  const variants = slowVariants(data)
  const opening = expect(variants.open(item, thumb)).rejects.toMatchObject({ code: 'variant-unavailable' })
  await variants.fail()
  await opening
  vi.setSystemTime(now)
  const again = variants.open(item, thumb)
  await variants.finish()
  expect((await again).size).toBe(rendered.length)
  await variants.idle()
})

test('V13 what the first render has found is recorded once, and needs no further render', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const variants = slowVariants(data)
  const revision = async () => (await data.catalog.page(item.bucketId, 1)).revision
  const revisions = [await revision()]
  for (const variant of [thumb, medium]) {
    const opened = variants.open(item, variant)
    await variants.finish()
    await opened
    await variants.idle()
    revisions.push(await revision())
  }
  expect(await data.catalog.item(item.id)).toMatchObject(preview)
  const [before, afterFirst, afterSecond] = revisions
  expect(afterFirst).toBeGreaterThan(before ?? 0)
  expect(afterSecond).toBe(afterFirst)
})

test('V5, V13 a variant is rendered once even if what its render has found cannot be recorded', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const failure = new Error('the catalog cannot be written')
  const variants = slowVariants(data, {}, { setPreview: () => Promise.reject(failure) })
  const opening = variants.open(item, thumb)
  await variants.finish()
  await opening
  await variants.idle()
  expect(await readVariant(data.blobs, item.id, thumb.key)).toEqual(rendered)
  const stored = await variants.open(item, thumb)
  await stored.close()
  expect([variants.renders, variants.outcomes, variants.storeFailures]).toEqual([[], ['made'], [failure]])
})

test.each(['open', 'renderAhead'] as const)(
  'O5 the variant of a render whose result has arrived is stored before `idle` resolves (%s)',
  async (render) => {
    await using data = await temporaryData()
    const item = await asPicture(data)
    const events: string[] = []
    const variants = slowVariants(data, {
      async store(...args) {
        await data.blobs.variants.store(...args)
        events.push('stored')
      },
    })
    const released = Promise.withResolvers<void>()
    variants.opening.release = released.promise
    const rendering = variants[render](item, thumb)
    await variants.finish()
    await until('the file is being released', () => variants.opening.released === 1)
    const settled = variants.idle().then(() => events.push('settled'))
    released.resolve()
    await Promise.all([rendering, settled])
    expect(events).toEqual(['stored', 'settled'])
  },
)

test('O5 `idle` does not wait for a render whose picture is still being downloaded', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const variants = slowVariants(data)
  const downloaded = Promise.withResolvers<void>()
  variants.opening.share = downloaded.promise
  const opening = variants.open(item, thumb)
  await until('the download begins', () => variants.opening.shared === 1)
  await variants.idle()
  downloaded.resolve()
  await variants.finish()
  expect((await opening).size).toBe(rendered.length)
  await variants.idle()
})

test('V16 requests that share a render ahead render again if it has given way to other requests', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const variants = slowVariants(data)
  const ahead = expect(variants.renderAhead(item, thumb)).rejects.toMatchObject({
    name: 'PictureTaskPreempted',
  })
  await until('the render begins', () => variants.renders.length === 1)
  const opening = [variants.open(item, thumb), variants.open(item, thumb)]
  // Then they find a render or begin one.
  await until('both have found the bytes', () => variants.opening.closed === 3)
  expect(variants.renders).toHaveLength(1)
  variants.renders.shift()?.reject(new PictureTaskPreempted('requests need the workers'))
  await ahead
  await variants.finish()
  for (const opened of await Promise.all(opening)) expect(opened.size).toBe(rendered.length)
  await variants.idle()
  expect([variants.renders, variants.outcomes]).toEqual([[], ['made']])
})

test('V16 a request shares a render ahead, and a later render ahead finds the stored variant', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const variants = slowVariants(data)
  const ahead = variants.renderAhead(item, thumb)
  await expect.poll(() => variants.renders.length).toBe(1)
  const opening = variants.open(item, thumb)
  await variants.finish()
  expect((await opening).size).toBe(rendered.length)
  await ahead
  expect((await data.catalog.item(item.id))?.thumbhash).toEqual(preview.thumbhash)
  await variants.renderAhead(item, thumb)
  expect([variants.renders, variants.outcomes]).toEqual([[], ['made']])
})

test('V16, V6 a render ahead that exceeded the limits is remembered as that of a request', async () => {
  await using data = await temporaryData()
  const item = await asPicture(data)
  const variants = slowVariants(data)
  const ahead = expect(variants.renderAhead(item, thumb)).rejects.toMatchObject({
    code: 'variant-unavailable',
  })
  await variants.fail()
  await ahead
  for (const again of [variants.open(item, thumb), variants.renderAhead(item, thumb)])
    await expect(again).rejects.toMatchObject({ code: 'variant-unavailable' })
  expect([variants.renders, variants.outcomes]).toEqual([[], ['too-hard', item.id]])
})
