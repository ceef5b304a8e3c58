import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ConnectionError, createClient, TimeoutError, type UploadProgress } from '../src/index.ts'
import { stubFetch } from './stub-fetch.ts'

const url = 'https://media.example.org'
const media = {
  id: 'abc',
  url: `${url}/media/abc.txt`,
  filename: 'a.txt',
  content_type: 'text/plain',
  size: 3,
  sha256: '00',
  created_at: '2026-11-21T10:00:00.000Z',
  width: null,
  height: null,
}

/** An XMLHttpRequest that the test controls. */
class ControlledXhr {
  static readonly made: ControlledXhr[] = []
  upload: { onprogress: ((event: { loaded: number }) => void) | null } = { onprogress: null }
  onload: (() => void) | null = null
  onerror: (() => void) | null = null
  status = 0
  responseText = ''
  responseURL = ''
  opened = ''
  aborted = false
  body: Blob | null = null
  readonly headers = new Headers()
  responseHeaders = 'content-type: application/problem+json\r\nretry-after: 7\r\n'
  constructor() {
    ControlledXhr.made.push(this)
  }
  open(method: string, to: string) {
    this.opened = `${method} ${to}`
    this.responseURL = to
  }
  setRequestHeader(name: string, value: string) {
    this.headers.set(name, value)
  }
  getAllResponseHeaders() {
    return this.responseHeaders
  }
  send(body: Blob) {
    this.body = body
  }
  abort() {
    this.aborted = true
  }
  respond(status: number, body: unknown) {
    this.status = status
    this.responseText = JSON.stringify(body)
    this.onload?.()
  }
}

