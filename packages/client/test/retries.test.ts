import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { AnswerError, ConnectionError, createClient, ProblemError, TimeoutError } from '../src/index.ts'
import { pageOf } from './page-of.ts'
import { cut, hang, json, type Responder, status, stubFetch } from './stub-fetch.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  vi.spyOn(Math, 'random').mockReturnValue(1)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const url = 'https://media.example.org'
const media = {
  id: 'abc',
  url: `${url}/media/abc.txt`,
  filename: null,
  content_type: 'text/plain',
  size: 3,
  sha256: '00',
  created_at: '2026-11-21T10:00:00.000Z',
  width: null,
  height: null,
}

/** A client that receives these responses, and the time at which each of its requests was sent. */
function clientOn(...responders: Responder[]) {
  const { fetch, sent } = stubFetch(...responders)
  const start = Date.now()
  const times: number[] = []
  const timed: typeof fetch = (...call) => {
    times.push(Date.now() - start)
    return fetch(...call)
  }
  return { client: createClient({ url, token: 'secret', fetch: timed, timeout: 10_000 }), sent, times }
}

/** Advances the time, and lets reads of Blobs complete, until the promise is settled. Returns its value or its error. */
async function outcome(promise: Promise<unknown>): Promise<unknown> {
  let settled = false
  const result = promise
    .catch((error: unknown) => error)
    .finally(() => {
      settled = true
    })
  while (!settled) {
    await new Promise((resolve) => setImmediate(resolve))
    await vi.advanceTimersByTimeAsync(50)
  }
  return await result
}

test('a page request is retried with increasing delays until it succeeds', async () => {
  const { client, times } = clientOn(cut, status(502), status(429), json(pageOf(1, 1)))
  expect(await outcome(client.listPage(1))).toEqual(pageOf(1, 1))
  expect(times).toEqual([0, 500, 1500, 3500])
})

test('the error of the last attempt is thrown, with the number of attempts', async () => {
  const { client, sent } = clientOn(status(503, { 'content-type': 'text/plain' }, 'try\nlater'))
  const error = await outcome(client.listPage(2))
  expect(error).toBeInstanceOf(AnswerError)
  expect(error).not.toBeInstanceOf(ProblemError)
  expect(error).toMatchObject({
    status: 503,
    attempts: 4,
    body: 'try\nlater',
    url: `${url}/api/media?page=2`,
  })
  expect(String(error)).toBe(`AnswerError: GET ${url}/api/media answered 503: try later`)
  expect(sent).toHaveLength(4)
})

test('Retry-After sets the delay, and a value above the maximum ends the attempts', async () => {
  const { client, times } = clientOn(
    status(503, { 'retry-after': '5' }),
    status(429, { 'retry-after': '31' }),
  )
  expect(await outcome(client.listPage(1))).toMatchObject({ status: 429, attempts: 2, retryAfter: 31_000 })
  expect(times).toEqual([0, 5500])
})

test('onRetry receives the error and the delay before each delay', async () => {
  const { fetch } = stubFetch(cut, status(429, { 'retry-after': '2' }), json(pageOf(1, 1)))
  const calls: unknown[] = []
  const onRetry = (error: unknown, delay: number) => void calls.push([(error as Error).name, delay])
  const client = createClient({ url, token: 'secret', fetch, retry: { onRetry } })
  await outcome(client.listPage(1))
  expect(calls).toEqual([
    ['ConnectionError', 500],
    ['AnswerError', 2500],
  ])
})

test('a request that fails permanently is sent once', async () => {
  const { client, sent } = clientOn(status(500))
  expect(await outcome(client.describe('abc'))).toMatchObject({ status: 500, attempts: 1 })
  expect(sent).toHaveLength(1)
})

test('a response that does not arrive in time is a TimeoutError and is retried', async () => {
  const { client, times } = clientOn(hang)
  expect(await outcome(client.listPage(1))).toBeInstanceOf(TimeoutError)
  expect(times).toEqual([0, 10_500, 21_500, 33_500])
})

