import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { gateway } from '../../../../../test/harness/ceph.ts'
import { newItemId } from '../../../src/core/ids.ts'
import { createIntentSweep } from '../../../src/items/blob-deletion.ts'
import { BlobTruncatedError, type OpenBlob } from '../../../src/storage/blobs/blobs.ts'
import { thumb } from '../../variant-samples.ts'
import { chunksOf, readBytes, receiveBytes, storeBytes } from './blob-contract.ts'
import { faultyGateway, type Treatment } from './faulty-gateway.ts'
import { temporaryS3Store } from './temporary-s3-store.ts'

/** For a store that does not respond. */
const hasty = { short: 2_000, part: 4_000, stall: 500 }
/** For a store that responds, also on a busy machine. */
const patient = { short: 30_000, part: 60_000, stall: 30_000 }

/** A store behind a proxy with faults; `state.treat` chooses them. */
async function faultyStore(timeouts = patient) {
  const state: { treat: (method: string, query: string) => Treatment } = { treat: () => 'pass' }
  const ceph = await gateway()
  const proxy = await faultyGateway(ceph, ({ method = '', url = '' }) => state.treat(method, url))
  const opened = await temporaryS3Store({
    endpoint: proxy.endpoint,
    lifetime: 0,
    timeouts,
  })
  const sweep = createIntentSweep({
    catalog: opened.catalog,
    blobs: opened.store,
    onDeletionFailure: (id, error) => expect.unreachable(`${id}: ${error}`),
  })
  return {
    ...opened,
    state,
    requests: proxy.requests,
    sweep,
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      await proxy[Symbol.asyncDispose]()
    },
  }
}

/** The bytes as a response receives them, which counts them. */
async function bodyOf({ content }: OpenBlob, start: number, end: number): Promise<Buffer> {
  if (content.type !== 'object') throw new Error('the blob is an object')
  const bytes = await buffer(await content.stream(start, end))
  if (bytes.length !== end - start + 1) throw new BlobTruncatedError('the stream ended early')
  return bytes
}

const unavailable = { code: 'storage-unavailable' }