beforeEach(() => {
  vi.stubGlobal('XMLHttpRequest', ControlledXhr)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  ControlledXhr.made.length = 0
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)
const client = createClient({ url, token: 'secret', retry: { attempts: 2, delay: 100 } })
const file = new File(['abc'], 'a.txt', { type: 'text/plain' })

/** Waits for the XMLHttpRequest of attempt `tries`. */
async function latest(tries = 1): Promise<ControlledXhr> {
  return await vi.waitUntil(() => ControlledXhr.made[tries - 1], { interval: 1, timeout: 60_000 })
}

test('with onProgress a browser uploads by XMLHttpRequest, sends all headers and reports progress', async () => {
  const seen: UploadProgress[] = []
  const upload = client.upload(file, { onProgress: (progress) => seen.push(progress) })
  const xhr = await latest()
  expect(xhr.opened).toBe(`POST ${url}/api/media`)
  expect(xhr.body).toBe(file)
  expect(Object.fromEntries(xhr.headers)).toEqual({
    accept: 'application/json, application/problem+json',
    authorization: 'Bearer secret',
    'content-type': 'text/plain',
    'content-disposition': 'attachment; filename="a.txt"',
    'idempotency-key': expect.stringMatching(/^[0-9a-f]{32}$/),
  })
  xhr.upload.onprogress?.({ loaded: 1 })
  xhr.upload.onprogress?.({ loaded: 3 })
  xhr.respond(201, media)
  expect(await upload).toEqual(media)
  expect(seen).toEqual([
    { sent: 1, total: 3 },
    { sent: 3, total: 3 },
  ])
})

test('an error response has its status, headers and problem', async () => {
  const upload = caught(client.upload(file, { onProgress: () => {} }))
  const xhr = await latest()
  xhr.respond(413, { type: 'x', code: 'file-too-large' })
  expect(await upload).toMatchObject({ status: 413, retryAfter: 7000, problem: { code: 'file-too-large' } })
})

test('I2 a failed connection is retried with the same key', async () => {
  const upload = client.upload(file, { onProgress: () => {} })
  const first = await latest()
  first.onerror?.()
  await vi.advanceTimersByTimeAsync(100)
  const second = await latest(2)
  second.respond(201, media)
  expect(await upload).toEqual(media)
  expect(second.headers.get('idempotency-key')).toBe(first.headers.get('idempotency-key'))
})

test('an attempt times out without progress, and each progress event resets the timeout', async () => {
  const upload = caught(client.upload(file, { onProgress: () => {} }))
  const first = await latest()
  for (const loaded of [1, 2, 3]) {
    await vi.advanceTimersByTimeAsync(59_000)
    first.upload.onprogress?.({ loaded })
  }
  expect(first.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(first.aborted).toBe(true)
  await vi.advanceTimersByTimeAsync(100)
  await latest(2)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await upload).toBeInstanceOf(TimeoutError)
})

test('the last failure is a ConnectionError', async () => {
  const upload = caught(client.upload(file, { onProgress: () => {} }))
  for (const tries of [1, 2]) {
    const xhr = await latest(tries)
    xhr.onerror?.()
    await vi.advanceTimersByTimeAsync(100)
  }
  expect(await upload).toBeInstanceOf(ConnectionError)
})

test('an abort ends the upload with the given reason', async () => {
  const aborter = new AbortController()
  const upload = caught(client.upload(file, { signal: aborter.signal, onProgress: () => {} }))
  const xhr = await latest()
  aborter.abort('enough')
  expect(await upload).toBe('enough')
  expect(xhr.aborted).toBe(true)
})

test('an error that onProgress throws ends the upload', async () => {
  const mistake = new Error('no such element')
  const onProgress = () => {
    throw mistake
  }
  const upload = caught(client.upload(file, { onProgress }))
  const xhr = await latest()
  xhr.upload.onprogress?.({ loaded: 1 })
  expect(await upload).toBe(mistake)
  expect(xhr.aborted).toBe(true)
})

test('a response from another origin is refused', async () => {
  const upload = caught(client.upload(file, { onProgress: () => {} }))
  const xhr = await latest()
  xhr.responseURL = 'https://elsewhere.example/'
  xhr.respond(201, media)
  expect(await upload).toMatchObject({ name: 'RedirectError', location: 'https://elsewhere.example/' })
})

test('a stream is collected first, because browsers cannot upload streams', async () => {
  const upload = client.upload(new Blob(['ab', 'c']).stream(), { onProgress: () => {} })
  const xhr = await latest()
  expect(await xhr.body?.text()).toBe('abc')
  expect(xhr.headers.has('idempotency-key')).toBe(true)
  xhr.respond(201, media)
  expect(await upload).toEqual(media)
})

test('an abort while a stream is collected cancels the stream', async () => {
  const cancelled = vi.fn()
  const aborter = new AbortController()
  const stream = new ReadableStream({ cancel: cancelled })
  const upload = caught(client.upload(stream, { signal: aborter.signal, onProgress: () => {} }))
  aborter.abort('enough')
  expect(await upload).toBe('enough')
  expect(cancelled).toHaveBeenCalledOnce()
  expect(ControlledXhr.made).toEqual([])
})

test('without onProgress a browser uploads the Blob by fetch, without a timeout', async () => {
  let respond: ((response: Response) => void) | undefined
  const { fetch, sent } = stubFetch(
    () =>
      new Promise<Response>((resolve) => {
        respond = resolve
      }),
  )
  vi.stubGlobal('fetch', fetch)
  const upload = client.upload(file)
  await vi.waitUntil(() => respond, { timeout: 60_000 })
  await vi.advanceTimersByTimeAsync(3_600_000)
  respond?.(Response.json(media, { status: 201 }))
  expect(await upload).toEqual(media)
  expect(sent[0]?.init.body).toBe(file)
  expect(ControlledXhr.made).toEqual([])
})

test('a custom fetch is always used, and progress is reported at its end', async () => {
  const { fetch, sent } = stubFetch(() => Response.json(media, { status: 201 }))
  const seen: UploadProgress[] = []
  const own = createClient({ url, token: 'secret', fetch })
  await own.upload(file, { onProgress: (progress) => seen.push(progress) })
  expect(sent).toHaveLength(1)
  expect(seen).toEqual([{ sent: 3, total: 3 }])
})

test('in a resumable upload XMLHttpRequest sends only the chunks, and progress is counted across chunks', async () => {
  const { fetch, sent } = stubFetch(
    () => new Response(null, { status: 201, headers: { location: '/api/uploads/up1' } }),
    () => Response.json(media),
  )
  vi.stubGlobal('fetch', fetch)
  const seen: UploadProgress[] = []
  const large = new File([new Uint8Array(8 * 1024 * 1024), 'abc'], 'a.bin')
  const upload = client.upload(large, { piecesAbove: 0, onProgress: (progress) => seen.push(progress) })
  const [first, total] = [await latest(), large.size]
  expect(first.opened).toBe(`PATCH ${url}/api/uploads/up1`)
  expect(first.body?.size).toBe(total - 3)
  first.upload.onprogress?.({ loaded: 5 })
  first.responseHeaders = `upload-offset: ${total - 3}\r\n`
  first.respond(204, null)
  const second = await latest(2)
  expect([second.headers.get('upload-offset'), await second.body?.text()]).toEqual([`${total - 3}`, 'abc'])
  second.upload.onprogress?.({ loaded: 2 })
  second.responseHeaders = `upload-offset: ${total}\r\ncontent-location: ${url}/api/media/abc\r\n`
  second.respond(204, null)
  expect(await upload).toEqual(media)
  expect(seen.map((progress) => progress.sent)).toEqual([0, 5, total - 3, total - 1, total])
  expect(sent.map((call) => call.method)).toEqual(['POST', 'GET'])
})
