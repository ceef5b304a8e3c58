import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  createClient,
  createUploadQueue,
  ProblemError,
  type UploadQueue,
} from '../../packages/client/src/index.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { startWatchedProxy } from '../harness/watched-proxy.ts'
import { newToken } from './buckets.ts'
import { memoryStore } from './memory-store.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '20MB' })
})
afterAll(() => server[Symbol.asyncDispose]())

const fileOf = (name: string, size = 1000) => new File([randomBytes(size)], name, { lastModified: 1 })

/** A proxy, and a client of a new bucket behind it. */
async function open() {
  const proxy = await startWatchedProxy(() => server.url)
  const token = await newToken(server, randomUUID())
  const client = createClient({ url: proxy.url, token, retry: { delay: 1 } })
  return { proxy, client, [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose]() }
}

const statuses = (queue: UploadQueue) => queue.state.uploads.map(({ status }) => status)
const settled = (queue: UploadQueue) => until('the end of the uploads', () => !queue.state.isSending)

async function namesOf(client: ReturnType<typeof createClient>): Promise<(string | null)[]> {
  const names: (string | null)[] = []
  for await (const { filename } of client.items()) names.push(filename)
  return names
}

test('U3 a queue stores files, reports every step as a new state, and stores them in order one at a time', async () => {
  await using opened = await open()
  const stored: string[] = []
  const queue = createUploadQueue(opened.client, {
    concurrency: 1,
    labels: { album: 'summer' },
    onStored: ({ labels }, { filename }) => stored.push(`${filename} ${labels?.['album']}`),
  })
  const seen: string[] = []
  queue.subscribe(() => seen.push(statuses(queue).join()))
  const before = queue.state
  const ids = queue.add([fileOf('a.bin'), { file: fileOf('b.bin', 2_000_000), filename: 'album/b.bin' }])
  expect([before.uploads, new Set(ids).size]).toEqual([[], 2])
  await settled(queue)
  expect(statuses(queue)).toEqual(['done', 'done'])
  expect([queue.state.sent, queue.state.total]).toEqual([2_001_000, 2_001_000])
  expect(seen).toEqual(
    expect.arrayContaining(['waiting,waiting', 'sending,waiting', 'done,sending', 'done,done']),
  )
  expect(stored).toEqual(['a.bin summer', 'album/b.bin summer'])
  expect(await namesOf(opened.client)).toEqual(['a.bin', 'b.bin'])
  expect(queue.state.uploads[1]?.media?.size).toBe(2_000_000)
  queue.clear()
  expect(queue.state).toEqual({ uploads: [], sent: 0, total: 0, isSending: false })
})

test('R6 a paused upload continues where it was, and its file is stored once', async () => {
  await using opened = await open()
  const { proxy, client } = opened
  const queue = createUploadQueue(client, { firstChunkSize: 1_000_000 })
  const reached = proxy.hold(({ offset }) => (offset ?? 0) > 0)
  const [id] = queue.add([fileOf('film.bin', 6_000_000)])
  await reached
  queue.pause()
  // At once, while the request that was aborted has not ended.
  queue.resume()
  queue.pause(id)
  expect(statuses(queue)).toEqual(['paused'])
  proxy.passed.length = 0
  queue.resume(id)
  await settled(queue)
  expect(statuses(queue)).toEqual(['done'])
  expect(proxy.chunks()[0]?.offset).toBe(1_000_000)
  expect(proxy.passed.filter(({ method, path }) => method === 'POST' && path === '/api/uploads')).toEqual([])
  expect(await namesOf(client)).toEqual(['film.bin'])
})

test('a small file that is paused starts again, and is stored once', async () => {
  await using opened = await open()
  const { proxy, client } = opened
  const queue = createUploadQueue(client)
  const reached = proxy.hold(({ path, bytes }) => path === '/api/media' && bytes > 0)
  queue.add([fileOf('small.bin', 900_000)])
  await reached
  // The proxy holds the request: not all bytes have been sent, as the connection takes no more.
  queue.pause()
  if (statuses(queue)[0] === 'sending') proxy.cut()
  else queue.resume()
  await settled(queue)
  expect([statuses(queue), await namesOf(client)]).toEqual([['done'], ['small.bin']])
})