test('a page whose body is cut off is requested again', async () => {
  const breaking = new ReadableStream({
    pull(controller) {
      controller.error(new TypeError('terminated'))
    },
  })
  const { client, sent } = clientOn(() => new Response(breaking), json(pageOf(1, 1)))
  expect(await outcome(client.listPage(1))).toEqual(pageOf(1, 1))
  expect(sent).toHaveLength(2)
})

test('a problem response is a ProblemError that contains the problem', async () => {
  const problem = { type: `${url}/problems/x`, title: 'No', status: 403, detail: 'Not so.', code: 'x' }
  const headers = { 'content-type': 'application/problem+json' }
  const { client } = clientOn(json(problem, { status: 403, headers }))
  const error = await outcome(client.get('abc'))
  expect(error).toBeInstanceOf(ProblemError)
  expect(error).toMatchObject({ status: 403, problem })
  expect(String(error)).toBe(`ProblemError: GET ${url}/media/abc answered 403: Not so.`)
})

test('a delete is retried, and 404 after a retry is a success', async () => {
  const { client, sent } = clientOn(cut, status(404))
  expect(await outcome(client.delete('abc'))).toBeUndefined()
  expect(sent.map(({ method }) => method)).toEqual(['DELETE', 'DELETE'])
})

test('404 for the first attempt of a delete is an error', async () => {
  const { client } = clientOn(status(404))
  expect(await outcome(client.delete('abc'))).toMatchObject({ status: 404, attempts: 1 })
})

test('a deletion of many is split, and after an attempt without a response its items count as deleted', async () => {
  const ids = Array.from({ length: 501 }, (_, index) => `id${index}`)
  const bodies: unknown[] = []
  const answer =
    (result: object): Responder =>
    async ({ init }) => {
      bodies.push(await new Response(init.body).json())
      return Response.json(result)
    }
  const { client, sent } = clientOn(
    cut,
    answer({ deleted: [], missing: ids.slice(0, 500) }),
    answer({ deleted: [], missing: ['id500'] }),
  )
  const given = [...ids, `${url}/media/id500.jpg`, 'id0']
  expect(await outcome(client.deleteMany(given))).toEqual({
    deleted: ids.slice(0, 500),
    missing: ['id500', `${url}/media/id500.jpg`],
  })
  expect(sent.map(({ method, url }) => `${method} ${url}`)).toEqual(Array(3).fill(`DELETE ${url}/api/media`))
  expect(bodies).toEqual([{ ids: ids.slice(0, 500) }, { ids: ['id500'] }])
  expect(await outcome(client.deleteMany([]))).toEqual({ deleted: [], missing: [] })
  expect(await outcome(client.deleteMany(['a b']))).toBeInstanceOf(TypeError)
})

test('a deletion that was refused and retried reports what the bucket does not have', async () => {
  const refused: Responder = async () => new Response('', { status: 429 })
  const missing: Responder = async () => Response.json({ deleted: [], missing: ['id'] })
  expect(await outcome(clientOn(refused, missing).client.deleteMany(['id']))).toEqual({
    deleted: [],
    missing: ['id'],
  })
  const unknown: Responder = async () => new Response('', { status: 404 })
  expect(await outcome(clientOn(refused, unknown).client.delete('id'))).toMatchObject({ status: 404 })
  expect(await outcome(clientOn(cut, unknown).client.delete('id'))).toBeUndefined()
})

test('I2 an upload with a repeatable source is retried in full with the same key', async () => {
  const bodies: string[] = []
  const { client, sent } = clientOn(
    async ({ init }) => {
      bodies.push(await new Response(init.body).text())
      return new Response(null, { status: 503 })
    },
    async ({ init }) => {
      bodies.push(await new Response(init.body).text())
      throw new TypeError('fetch failed')
    },
    json(media, { status: 201 }),
  )
  expect(await outcome(client.upload(new Blob(['abc'])))).toEqual(media)
  expect(bodies).toEqual(['abc', 'abc'])
  const keys = sent.map(({ headers }) => headers.get('idempotency-key'))
  expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
  expect(new Set(keys).size).toBe(1)
  await outcome(client.upload(new Uint8Array(3)))
  expect(sent.at(-1)?.headers.get('idempotency-key')).not.toBe(keys[0])
})

