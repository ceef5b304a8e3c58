import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createClient, TimeoutError } from '../src/index.ts'
import { pageOf } from './page-of.ts'
import { type Responder, stubFetch } from './stub-fetch.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const advance = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds)
const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)

/** A stream that the test controls. */
function controlledStream() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const cancelled = vi.fn()
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(given) {
      controller = given
    },
    cancel: cancelled,
  })
  return {
    stream,
    cancelled,
    enqueue: (text: string) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
  }
}

function clientOn(...responders: Responder[]) {
  const { fetch } = stubFetch(...responders)
  const retry = { attempts: 1 }
  return createClient({ url: 'https://media.example.org', token: 'secret', fetch, timeout: 60_000, retry })
}

test('a slow download does not time out while bytes arrive', async () => {
  const controlled = controlledStream()
  const client = clientOn(() => new Response(controlled.stream))
  const text = (await client.get('abc')).text()
  for (const part of ['a', 'b', 'c', 'd']) {
    await advance(59_000)
    controlled.enqueue(part)
  }
  controlled.end()
  expect(await text).toBe('abcd')
})

test('a download that receives no bytes times out, and its body is cancelled', async () => {
  const controlled = controlledStream()
  const client = clientOn(() => new Response(controlled.stream))
  const text = caught((await client.get('abc')).text())
  controlled.enqueue('a')
  await advance(59_999)
  expect(controlled.cancelled).not.toHaveBeenCalled()
  await advance(1)
  expect(await text).toBeInstanceOf(TimeoutError)
  expect(await text).toMatchObject({ timeout: 60_000 })
  expect(controlled.cancelled).toHaveBeenCalledOnce()
})

test('a slow reader of a download does not cause a timeout', async () => {
  const controlled = controlledStream()
  const client = clientOn(() => new Response(controlled.stream))
  const reader = (await client.get('abc')).body?.getReader()
  controlled.enqueue('a')
  expect((await reader?.read())?.done).toBe(false)
  await advance(3_600_000)
  controlled.enqueue('b')
  controlled.end()
  expect((await reader?.read())?.done).toBe(false)
  expect((await reader?.read())?.done).toBe(true)
})

test('a cancelled download aborts its request', async () => {
  const controlled = controlledStream()
  const signals: (AbortSignal | null | undefined)[] = []
  const client = clientOn(({ init }) => {
    signals.push(init.signal)
    return new Response(controlled.stream)
  })
  await (await client.get('abc')).body?.cancel()
  expect(signals[0]?.aborted).toBe(true)
})

test('a download has the status and headers of its response', async () => {
  const client = clientOn(() => new Response('x', { status: 200, headers: { etag: '"1"' } }))
  const response = await client.get('abc')
  expect([response.ok, response.status, response.headers.get('etag')]).toEqual([true, 200, '"1"'])
})

test('a slow page does not time out while bytes arrive, and times out without bytes', async () => {
  const body = JSON.stringify(pageOf(1, 1))
  const slow = controlledStream()
  const page = clientOn(() => new Response(slow.stream)).listPage(1)
  for (const half of [body.slice(0, 50), body.slice(50)]) {
    await advance(59_000)
    slow.enqueue(half)
  }
  slow.end()
  expect(await page).toEqual(pageOf(1, 1))

  const silent = controlledStream()
  const failed = caught(clientOn(() => new Response(silent.stream)).listPage(1))
  silent.enqueue(body)
  await advance(60_000)
  expect(await failed).toBeInstanceOf(TimeoutError)
})

/** A service that reads an upload when the test calls `take`. */
function takingService() {
  let body: ReadableStreamDefaultReader<Uint8Array> | undefined
  let respond: ((response: Response) => void) | undefined
  const client = clientOn(async ({ init }) => {
    const reader = new Response(init.body).body?.getReader()
    body = reader
    init.signal?.addEventListener('abort', () => reader?.cancel(init.signal?.reason).catch(() => {}))
    return await new Promise<Response>((resolve) => {
      respond = resolve
    })
  })
  const media = {
    id: 'a',
    url: 'u',
    filename: null,
    content_type: 'c',
    size: 3,
    sha256: '00',
    created_at: 'd',
  }
  return {
    client,
    take: async () => (await body?.read())?.value?.length,
    accept: () => respond?.(Response.json({ ...media, width: null, height: null }, { status: 201 })),
  }
}

test('a slow upload does not time out while bytes are sent', async () => {
  const service = takingService()
  const upload = service.client.upload(new Uint8Array(200_000))
  await advance(0)
  for (const length of [65_536, 65_536, 65_536, 3392]) {
    await advance(59_000)
    expect(await service.take()).toBe(length)
  }
  expect(await service.take()).toBeUndefined()
  await advance(59_000)
  service.accept()
  expect(await upload).toMatchObject({ id: 'a' })
})

test('an upload times out if the service stops reading', async () => {
  const service = takingService()
  const upload = caught(service.client.upload(new Uint8Array(200_000)))
  await advance(0)
  await service.take()
  await advance(59_999)
  expect(await Promise.race([upload, 'still going'])).toBe('still going')
  await advance(1)
  expect(await upload).toBeInstanceOf(TimeoutError)
})

test('a slow source does not cause a timeout', async () => {
  const service = takingService()
  const controlled = controlledStream()
  const upload = service.client.upload(controlled.stream)
  await advance(0)
  const taken = service.take()
  await advance(3_600_000)
  controlled.enqueue('abc')
  expect(await taken).toBe(3)
  const end = service.take()
  await advance(3_600_000)
  controlled.end()
  await end
  service.accept()
  expect(await upload).toMatchObject({ id: 'a' })
})

test('a source that hangs is cancelled when the upload is aborted', async () => {
  const service = takingService()
  const controlled = controlledStream()
  const aborter = new AbortController()
  const upload = caught(service.client.upload(controlled.stream, { signal: aborter.signal }))
  await advance(0)
  void caught(service.take())
  await advance(0)
  aborter.abort('enough')
  expect(await upload).toBe('enough')
  await advance(0)
  expect(controlled.cancelled).toHaveBeenCalledOnce()
})

test('a timeout of Infinity disables the timeout', async () => {
  const controlled = controlledStream()
  const { fetch } = stubFetch(() => new Response(controlled.stream))
  const timeout = Number.POSITIVE_INFINITY
  const client = createClient({ url: 'https://media.example.org', token: 'secret', fetch, timeout })
  const text = (await client.get('abc')).text()
  await advance(2 ** 32)
  controlled.enqueue('x')
  controlled.end()
  expect(await text).toBe('x')
})
