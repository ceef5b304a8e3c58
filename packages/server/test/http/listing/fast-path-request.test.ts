import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { parseFastPathRequest } from '../../../src/http/listing/fast-path-request.ts'

function request(method: string, ...lines: readonly (readonly [string, string])[]): IncomingMessage {
  const message = new IncomingMessage(new Socket())
  message.method = method
  message.url = '/api/media'
  for (const [name, value] of lines) {
    message.rawHeaders.push(name, value)
    message.headers[name.toLowerCase()] ??= value
  }
  return message
}

const plainHeaders = [
  ['Host', 'h'],
  ['AUTHORIZATION', 'Bearer x'],
] as const

test('a plain listing is reduced to the parts that determine its response', () => {
  expect(
    parseFastPathRequest(request('GET', ...plainHeaders, ['Accept', '*/*'], ['If-None-Match', '"x"'])),
  ).toEqual({
    url: '/api/media',
    authorization: 'Bearer x',
    acceptEncoding: undefined,
    ifNoneMatch: '"x"',
    origin: undefined,
  })
})

test.each([
  ['another method', request('HEAD', ...plainHeaders)],
  ['no token', request('GET', ['Host', 'h'])],
  ['no host', request('GET', ['Authorization', 'Bearer x'])],
  ['a second host', request('GET', ...plainHeaders, ['host', 'i'])],
  ['A4 a second token', request('GET', ...plainHeaders, ['Authorization', 'Bearer x'])],
  ['a length', request('GET', ...plainHeaders, ['Content-Length', '0'])],
  ['chunks', request('GET', ...plainHeaders, ['Transfer-Encoding', 'chunked'])],
  ['an expectation', request('GET', ...plainHeaders, ['Expect', '100-continue'])],
  ['C2 the method of a preflight', request('GET', ...plainHeaders, ['Access-Control-Request-Method', 'GET'])],
])('a listing with %s does not take the fast path', (_what, message) => {
  expect(parseFastPathRequest(message)).toBeNull()
})