test('I2 the key of the caller is sent with every attempt, also for streams', async () => {
  const { client, sent } = clientOn(status(503), json(media), json(media))
  await outcome(client.upload(new Blob(['abc']), { idempotencyKey: 'mine' }))
  await outcome(client.upload(new Blob(['abc']).stream(), { idempotencyKey: 'mine' }))
  expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', 'mine', 'mine'])
})

test('a stream is sent once, without a key, and is cancelled if the upload fails', async () => {
  const cancelled = vi.fn()
  const stream = new ReadableStream({ cancel: cancelled })
  const { client, sent } = clientOn(status(503))
  expect(await outcome(client.upload(stream))).toMatchObject({ status: 503, attempts: 1 })
  expect(sent).toHaveLength(1)
  expect(sent[0]?.headers.has('idempotency-key')).toBe(false)
  expect(cancelled).toHaveBeenCalledOnce()
})

test('an abort ends the delay between two attempts', async () => {
  const aborter = new AbortController()
  const { client, sent, times } = clientOn(status(503))
  const settled = outcome(client.listPage(1, { signal: aborter.signal }))
  aborter.abort('enough')
  expect(await settled).toBe('enough')
  expect(sent).toHaveLength(1)
  expect(times).toEqual([0])
})

test('an abort ends the attempt in progress with its reason, and there is no retry', async () => {
  const aborter = new AbortController()
  const { client, sent } = clientOn(hang)
  const listed = client.listPage(1, { signal: aborter.signal }).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(5000)
  aborter.abort()
  expect(await listed).toBe(aborter.signal.reason)
  await vi.runAllTimersAsync()
  expect(sent).toHaveLength(1)
})

test('a signal that is already aborted prevents every request', async () => {
  const { client, sent } = clientOn(hang)
  const signal = AbortSignal.abort('before')
  const calls: Promise<unknown>[] = [
    client.listPage(1, { signal }),
    client.get('abc', { signal }),
    client.describe('abc', { signal }),
    client.delete('abc', { signal }),
    client.upload(new Blob(['x']), { signal }),
    client.pages({ signal }).next(),
  ]
  expect(await Promise.all(calls.map(outcome))).toEqual(calls.map(() => 'before'))
  expect(sent).toHaveLength(0)
})

test('a completed call leaves no listeners on its signal', async () => {
  const { signal } = new AbortController()
  const added = vi.spyOn(signal, 'addEventListener')
  const removed = vi.spyOn(signal, 'removeEventListener')
  const { client } = clientOn(status(503), json(pageOf(1, 1)))
  await outcome(client.listPage(1, { signal }))
  await outcome(client.get('abc', { signal }).then((response) => response.text()))
  expect(added).toHaveBeenCalledTimes(4)
  const gone = new Set(removed.mock.calls.map(([, listener]) => listener))
  expect(added.mock.calls.every(([, listener]) => gone.has(listener))).toBe(true)
})

test('an error of the source is thrown unchanged and is not retried', async () => {
  const broken = new Error('the disk is gone')
  async function* source() {
    yield new Uint8Array(3)
    throw broken
  }
  const { client, sent } = clientOn(async ({ init }) => {
    await new Response(init.body).text()
    return Response.json(media)
  })
  expect(await outcome(client.upload(source()))).toBe(broken)
  expect(sent).toHaveLength(1)
})

test('connection errors contain their cause', async () => {
  const { client } = clientOn(cut)
  const error = await outcome(client.listPage(1))
  expect(error).toBeInstanceOf(ConnectionError)
  expect(error).toMatchObject({ cause: { message: 'fetch failed' } })
})
