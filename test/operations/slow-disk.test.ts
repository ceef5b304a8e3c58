import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../harness/server.ts'
import { slowDisk } from '../harness/slow-disk.ts'
import { upload } from '../harness/upload.ts'

const disk = slowDisk()

let server: TestServer
beforeAll(async () => {
  server = await startServer({ NODE_OPTIONS: disk.options, MEDIABUCKET_CACHE: '2500kB' })
})
afterAll(() => server[Symbol.asyncDispose]())
afterEach(disk.release)

/** Stores files that the service does not hold in memory. */
const store = (count: number, size: number) =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const bytes = randomBytes(size)
      return { bytes, ...(await upload(server, bytes, { name: 'a.bin' })) }
    }),
  )

const hold = (...items: readonly { readonly id: string }[]) => disk.hold(items.map(({ id }) => id))

/** A download in progress. */
function download({ url, bytes }: { readonly url: string; readonly bytes: Buffer }) {
  let isDone = false
  const done = fetch(url).then(async (response) => {
    const received = Buffer.from(await response.arrayBuffer())
    isDone = true
    return response.status === 200 && received.equals(bytes)
  })
  return { done, isDone: () => isDone }
}

test('B1 while the disk does not respond, 16 downloads wait; listings and cached bytes do not', async () => {
  const cold = [...(await store(16, 300_000)), ...(await store(1, 2_000_000))]
  const [hot] = await store(1, 1_000)
  if (!hot) throw new Error('one item')
  expect(await download(hot).done).toBe(true)
  await hold(...cold)
  const downloads = cold.map(download)
  await disk.isWaitedFor()
  for (let count = 0; count < 50; count += 1) {
    expect((await server.request(`/api/media?page=${1 + (count % 2)}`)).status).toBe(200)
    expect(await download(hot).done).toBe(true)
  }
  expect(downloads.filter(({ isDone }) => isDone())).toEqual([])
  disk.release()
  expect(await Promise.all(downloads.map(({ done }) => done))).toEqual(cold.map(() => true))
})

test('B1 a file that the disk does not return delays no download that begins later', async () => {
  const [slow, ...others] = await store(13, 200_000)
  if (!slow) throw new Error('items')
  await hold(slow)
  const waiting = download(slow)
  await disk.isWaitedFor()
  for (const item of others) expect(await download(item).done).toBe(true)
  expect(waiting.isDone()).toBe(false)
  disk.release()
  expect(await waiting.done).toBe(true)
})
