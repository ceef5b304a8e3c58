import { once } from 'node:events'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { openMemoryBlob } from '../../../src/blobs/memory-blob.ts'
import type { BucketId } from '../../../src/catalog/records.ts'
import { headRoom } from '../../../src/core/head-room.ts'
import { newMediaId } from '../../../src/core/media-id.ts'
import { noCorsHeaders } from '../../../src/http/headers/cors.ts'
import { createBytesFastPath } from '../../../src/http/media/bytes-fast-path.ts'
import { createMediaHost } from '../../../src/http/media/media-host.ts'

const id = newMediaId()

/** Whether a request takes the fast path. */
function takesFastPath(
  url: string,
  { method = 'GET', headers = ['Host', 'h'], isStopping = false, mediaBaseUrl = '' } = {},
): boolean {
  const request = new IncomingMessage(new Socket())
  request.method = method
  request.url = url
  request.rawHeaders = headers
  for (let index = 0; index < headers.length; index += 2)
    request.headers[headers[index]?.toLowerCase() ?? ''] = headers[index + 1]
  let taken: boolean | null = null
  const listener = createBytesFastPath(
    {
      respondToBytes: () => expect.unreachable(),
      cachedResponses: {
        open: () => expect.unreachable(),
        servability: () => expect.unreachable(),
        countRequest: () => expect.unreachable(),
        remove: () => expect.unreachable(),
      },
      direct: {
        begin() {
          taken = true
          return null
        },
        run: () => expect.unreachable(),
      },
      corsHeaders: () => ({}),
      mediaHost: createMediaHost('http://main', mediaBaseUrl || 'http://main'),
      recordDownload: null,
      isStopping: () => isStopping,
    },
    () => {
      taken = false
    },
  )
  listener(request, new ServerResponse(request))
  return taken ?? expect.unreachable()
}

test.each([`/media/${id}`, `/media/${id}.jpg`, `/media/${id}?variant=thumb`, `/media/${id}.png?variant=x`])(
  'B1, V1 GET and HEAD on %s take the fast path',
  (url) => {
    expect([takesFastPath(url), takesFastPath(url, { method: 'HEAD' })]).toEqual([true, true])
  },
)

test.each([
  `/media/${id}?download`,
  `/media/${id}?variant=thumb&x`,
  `/media/%61`,
  '/media/',
  '/media/a/b',
  '/media/..',
  `//media/${id}`,
  `http://h/media/${id}`,
  `/api/media/${id}`,
])('%s does not take the fast path', (url) => {
  expect(takesFastPath(url)).toBe(false)
})

test.each([
  ['POST', { method: 'POST' }],
  ['B10 a script as its destination', { headers: ['Host', 'h', 'Sec-Fetch-Dest', 'script'] }],
  ['B10 the header of a service worker', { headers: ['Host', 'h', 'Service-Worker', 'script'] }],
  ['a Content-Length', { headers: ['Host', 'h', 'Content-Length', '0'] }],
  ['a chunked body', { headers: ['Host', 'h', 'Transfer-Encoding', 'chunked'] }],
  ['an expectation', { headers: ['Host', 'h', 'Expect', '100-continue'] }],
  ['no Host', { headers: [] }],
  ['two Host headers', { headers: ['Host', 'h', 'Host', 'h'] }],
  ['B11 the host of the gallery', { headers: ['Host', 'main'], mediaBaseUrl: 'http://bytes' }],
  ['a stopping service', { isStopping: true }],
])('%s: the request does not take the fast path', (_what, options) => {
  expect(takesFastPath(`/media/${id}`, options)).toBe(false)
})

test('B11 a request to the host of the bytes takes the fast path', () => {
  const options = { headers: ['Host', 'bytes'], mediaBaseUrl: 'http://bytes' }
  expect(takesFastPath(`/media/${id}`, options)).toBe(true)
})

test('a response that fails is logged, and delays none of the other responses of its tick', async () => {
  const errors: unknown[] = []
  let closed = 0
  const heads: Readonly<Record<string, string[]>> = { a: ['x', 'in\nvalid'], b: ['content-length', '1'] }
  const listener = createBytesFastPath(
    {
      respondToBytes: () => expect.unreachable(),
      cachedResponses: {
        open(name) {
          const bytes = Buffer.alloc(headRoom + 1, '1').subarray(headRoom)
          const close = async () => {
            closed += 1
          }
          const blob = { ...openMemoryBlob(bytes), close }
          const item = { id, bucketId: 1 as BucketId, filename: null, size: 1 }
          return { id, item, variant: null, head: heads[name] ?? expect.unreachable(), bytes, blob }
        },
        servability: async (ids) => ids.map(() => 'servable' as const),
        countRequest: () => undefined,
        remove: () => expect.unreachable(),
      },
      direct: {
        begin: () => 'request',
        run: (_route, _request, response, _id, respond) =>
          respond().catch((error) => {
            errors.push(error)
            response.writeHead(500, { 'content-length': 0 }).end()
          }),
      },
      corsHeaders: () => noCorsHeaders,
      mediaHost: null,
      recordDownload: null,
      isStopping: () => false,
    },
    () => expect.unreachable(),
  )
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const get = (name: string, connection: string) =>
      `GET /media/${name} HTTP/1.1\r\nHost: h\r\nConnection: ${connection}\r\n\r\n`
    socket.end(get('b', 'keep-alive') + get('a', 'keep-alive') + get('b', 'close'))
    expect((await text(socket)).match(/HTTP\/1.1 \d+/g)).toEqual(
      [200, 500, 200].map((code) => `HTTP/1.1 ${code}`),
    )
  } finally {
    server.closeAllConnections()
    server.close()
  }
  expect(errors).toEqual([expect.objectContaining({ code: 'ERR_INVALID_CHAR' })])
  expect(closed).toBe(3)
})