test('an upload that the service refuses has its problem, and can be tried again', async () => {
  await using opened = await open()
  const { client } = opened
  let labels: Record<string, string> = { 'not a key!': 'x' }
  const queue = createUploadQueue(client, () => ({ labels }))
  const [id] = queue.add([fileOf('a.bin'), fileOf('too-large.bin', 21_000_000)])
  await settled(queue)
  expect(statuses(queue)).toEqual(['failed', 'failed'])
  const [small, large] = queue.state.uploads
  expect(small?.error).toBeInstanceOf(ProblemError)
  expect(large?.error).toMatchObject({ status: 413 })
  expect([queue.state.sent, queue.state.total]).toEqual([0, 0])
  labels = {}
  queue.retry()
  await settled(queue)
  expect(
    queue.state.uploads.map(({ status, error }) => [status, error && (error as ProblemError).status]),
  ).toEqual([
    ['done', null],
    ['failed', 413],
  ])
  queue.cancel(id)
  expect(queue.state.uploads).toHaveLength(2)
  queue.cancel()
  expect(statuses(queue)).toEqual(['done'])
})

test('R13 a cancelled upload leaves the list at once, and its bytes the service; others go on', async () => {
  await using opened = await open()
  const { proxy, client } = opened
  const queue = createUploadQueue(client, { concurrency: 1, firstChunkSize: 1_000_000 })
  const reached = proxy.hold(({ offset }) => (offset ?? 0) > 0)
  const [id] = queue.add([fileOf('film.bin', 6_000_000), fileOf('b.bin')])
  await reached
  queue.cancel(id)
  expect(queue.state.uploads.map(({ filename }) => filename)).toEqual(['b.bin'])
  await settled(queue)
  expect(await namesOf(client)).toEqual(['b.bin'])
  const removed = () =>
    proxy.passed.find(({ method, path }) => method === 'DELETE' && path.startsWith('/api/uploads/'))
  await until('the end of the upload', removed)
})

test('R9 an upload that is cancelled after its last byte deletes no item', async () => {
  const token = await newToken(server, randomUUID())
  const [stored, cancelled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const sent: string[] = []
  const size = 2_000_000
  const client = createClient({
    ...{ url: server.url, token },
    async fetch(input, init) {
      const { method } = new Request(input, init)
      sent.push(method)
      const response = await fetch(input, init)
      if (method !== 'PATCH' || response.headers.get('upload-offset') !== `${size}`) return response
      stored.resolve()
      await cancelled.promise
      throw new DOMException('aborted', 'AbortError')
    },
  })
  const queue = createUploadQueue(client)
  const [id] = queue.add([fileOf('film.bin', size), fileOf('b.bin')])
  await stored.promise
  queue.cancel(id)
  cancelled.resolve()
  await settled(queue)
  expect(await namesOf(client)).toEqual(expect.arrayContaining(['film.bin', 'b.bin']))
  expect(sent).not.toContain('DELETE')
})

test('R6 a closed queue with a resume store leaves its upload, which another queue continues; without one it removes it', async () => {
  await using opened = await open()
  const { proxy, client } = opened
  const resume = memoryStore()
  const options = { resume, firstChunkSize: 1_000_000 }
  const file = fileOf('film.bin', 6_000_000)
  const first = createUploadQueue(client, options)
  const reached = proxy.hold(({ offset }) => (offset ?? 0) > 0)
  first.add([file])
  await reached
  first.close()
  expect([first.state.uploads, resume.kept.size]).toEqual([[], 1])
  proxy.passed.length = 0
  const second = createUploadQueue(client, options)
  second.add([file])
  await settled(second)
  expect(proxy.chunks()[0]?.offset).toBe(1_000_000)
  expect(proxy.passed.filter(({ method }) => method === 'DELETE')).toEqual([])
  expect([await namesOf(client), resume.kept.size]).toEqual([['film.bin'], 0])
})

test('at most as many files as `concurrency` are sent at the same time', async () => {
  await using opened = await open()
  const queue = createUploadQueue(opened.client, { concurrency: 2 })
  let most = 0
  queue.subscribe(() => {
    most = Math.max(most, statuses(queue).filter((status) => status === 'sending').length)
  })
  queue.add(Array.from({ length: 12 }, (_, index) => fileOf(`${index}.bin`)))
  await settled(queue)
  expect([most, (await namesOf(opened.client)).length]).toEqual([2, 12])
})
