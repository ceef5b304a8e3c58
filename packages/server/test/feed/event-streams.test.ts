import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { TickQueue } from '../../src/core/tasks.ts'
import { service } from '../../src/core/token-rules.ts'
import { Feed } from '../../src/feed/change-feed.ts'
import { type EventFormatter, EventStreams } from '../../src/feed/event-streams.ts'
import { Metrics } from '../../src/http/metrics.ts'
import { emptyLine } from '../../src/http/request-log.ts'
import { openSqliteCatalog } from '../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import type { ChangeRows } from '../../src/storage/catalog/feed/feed.ts'
import { get, serve } from '../http/exchange.ts'
import { hashOf, inBlobStore, newBucket, newItems } from '../storage/catalog/samples.ts'
import { tempDirectory } from '../storage/catalog/temp-directory.ts'

/** A catalog with a bucket of as many items, and streams of its feed that begin with the first change. */
async function prepare(parts: {
  readonly items: number
  readonly eventFormatter?: EventFormatter
  readonly error?: Error
  /** What the token is granted later. */
  readonly later?: object
}) {
  const { items, error, later = {}, eventFormatter = async () => () => ':\n\n' } = parts
  const catalog = await openSqliteCatalog({ directory: join(tempDirectory(), 'data'), writer: 'direct' })
  onTestFinished(() => catalog.close())
  const bucketId = await newBucket(catalog, 'b')
  await catalog.addItems(bucketId, inBlobStore(newItems(items)))
  const grant = (await catalog.findGrant(hashOf('b'))) ?? expect.unreachable()
  const caller = { ...grant, actor: service }
  const readChanges = vi.fn(catalog.readChanges)
  if (error !== undefined) readChanges.mockRejectedValue(error)
  const feed = new Feed({ catalog: { ...catalog, readChanges } })
  const lines: string[] = []
  const log = pino({}, { write: (line: string) => void lines.push(line) })
  const closing = new AbortController()
  onTestFinished(() => closing.abort())
  const streams = new EventStreams(
    {
      ...{ authorize: async () => ({ ...caller, ...later }), closing: closing.signal, log },
      ...{ metrics: new Metrics(), tickQueue: new TickQueue() },
    },
    { feed, eventFormatter, idleTimeout: 60_000 },
  )
  const open = (request: ServerResponse['req'], response: ServerResponse) =>
    streams.open(
      { id: 'r', request, response, line: emptyLine(), params: {}, query: {} },
      ...([caller, { number: 0, seen: 0 }, {}] as const),
    )
  return { catalog, bucketId, feed, readChanges, streams, open, lines }
}

test('FE7 the reads that streams share are kept while they are recent', async () => {
  const { bucketId, feed, readChanges } = await prepare({ items: 1_200 })
  const bucket = feed.follow(bucketId, () => {})
  onTestFinished(() => bucket.stop())
  let [next, last] = [0, 0]
  for (let hasMore = true; hasMore; ) {
    const rows: ChangeRows = (await bucket.read(next)) ?? expect.unreachable()
    last = next
    ;({ next, hasMore } = rows)
  }
  readChanges.mockClear()
  await bucket.read(last)
  expect(readChanges).not.toHaveBeenCalled()
  await Promise.all([bucket.read(0), bucket.read(0)])
  expect(readChanges).toHaveBeenCalledTimes(1)
})

test('FE6 requests that wait share their reads, and read again only after a change', async () => {
  const { catalog, bucketId, feed, readChanges } = await prepare({ items: 2 })
  const { next } = (await catalog.readChanges(bucketId, 'now', 0)) ?? expect.unreachable()
  // The catalog calls a new watcher once.
  const calls = vi.fn()
  const followed = feed.follow(bucketId, calls)
  onTestFinished(() => followed.stop())
  await expect.poll(() => calls.mock.calls.length).toBe(1)
  const verify = vi.fn(async () => {})
  const { signal } = new AbortController()
  const waiting = [1, 2, 3].map(() => feed.wait(bucketId, next, { signal, interval: 2, verify }))
  await expect.poll(() => verify.mock.calls.length).toBeGreaterThan(20)
  expect(readChanges).toHaveBeenCalledTimes(1)
  const [item] = newItems(1)
  await catalog.addItems(bucketId, inBlobStore(item ? [item] : []))
  for (const { changes } of await Promise.all(waiting))
    expect(changes.map(({ itemId }) => itemId)).toEqual([item?.id])
  // The change rings at once, and once more when the catalog has compared the revisions.
  expect(readChanges.mock.calls.length).toBeLessThanOrEqual(3)
})

