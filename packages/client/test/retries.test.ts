import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { AnswerError, ConnectionError, createClient, ProblemError, TimeoutError } from '../src/index.ts'
import { pageOf } from './page-of.ts'
import { type Answer, cut, hang, json, status, stubFetch } from './stub-fetch.ts'

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
  sha256: null,
  created_at: '2026-11-21T10:00:00.000Z',
  width: null,
  height: null,
}

/** A client on these answers, and the time at which each of its requests was sent. */
function clientOn(...answers: Answer[]) {
  const { fetch, sent } = stubFetch(...answers)
  const start = Date.now()
  const times: number[] = []
  const timed: typeof fetch = (...call) => {
    times.push(Date.now() - start)
    return fetch(...call)
  }
  return { client: createClient({ url, token: 'secret', fetch: timed, timeout: 10_000 }), sent, times }
}

/** Lets the time pass, and what is read from Blobs come in, until the promise is settled; its value or its error. */
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

test('a page is asked for again, later and later, until it comes', async () => {
  const { client, times } = clientOn(cut, status(502), status(429), json(pageOf(1, 1)))
  expect(await outcome(client.listPage(1))).toEqual(pageOf(1, 1))
  expect(times).toEqual([0, 500, 1500, 3500])
})

test('after the last try its error is thrown, with the number of tries', async () => {
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

test('Retry-After sets the wait, and one that is too long ends the tries', async () => {
  const { client, times } = clientOn(
    status(503, { 'retry-after': '5' }),
    status(429, { 'retry-after': '31' }),
  )
  expect(await outcome(client.listPage(1))).toMatchObject({ status: 429, attempts: 2, retryAfter: 31_000 })
  expect(times).toEqual([0, 5500])
})

test('what fails for good is asked once', async () => {
  const { client, sent } = clientOn(status(500))
  expect(await outcome(client.describe('abc'))).toMatchObject({ status: 500, attempts: 1 })
  expect(sent).toHaveLength(1)
})

test('silence before the answer is a TimeoutError, and worth another try', async () => {
  const { client, times } = clientOn(hang)
  expect(await outcome(client.listPage(1))).toBeInstanceOf(TimeoutError)
  expect(times).toEqual([0, 10_500, 21_500, 33_500])
})

test('a page whose body breaks off is asked for again', async () => {
  const breaking = new ReadableStream({
    pull(controller) {
      controller.error(new TypeError('terminated'))
    },
  })
  const { client, sent } = clientOn(() => new Response(breaking), json(pageOf(1, 1)))
  expect(await outcome(client.listPage(1))).toEqual(pageOf(1, 1))
  expect(sent).toHaveLength(2)
})

test('a problem is typed and has the problem inside', async () => {
  const problem = { type: `${url}/problems/x`, title: 'No', status: 403, detail: 'Not so.', code: 'x' }
  const headers = { 'content-type': 'application/problem+json' }
  const { client } = clientOn(json(problem, { status: 403, headers }))
  const error = await outcome(client.get('abc'))
  expect(error).toBeInstanceOf(ProblemError)
  expect(error).toMatchObject({ status: 403, problem })
  expect(String(error)).toBe(`ProblemError: GET ${url}/media/abc answered 403: Not so.`)
})

test('a delete is repeated; that its item is gone then is a success', async () => {
  const { client, sent } = clientOn(cut, status(404))
  expect(await outcome(client.delete('abc'))).toBeUndefined()
  expect(sent.map(({ method }) => method)).toEqual(['DELETE', 'DELETE'])
})

test('a delete that finds nothing at first is an error', async () => {
  const { client } = clientOn(status(404))
  expect(await outcome(client.delete('abc'))).toMatchObject({ status: 404, attempts: 1 })
})

test('an upload that can be sent again is, whole and with one key', async () => {
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

test('I2 a key of the caller goes with every try, and with streams', async () => {
  const { client, sent } = clientOn(status(503), json(media), json(media))
  await outcome(client.upload(new Blob(['abc']), { idempotencyKey: 'mine' }))
  await outcome(client.upload(new Blob(['abc']).stream(), { idempotencyKey: 'mine' }))
  expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['mine', 'mine', 'mine'])
})

test('a stream is sent once, without a key, and let go of when it fails', async () => {
  const cancelled = vi.fn()
  const stream = new ReadableStream({ cancel: cancelled })
  const { client, sent } = clientOn(status(503))
  expect(await outcome(client.upload(stream))).toMatchObject({ status: 503, attempts: 1 })
  expect(sent).toHaveLength(1)
  expect(sent[0]?.headers.has('idempotency-key')).toBe(false)
  expect(cancelled).toHaveBeenCalledOnce()
})

test('an abort ends the wait between two tries at once', async () => {
  const aborter = new AbortController()
  const { client, sent, times } = clientOn(status(503))
  const settled = outcome(client.listPage(1, { signal: aborter.signal }))
  aborter.abort('enough')
  expect(await settled).toBe('enough')
  expect(sent).toHaveLength(1)
  expect(times).toEqual([0])
})

test('an abort ends a try under way, with its reason, and nothing is tried again', async () => {
  const aborter = new AbortController()
  const { client, sent } = clientOn(hang)
  const listed = client.listPage(1, { signal: aborter.signal }).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(5000)
  aborter.abort()
  expect(await listed).toBe(aborter.signal.reason)
  await vi.runAllTimersAsync()
  expect(sent).toHaveLength(1)
})

test('an aborted signal sends nothing', async () => {
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

test('a signal keeps nothing of calls that are over', async () => {
  const { signal } = new AbortController()
  const added = vi.spyOn(signal, 'addEventListener')
  const removed = vi.spyOn(signal, 'removeEventListener')
  const { client } = clientOn(status(503), json(pageOf(1, 1)))
  await outcome(client.listPage(1, { signal }))
  await outcome(client.get('abc', { signal }).then((answer) => answer.text()))
  expect(added).toHaveBeenCalledTimes(4)
  const gone = new Set(removed.mock.calls.map(([, listener]) => listener))
  expect(added.mock.calls.every(([, listener]) => gone.has(listener))).toBe(true)
})

test('an error of the source is thrown as it is, once', async () => {
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

test('connection errors tell their cause', async () => {
  const { client } = clientOn(cut)
  const error = await outcome(client.listPage(1))
  expect(error).toBeInstanceOf(ConnectionError)
  expect(error).toMatchObject({ cause: { message: 'fetch failed' } })
})
