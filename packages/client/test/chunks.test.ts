import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createClient, type RetryOptions } from '../src/index.ts'
import { cut, type Responder, stubFetch } from './stub-fetch.ts'

const url = 'https://media.example.org/box'
const media = {
  id: 'abc',
  url: 'https://elsewhere.example/media/abc.bin',
  filename: null,
  content_type: 'application/octet-stream',
  size: 10,
  sha256: '00',
  created_at: '2026-11-21T10:00:00.000Z',
  width: null,
  height: null,
}
const file = new Blob([new Uint8Array(10)])
const item = 'https://elsewhere.example/api/media/abc'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)

const respondWith =
  (status: number, headers: Record<string, string> = {}): Responder =>
  async ({ init }) => {
    await new Response(init.body).arrayBuffer()
    return new Response(null, { status, headers })
  }
const created = respondWith(201, { location: 'https://elsewhere.example/api/uploads/up1' })
const at = (offset: number) => respondWith(204, { 'upload-offset': `${offset}` })
const finished = respondWith(204, { 'upload-offset': '10', 'content-location': item })
const found: Responder = () => Response.json(media)

/** A client that receives these responses to each method in order, repeating the last; and the requests it sent. */
function clientOn(responders: Partial<Record<string, Responder[]>>, retry: RetryOptions = {}) {
  const requests: string[] = []
  const counts = new Map<string, number>()
  const { fetch, sent } = stubFetch((one) => {
    const path = one.url.replace(url, '')
    const [own = []] = [responders[`${one.method} ${path}`] ?? responders[one.method]]
    const count = counts.get(one.method) ?? 0
    counts.set(one.method, count + 1)
    requests.push(`${one.method} ${path}`)
    const next = own[Math.min(count, own.length - 1)]
    if (!next) throw new Error(`the test has no response to ${one.method} ${one.url}`)
    return next(one)
  })
  const client = createClient({ url, token: 'secret', fetch, retry })
  async function upload(options = {}, source = file): Promise<unknown> {
    let settled = false
    const result = caught(client.upload(source, { piecesAbove: 0, ...options })).finally(() => {
      settled = true
    })
    while (!settled) {
      await new Promise((resolve) => setImmediate(resolve))
      await vi.advanceTimersByTimeAsync(50)
    }
    return await result
  }
  return { upload, requests, sent }
}

test('requests go to the URL of the client, whatever host Location and Content-Location name', async () => {
  const { upload, requests, sent } = clientOn({ POST: [created], PATCH: [finished], GET: [found] })
  expect(await upload({ filename: 'Ö.bin', contentType: 'a/b' })).toEqual(media)
  expect(requests).toEqual(['POST /api/uploads', 'PATCH /api/uploads/up1', 'GET /api/media/abc'])
  const [creation, chunk] = sent.map(({ headers }) => Object.fromEntries(headers))
  expect(creation).toEqual({
    accept: 'application/problem+json',
    authorization: 'Bearer secret',
    'tus-resumable': '1.0.0',
    'upload-length': '10',
    'upload-metadata': 'filename w5YuYmlu,filetype YS9i',
  })
  expect(chunk).toEqual({
    accept: 'application/problem+json',
    authorization: 'Bearer secret',
    'content-length': '10',
    'content-type': 'application/offset+octet-stream',
    'tus-resumable': '1.0.0',
    'upload-checksum': `sha256 ${createHash('sha256').update(new Uint8Array(10)).digest('base64')}`,
    'upload-offset': '0',
  })
})

test('R7 without WebCrypto, as on pages without TLS, chunks are sent without a checksum', async () => {
  vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) })
  const { upload, sent } = clientOn({ POST: [created], PATCH: [finished], GET: [found] })
  expect(await upload()).toEqual(media)
  expect(sent[1]?.headers.has('upload-checksum')).toBe(false)
})

test.each([404, 405, 501])(
  'a service that responds %d to the creation receives the file in one request',
  async (status) => {
    const { upload, requests } = clientOn({
      'POST /api/uploads': [respondWith(status)],
      'POST /api/media': [found],
    })
    expect(await upload()).toEqual(media)
    expect(requests).toEqual(['POST /api/uploads', 'POST /api/media'])
  },
)

test.each<[string, Responder]>([
  ['a cut connection', cut],
  ...[408, 409, 423, 429, 460, 500, 502, 503, 504].map((status): [string, Responder] => [
    `${status}`,
    respondWith(status),
  ]),
])('R3 after %s the client requests the offset and resumes there', async (_name, failure) => {
  const { upload, requests, sent } = clientOn({
    POST: [created],
    PATCH: [failure, finished],
    HEAD: [at(4)],
    GET: [found],
  })
  expect(await upload()).toEqual(media)
  expect(requests.slice(1, -1)).toEqual([
    'PATCH /api/uploads/up1',
    'HEAD /api/uploads/up1',
    'PATCH /api/uploads/up1',
  ])
  expect(sent[3]?.headers.get('upload-offset')).toBe('4')
  expect(sent[3]?.headers.get('content-length')).toBe('6')
})

test('chunks that become smaller have whole bytes, whatever the first one has', async () => {
  const { upload, sent } = clientOn({
    POST: [created],
    PATCH: [cut, at(350_000), respondWith(204, { 'upload-offset': '1000000', 'content-location': item })],
    HEAD: [at(0)],
    GET: [found],
  })
  expect(await upload({ firstChunkSize: 700_001 }, new Blob([new Uint8Array(1_000_000)]))).toEqual(media)
  const lengths = sent.flatMap(({ method, headers }) =>
    method === 'PATCH' ? headers.get('content-length') : [],
  )
  expect(lengths).toEqual(['700001', '350000', '650000'])
})

