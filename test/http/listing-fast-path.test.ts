import { afterAll, beforeAll, expect, test } from 'vitest'
import { newToken } from '../../packages/server/src/core/token-format.ts'
import { sendRaw } from '../harness/raw-http.ts'
import { seed } from '../harness/seed.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { makeToken } from '../harness/token.ts'

let server: TestServer
let authorization: string
let withoutScope: string
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_CORS_ORIGINS: 'https://app.example.org' })
  const { token } = await seed(server, '--items', '12345', '--bucket', 'many', '--delete-every', '9')
  authorization = `Authorization: Bearer ${token}`
  const other = await makeToken(server, '--bucket', 'many', '--scope', 'media:write')
  withoutScope = `Authorization: ${other.authorization}`
})
afterAll(() => server[Symbol.asyncDispose]())

const unknown = `Authorization: Bearer ${newToken()}`

/** Paths and headers of valid and invalid listings; `*` is replaced by the valid token, `TAG` by the entity tag of the page. */
const requests: readonly (readonly [string, ...string[]])[] = [
  ['/api/media', '*'],
  ['/api/media/?page=2', '*'],
  ['/v1/media?page=1234&x=y', '*'],
  ['/v1/media/?page=99999', '*'],
  ['/api/media?page=2', '*', 'Accept-Encoding: gzip'],
  ['/api/media?page=1235', '*', 'Accept-Encoding: br;q=1, gzip;q=0.1'],
  ['/api/media?page=2', '*', 'If-None-Match: TAG'],
  ['/api/media?page=2', '*', 'If-None-Match: *'],
  ['/api/media?page=2', '*', 'Accept-Encoding: gzip', 'If-None-Match: *'],
  ['/api/media?page=2', '*', 'Origin: https://app.example.org'],
  ['/api/media?page=2', '*', 'Origin: https://evil.example.org'],
  // A page that is not cached yet.
  ['/api/media?page=777', '*', 'Origin: https://app.example.org'],
  ['/api/media?page=02', '*'],
  ['/api/media?page=1&page=1', '*'],
  ['/api/media?page=%31', '*'],
  ['/api/media?page=%zz', '*'],
  ['/api/media?page', '*'],
  ['/api/media?%70age=3', '*'],
  ['/api/media'],
  ['/api/media', unknown],
  ['/api/media', 'Authorization: Bearer mbkt_cut'],
  ['/api/media', 'NO SCOPE'],
  ['/api/media', 'Authorization: Basic YTpi'],
  ['/api/media', '*', '*'],
  ['/api/media', '*', 'Host: another'],
  ['/api/media', unknown, 'Origin: https://app.example.org'],
]

test.each(requests)(
  'the fast path and the framework return the same response to %s %s %s %s',
  async (path, ...headers) => {
    const ask = async (...more: string[]) => {
      const lines = [`GET ${path} HTTP/1.1`, 'Host: h', ...headers, ...more, 'Connection: close', '', '']
      const meant = new Map([
        ['*', authorization],
        ['NO SCOPE', withoutScope],
      ])
      const bytes = lines.map((line) => meant.get(line) ?? line).join('\r\n')
      const { status, headers: answered, body } = await sendRaw(server.url, bytes)
      return {
        status,
        headers: Object.fromEntries([...answered].filter(([name]) => name !== 'date').toSorted()),
        // The only difference between two responses to the same request.
        body: body.replace(/"instance":"[^"]+"/, ''),
      }
    }
    const tagged = headers.indexOf('If-None-Match: TAG')
    if (tagged !== -1) {
      headers.splice(tagged, 1)
      headers.push(`If-None-Match: ${(await ask()).headers['etag']}`)
    }
    // A GET with a body, even an empty one, takes the path of the framework.
    expect(await ask()).toEqual(await ask('Content-Length: 0'))
  },
)

test('A6, L16 different requests that arrive in one read get their own responses', async () => {
  const stranger = `Authorization: ${(await makeToken(server, '--bucket', 'nothing')).authorization}`
  const get = (...headers: string[]) =>
    ['GET /api/media HTTP/1.1', 'Host: h', ...headers, '', ''].join('\r\n')
  const tag = (await sendRaw(server.url, get(authorization, 'Connection: close'))).headers.get('etag')
  const all = await sendRaw(
    server.url,
    get(authorization) +
      get(stranger) +
      get(authorization, 'Accept-Encoding: gzip') +
      get(authorization, `If-None-Match: ${tag}`) +
      get(stranger, `If-None-Match: ${tag}`) +
      get(authorization, 'Connection: close'),
  )
  const text = `HTTP/1.1 ${all.status}\r\n${[...all.headers].join('\r\n')}\r\n\r\n${all.body}`
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(
    [200, 200, 200, 304, 200, 200].map((status) => `HTTP/1.1 ${status}`),
  )
  expect(text.match(/"total":\d+|content-encoding: gzip/g)).toEqual([
    '"total":10974',
    '"total":0',
    'content-encoding: gzip',
    '"total":0',
    '"total":10974',
  ])
})

test('L16 a page that is sent again on a connection has the same head and bytes, and each origin its own head', async () => {
  const { token } = await seed(server, '--items', '25', '--bucket', 'few')
  const get = (...headers: string[]) =>
    ['GET /api/media?page=2 HTTP/1.1', 'Host: h', `Authorization: Bearer ${token}`, ...headers, '', ''].join(
      '\r\n',
    )
  const origin = 'Origin: https://app.example.org'
  const requests = [get(), get(), get(origin), get(), get('Accept-Encoding: gzip'), get(origin), get()]
  const exchange = async (...sent: string[]) => {
    const { status, headers, body } = await sendRaw(server.url, sent.join('') + get('Connection: close'))
    return `HTTP/1.1 ${status}\r\n${[...headers].map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n${body}`
      .replaceAll(/date: .*\r\n/gi, '')
      .toLowerCase()
      .split('http/1.1 ')
      .slice(1)
  }
  const [fast, slow] = [
    await exchange(...requests),
    // A GET with a body, even an empty one, takes the path of the framework.
    await exchange(
      ...requests.map((request) => request.replace('\r\n\r\n', '\r\nContent-Length: 0\r\n\r\n')),
    ),
  ]
  expect(fast).toHaveLength(requests.length + 1)
  const sorted = (responses: readonly string[]) =>
    responses.map((response) => {
      const [head = '', body] = response.split('\r\n\r\n')
      return [head.split('\r\n').toSorted(), body]
    })
  expect(sorted(fast)).toEqual(sorted(slow))
})
