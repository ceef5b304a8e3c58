import { randomBytes } from 'node:crypto'
import { globSync, rmSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startServer, type TestServer } from '../harness/server.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'

/** While this file exists, calls for the blobs that it names block their thread, as a slow disk does. */
const held = join(tmpdir(), uniqueName('held'))

/** A module that is loaded before the service, also in its threads. A blocked thread writes `blocked` into its own file. */
const slowDisk = `--import data:text/javascript,${encodeURIComponent(`
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  import { threadId } from 'node:worker_threads'
  const held = ${JSON.stringify(held)}
  const { readFileSync, writeFileSync } = fs
  const cell = new Int32Array(new SharedArrayBuffer(4))
  const names = () => {
    try {
      return readFileSync(held, 'utf8')
    } catch {
      return ''
    }
  }
  const paths = new Map()
  function wait(path) {
    const name = /\\/blobs\\/\\w\\w\\/(\\w+)$/.exec(String(path))?.[1]
    if (name === undefined) return
    while (names().includes(name)) {
      writeFileSync(held + '.blocked.' + threadId, 'blocked')
      Atomics.wait(cell, 0, 0, 5)
    }
  }
  const { openSync, readSync, lstatSync } = fs
  fs.openSync = (path, ...rest) => {
    wait(path)
    const descriptor = openSync(path, ...rest)
    paths.set(descriptor, path)
    return descriptor
  }
  fs.readSync = (descriptor, ...rest) => {
    wait(paths.get(descriptor))
    return readSync(descriptor, ...rest)
  }
  fs.lstatSync = (path, ...rest) => {
    wait(path)
    return lstatSync(path, ...rest)
  }
  syncBuiltinESMExports()
`)}`

let server: TestServer
beforeAll(async () => {
  server = await startServer({ NODE_OPTIONS: slowDisk, MEDIABUCKET_CACHE: '2500kB' })
})
afterAll(() => server[Symbol.asyncDispose]())
afterEach(() => {
  for (const path of [held, ...globSync(`${held}.blocked.*`)]) rmSync(path, { force: true })
})

/** Stores files that the service does not hold in memory. */
const store = (count: number, size: number) =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const bytes = randomBytes(size)
      return { bytes, ...(await upload(server, bytes, { name: 'a.bin' })) }
    }),
  )

const hold = async (...items: readonly { readonly id: string }[]) =>
  writeFile(held, items.map(({ id }) => id).join(' '))

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

const threadIsBlocked = () =>
  until('a thread waits for the disk', () => globSync(`${held}.blocked.*`).length > 0)

test('B1 while the disk does not respond, 16 downloads wait; listings and cached bytes do not', async () => {
  const cold = [...(await store(16, 300_000)), ...(await store(1, 2_000_000))]
  const [hot] = await store(1, 1_000)
  if (!hot) throw new Error('one item')
  expect(await download(hot).done).toBe(true)
  await hold(...cold)
  const downloads = cold.map(download)
  await threadIsBlocked()
  for (let count = 0; count < 50; count += 1) {
    expect((await server.request(`/api/media?page=${1 + (count % 2)}`)).status).toBe(200)
    expect(await download(hot).done).toBe(true)
  }
  expect(downloads.filter(({ isDone }) => isDone())).toEqual([])
  await rm(held)
  expect(await Promise.all(downloads.map(({ done }) => done))).toEqual(cold.map(() => true))
})

test('B1 a file that the disk does not return delays no download that begins later', async () => {
  const [slow, ...others] = await store(13, 200_000)
  if (!slow) throw new Error('items')
  await hold(slow)
  const waiting = download(slow)
  await threadIsBlocked()
  for (const item of others) expect(await download(item).done).toBe(true)
  expect(waiting.isDone()).toBe(false)
  await rm(held)
  expect(await waiting.done).toBe(true)
})