test.each([400, 401, 403, 413, 507])(
  'R9 after %d the client fails and deletes the upload',
  async (status) => {
    const { upload, requests } = clientOn({
      POST: [created],
      PATCH: [respondWith(status)],
      DELETE: [respondWith(204)],
    })
    expect(await upload()).toMatchObject({ status, method: 'PATCH' })
    expect(requests).toEqual(['POST /api/uploads', 'PATCH /api/uploads/up1', 'DELETE /api/uploads/up1'])
  },
)

test('attempts are counted from the last progress of the upload, and end without progress', async () => {
  const moving = clientOn({
    POST: [created],
    PATCH: [cut],
    HEAD: [
      at(1),
      at(2),
      at(3),
      at(4),
      at(5),
      respondWith(200, { 'upload-offset': '10', 'content-location': item }),
    ],
    GET: [found],
  })
  expect(await moving.upload()).toEqual(media)

  const stuck = clientOn({
    POST: [created],
    PATCH: [respondWith(503)],
    HEAD: [at(0)],
    DELETE: [respondWith(204)],
  })
  expect(await stuck.upload()).toMatchObject({ status: 503, attempts: 4 })
  expect(stuck.requests.filter((one) => one.startsWith('PATCH'))).toHaveLength(4)
})

test('retry.attempts 1 disables retries', async () => {
  const { upload, requests } = clientOn(
    { POST: [created], PATCH: [cut], DELETE: [respondWith(204)] },
    { attempts: 1 },
  )
  expect(await upload()).toMatchObject({ name: 'ConnectionError' })
  expect(requests.filter((one) => !one.startsWith('DELETE'))).toHaveLength(2)
})

test('an upload that no longer exists is started again, at most retry.attempts times', async () => {
  const once = clientOn({
    POST: [created],
    PATCH: [respondWith(404), finished],
    GET: [found],
    DELETE: [respondWith(404)],
  })
  expect(await once.upload()).toEqual(media)
  const always = clientOn({ POST: [created], PATCH: [respondWith(410)], DELETE: [respondWith(404)] })
  expect(await always.upload()).toMatchObject({ status: 410 })
  expect(always.requests.filter((one) => one.startsWith('POST'))).toHaveLength(4)
})

describe('an invalid response is a ShapeError and is not retried', () => {
  test.each<[string, Record<string, Responder[]>, string]>([
    ['a creation without Location', { POST: [respondWith(201)] }, 'Location'],
    [
      'a Location without an upload id',
      { POST: [respondWith(201, { location: 'https://x.example/' })] },
      'Location',
    ],
    [
      'a Location with an invalid id',
      { POST: [respondWith(201, { location: '/api/uploads/a%2fb' })] },
      'Location',
    ],
    [
      'a response to a chunk without an offset',
      { POST: [created], PATCH: [respondWith(204)] },
      'Upload-Offset',
    ],
    ['an offset that does not increase', { POST: [created], PATCH: [at(0)] }, 'Upload-Offset'],
    ['an offset past the end', { POST: [created], PATCH: [at(11)] }, 'Upload-Offset'],
    ['a finished upload without an item', { POST: [created], PATCH: [at(10)] }, 'Content-Location'],
    [
      'a Content-Location that is not the URL of an item',
      { POST: [created], PATCH: [respondWith(204, { 'upload-offset': '10', 'content-location': '/x' })] },
      'Content-Location',
    ],
  ])('%s', async (_name, responders, path) => {
    const { upload } = clientOn({ DELETE: [respondWith(204)], ...responders })
    expect(await upload()).toMatchObject({ name: 'ShapeError', path })
  })
})

test('chunks become larger from firstChunkSize on', async () => {
  const size = 5 * 262_144
  const accepted: Responder = async ({ init, headers }) => {
    const bytes = await new Response(init.body).arrayBuffer()
    const offset = Number(headers.get('upload-offset')) + bytes.byteLength
    const named: Record<string, string> = offset === size ? { 'content-location': item } : {}
    return new Response(null, { status: 204, headers: { 'upload-offset': `${offset}`, ...named } })
  }
  const { fetch, sent } = stubFetch((one) =>
    one.method === 'POST' ? created(one) : one.method === 'PATCH' ? accepted(one) : found(one),
  )
  const client = createClient({ url, token: 'secret', fetch })
  await client.upload(new Uint8Array(size), { piecesAbove: 0, firstChunkSize: 262_144 })
  expect(
    sent.flatMap(({ method, headers }) => (method === 'PATCH' ? [headers.get('content-length')] : [])),
  ).toEqual(['262144', '524288', '524288'])
})

test('R9 deleteUpload ends an upload, also one that does not exist', async () => {
  const { fetch, sent } = stubFetch(respondWith(204), respondWith(404), respondWith(403))
  const client = createClient({ url, token: 'secret', fetch })
  await client.deleteUpload('up1')
  await client.deleteUpload('up1')
  await expect(client.deleteUpload('up1')).rejects.toMatchObject({ status: 403 })
  await expect(client.deleteUpload('../media/abc')).rejects.toBeInstanceOf(TypeError)
  expect(sent.map(({ method, url }) => `${method} ${url}`)).toEqual(
    Array(3).fill(`DELETE ${url}/api/uploads/up1`),
  )
  expect(sent[0]?.headers.get('tus-resumable')).toBe('1.0.0')
})

test.each([-1, Number.NaN])('piecesAbove %d is a TypeError', async (piecesAbove) => {
  expect(await clientOn({}).upload({ piecesAbove })).toBeInstanceOf(TypeError)
})
