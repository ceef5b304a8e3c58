import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { newMediaId } from '../../../src/core/media-id.ts'
import { createBytesFastPath } from '../../../src/http/media/fast-path.ts'
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
      cachedResponses: { open: () => expect.unreachable(), areServable: () => expect.unreachable() },
      direct: {
        begin() {
          taken = true
          return null
        },
        run: () => expect.unreachable(),
      },
      corsHeaders: () => ({}),
      mediaHost: createMediaHost('http://main', mediaBaseUrl || null),
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
