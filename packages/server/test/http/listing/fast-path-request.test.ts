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

const usual = [
  ['Host', 'h'],
  ['AUTHORIZATION', 'Bearer x'],
] as const

test('a plain listing is known by what shapes its answer', () => {
  expect(parseFastPathRequest(request('GET', ...usual, ['Accept', '*/*'], ['If-None-Match', '"x"']))).toEqual(
    {
      url: '/api/media',
      authorization: 'Bearer x',
      acceptEncoding: undefined,
      ifNoneMatch: '"x"',
      origin: undefined,
    },
  )
})

test.each([
  ['another method', request('HEAD', ...usual)],
  ['no token', request('GET', ['Host', 'h'])],
  ['no host', request('GET', ['Authorization', 'Bearer x'])],
  ['a second host', request('GET', ...usual, ['host', 'i'])],
  ['A4 a second token', request('GET', ...usual, ['Authorization', 'Bearer x'])],
  ['a length', request('GET', ...usual, ['Content-Length', '0'])],
  ['chunks', request('GET', ...usual, ['Transfer-Encoding', 'chunked'])],
  ['an expectation', request('GET', ...usual, ['Expect', '100-continue'])],
  ['C2 the method of a preflight', request('GET', ...usual, ['Access-Control-Request-Method', 'GET'])],
])('%s makes a listing other than plain', (_what, message) => {
  expect(parseFastPathRequest(message)).toBeNull()
})