describe('faults of an S3 store', () => {
  test.each<[string, Treatment]>([
    ['responds with 500', { status: 500 }],
    ['responds with 503', { status: 503 }],
    ['responds with 403', { status: 403 }],
    ['does not respond', 'stall'],
    ['resets connections', 'reset'],
  ])(
    'S9 while the store %s, reads and uploads fail in time, and then work again',
    async (_what, treatment) => {
      await using opened = await faultyStore(hasty)
      const { store, state } = opened
      const bytes = randomBytes(100_000)
      const id = await storeBytes(store, bytes)
      state.treat = () => treatment
      const results = await Promise.allSettled([
        store.open(id),
        store.open(id, 1_000_000),
        receiveBytes(store, bytes),
        store.receive(newItemId(), chunksOf(randomBytes(9_000_000), 65_536), 1e9),
        store.remove(id),
        store.variants.store(id, thumb.key, bytes),
      ])
      for (const result of results) expect(result).toMatchObject({ status: 'rejected', reason: unavailable })
      expect(await store.isReachable()).toBe(false)
      state.treat = () => 'pass'
      expect((await readBytes(store, id))?.equals(bytes)).toBe(true)
      expect((await receiveBytes(store, bytes)).size).toBe(100_000)
    },
  )

  test('U10 an upload during one failed request of each kind succeeds, because the request is repeated', async () => {
    await using opened = await faultyStore()
    const { store, state } = opened
    const failed = new Set<string>()
    state.treat = (method, url) => {
      const kind = `${method} ${/partNumber=\d+/.exec(url)?.[0] ?? ''}`
      if (method === 'POST' || failed.has(kind)) return 'pass'
      failed.add(kind)
      return { status: 503 }
    }
    const bytes = randomBytes(20_000_000)
    const received = await store.receive(newItemId(), chunksOf(bytes, 65_536), 1e9)
    await store.commit([received])
    expect((await readBytes(store, received.id))?.equals(bytes)).toBe(true)
  })

  test.each([
    ['of one request', 100_000],
    ['in parts', 20_000_000],
  ])('U10 an upload %s whose answers are lost is stored once', async (_what, size) => {
    await using opened = await faultyStore()
    const { store, state } = opened
    const lost = new Set<string>()
    state.treat = (method, url) => {
      // Each answer is lost once, except that with the id of the multipart upload.
      if (method === 'GET' || method === 'HEAD' || /[?&]uploads/.test(url) || lost.has(method + url))
        return 'pass'
      lost.add(method + url)
      return 'lose-answer'
    }
    const bytes = randomBytes(size)
    const received = await store.receive(newItemId(), chunksOf(bytes, 65_536), 1e9)
    await store.commit([received])
    expect((await readBytes(store, received.id))?.equals(bytes)).toBe(true)
    expect([lost.size > 0, await opened.count()]).toEqual([true, 1])
  })

  test('S8 bytes of an upload whose outcome is unknown are removed by the sweep', async () => {
    await using opened = await faultyStore()
    const { store, state, sweep } = opened
    // The store executes the request, and neither its answer nor the removal arrives.
    state.treat = (method) => (method === 'PUT' ? 'lose-answer' : { status: 500 })
    await expect(receiveBytes(store, randomBytes(1_000))).rejects.toMatchObject(unavailable)
    state.treat = () => 'pass'
    expect(await opened.count()).toBe(1)
    expect([await sweep(), await sweep(), await opened.count()]).toEqual([0, 1, 0])
  })

  test('U2 all files of a refused request are removed, however slow the store is', async () => {
    const deadline = 3_000
    await using opened = await faultyStore({ ...patient, short: deadline })
    const { store, state } = opened
    const pause = 25
    const count = deadline / pause + 1
    const files = await Promise.all(Array.from({ length: count }, () => receiveBytes(store, randomBytes(10))))
    // The store removes one object at a time: all together take longer than the deadline of each.
    let free = performance.now()
    state.treat = (method) => {
      if (method !== 'DELETE') return 'pass'
      free = Math.max(free, performance.now()) + pause
      return { delay: free - performance.now() }
    }
    await store.discard(files)
    expect(await opened.count()).toBe(0)
  })

  test('U2 a refused request waits for one deadline of a store that does not respond, however many files it has', async () => {
    await using opened = await faultyStore({ ...patient, short: hasty.short })
    const { store, state, sweep } = opened
    const files = await Promise.all(Array.from({ length: 100 }, () => receiveBytes(store, randomBytes(10))))
    const called = new Set<string>()
    state.treat = (method, url) => {
      if (method === 'DELETE') called.add(url)
      return 'stall'
    }
    await store.discard(files)
    // Those that are sent at the same time have the same deadline.
    expect(called.size).toBe(16)
    state.treat = () => 'pass'
    expect([await sweep(), await sweep(), await opened.count()]).toEqual([0, 100, 0])
  })

  test.each([
    ['of one request', 100_000],
    ['in parts', 20_000_000],
  ])('U5 the store refuses an upload %s that was changed on its way', async (_what, size) => {
    await using opened = await faultyStore()
    const { store, state } = opened
    state.treat = (method) => (method === 'PUT' ? 'corrupt' : 'pass')
    const upload = store.receive(newItemId(), chunksOf(randomBytes(size), 65_536), 1e9)
    await expect(upload).rejects.toMatchObject(unavailable)
    expect(await opened.count()).toBe(0)
  })

  test.each<[string, Treatment, unknown]>([
    ['ends', 'cut', expect.anything()],
    ['stops', 'stall-body', unavailable],
  ])(
    'B9 a download whose connection %s early fails, and is never complete',
    async (_what, treatment, error) => {
      await using opened = await faultyStore({ ...patient, stall: hasty.stall })
      const { store, state } = opened
      const id = await storeBytes(store, randomBytes(2_000_000))
      const blob = await store.open(id)
      state.treat = (method) => (method === 'GET' ? treatment : 'pass')
      if (!blob) throw new Error('the blob was stored')
      await expect(buffer(blob.stream(0, 1_999_999))).rejects.toMatchObject(error as Error)
      await expect(bodyOf(blob, 0, 1_999_999)).rejects.toMatchObject(error as Error)
      await expect(store.open(id, 4_000_000)).rejects.toMatchObject(error as Error)
      await expect(blob.read(new Uint8Array(1_000_000), 500_000)).rejects.toMatchObject(error as Error)
    },
  )

  test.each([
    ['at its start', 0],
    ['near its end', 7_990_000],
  ])('N6 a reader of a download that pauses %s is no fault of the store', async (_what, pauseAt) => {
    await using opened = await faultyStore({ ...patient, stall: hasty.stall })
    const bytes = randomBytes(8_000_000)
    const id = await storeBytes(opened.store, bytes)
    const blob = await opened.store.open(id)
    if (blob?.content.type !== 'object') throw new Error('the blob is an object')
    const body = await blob.content.stream(0, bytes.length - 1)
    const received: Buffer[] = []
    // Longer than the store may be silent.
    const pause = () => new Promise((done) => setTimeout(done, 3 * hasty.stall))
    const take = async (size: number) => {
      for (let left = size; left > 0; ) {
        if (body.errored) throw body.errored
        if (body.readableLength === 0) await once(body, 'readable')
        const some: Buffer | null = body.read(Math.min(left, body.readableLength))
        left -= some?.byteLength ?? 0
        if (some) received.push(some)
      }
    }
    await take(pauseAt)
    await pause()
    await take(bytes.length - pauseAt)
    await once(body.resume(), 'end')
    expect(Buffer.concat(received).equals(bytes)).toBe(true)
  })

  test.each([100_000, 2_000_000])(
    'M2 the bytes of an item that is deleted after they were opened are unknown: %d',
    async (size) => {
      await using opened = await faultyStore()
      const { store } = opened
      const id = await storeBytes(store, randomBytes(size))
      const blob = await store.open(id)
      await store.remove(id)
      if (!blob) throw new Error('the blob was stored')
      await expect(bodyOf(blob, 0, size - 1)).rejects.toMatchObject({ code: 'media-unknown' })
      await expect(blob.share()).rejects.toMatchObject({ code: 'media-unknown' })
    },
  )

  test('S9 a large download that fails before its first byte is requested again', async () => {
    await using opened = await faultyStore()
    const { store, state } = opened
    const bytes = randomBytes(2_000_000)
    const blob = await store.open(await storeBytes(store, bytes))
    if (!blob) throw new Error('the blob was stored')
    for (const treatment of ['reset', { status: 500 }] as const) {
      let isFirst = true
      state.treat = (method) => {
        const isFailing = method === 'GET' && isFirst
        if (method === 'GET') isFirst = false
        return isFailing ? treatment : 'pass'
      }
      expect((await bodyOf(blob, 0, bytes.length - 1)).equals(bytes)).toBe(true)
    }
    state.treat = () => ({ status: 503 })
    await expect(bodyOf(blob, 0, bytes.length - 1)).rejects.toMatchObject(unavailable)
  })

  test('B9 an object that was replaced by a shorter one is an error, never a short response', async () => {
    await using opened = await faultyStore()
    const { store, calls, location } = opened
    const id = await storeBytes(store, randomBytes(2_000_000))
    const blob = await store.open(id)
    await calls.remove(`${location.prefix}${id}`)
    await storeBytes(store, randomBytes(100_000), id)
    if (!blob) throw new Error('the blob was stored')
    await expect(buffer(blob.stream(0, 1_999_999))).rejects.toThrow(BlobTruncatedError)
    await expect(bodyOf(blob, 0, 1_999_999)).rejects.toThrow(BlobTruncatedError)
  })
})