test('FE8 a stream whose client has gone before it begins is not opened', async () => {
  const { streams, open } = await prepare({ items: 1 })
  const { promise, resolve } = Promise.withResolvers<number>()
  const listener = (request: ServerResponse['req'], response: ServerResponse) =>
    response.once('close', () => {
      open(request, response)
      resolve(streams.count())
    })
  await serve(listener, async (port) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(get, () => socket.destroy())
    expect(await promise).toBe(0)
  })
})

test('FE8 the waits of a stream for its client leave no listeners', async () => {
  let response: ServerResponse | null = null
  const counts: number[] = []
  const { open } = await prepare({
    items: 700,
    async eventFormatter() {
      counts.push(response?.listenerCount('close') ?? 0)
      return () => `:${'x'.repeat(4 << 20)}\n\n`
    },
  })
  const listener = (request: ServerResponse['req'], answer: ServerResponse) => {
    response = answer
    open(request, answer)
  }
  await serve(listener, async (port) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(get)
    let received = 0
    for await (const bytes of socket) {
      received += bytes.length
      if (received > 7 * (4 << 20)) break
    }
  })
  expect(counts.length).toBeGreaterThanOrEqual(7)
  expect(Math.max(...counts)).toBe(counts[0])
})

test('FE8 streams that catch up take turns, between which other requests are handled', async () => {
  const perIteration = new Map<number, number>()
  const size = 60_000
  let iteration = 0
  let isRunning = true
  const { open } = await prepare({
    items: 40,
    eventFormatter: async () => () => {
      perIteration.set(iteration, (perIteration.get(iteration) ?? 0) + size)
      return `:${'x'.repeat(size)}\n\n`
    },
  })
  const count = async () => {
    for (; isRunning; iteration += 1) await setImmediate()
  }
  const counting = count()
  await serve(open, async (port) => {
    const sockets = Array.from({ length: 20 }, () => connect(port, '127.0.0.1'))
    const readAll = sockets.map(async (socket) => {
      socket.write(get)
      let received = 0
      for await (const bytes of socket) {
        received += bytes.length
        if (received > 40 * size) break
      }
    })
    await Promise.all(readAll)
  })
  isRunning = false
  await counting
  expect([...perIteration.values()].reduce((sum, one) => sum + one, 0)).toBe(20 * 40 * size)
  // What was made at once, and one turn.
  expect(Math.max(...perIteration.values())).toBeLessThan(5 * size)
})

test('FE8 an unexpected error of a stream is logged, and ends it; a fault is not logged', async () => {
  for (const [error, logged] of [
    [new TypeError('broken'), 1],
    [new Fault('token-revoked', 'revoked'), 0],
  ] as const) {
    const { streams, open, lines } = await prepare({ items: 1, error })
    await serve(open, async (port) => {
      const socket = connect(port, '127.0.0.1')
      socket.write(get)
      await once(socket, 'data')
      while (streams.count() > 0) await setImmediate()
    })
    expect(lines).toHaveLength(logged)
    if (logged > 0)
      expect(JSON.parse(lines[0] ?? '')).toMatchObject({ requestId: 'r', err: { message: 'broken' } })
  }
})

test('ST8 a stream ends if the name of its bucket becomes that of another one', async () => {
  const { streams, open, lines } = await prepare({ items: 1, later: { bucketId: 2 } })
  await serve(open, async (port) => {
    const socket = connect(port, '127.0.0.1')
    socket.write(get)
    await once(socket, 'data')
    await expect.poll(() => streams.count()).toBe(0)
  })
  expect(lines).toEqual([])
})

test('FE7, N7 a stream whose client reads nothing holds few bytes, and reads few changes at a time', async () => {
  const size = 30_000
  const { open, readChanges } = await prepare({
    items: 300,
    eventFormatter: async () => () => `:${'x'.repeat(size)}\n\n`,
  })
  let response: ServerResponse | null = null
  const listener = (request: ServerResponse['req'], answer: ServerResponse) => {
    response = answer
    open(request, answer)
  }
  await serve(listener, async (port) => {
    const socket = connect(port, '127.0.0.1')
    socket.pause()
    socket.write(get)
    let calls = -1
    // Until it reads nothing more, because its client does not.
    while (calls !== readChanges.mock.calls.length || calls < 1) {
      calls = readChanges.mock.calls.length
      for (let i = 0; i < 200; i += 1) await setImmediate()
    }
    expect(response?.writableLength).toBeLessThan(64 * 1024 * 2 + size)
    socket.destroy()
  })
  expect(Math.max(...readChanges.mock.calls.map(([, , limit]) => limit))).toBeLessThanOrEqual(10)
  expect(readChanges.mock.calls.at(-1)?.[2]).toBeLessThanOrEqual(3)
})
