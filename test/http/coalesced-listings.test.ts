import { afterAll, beforeAll, expect, test } from 'vitest'
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

/** Sends the requests at the same time, each on a connection of its own. */
const sendAll = (...requests: string[]) =>
  Promise.all(requests.map((request) => sendRaw(server.url, request)))

const get = (...headers: string[]) =>
  ['GET /api/media HTTP/1.1', 'Host: h', ...headers, 'Connection: close', '', ''].join('\r\n')

test('A6, L16 different requests that arrive at the same time get their own responses', async () => {
  const stranger = `Authorization: ${(await makeToken(server, '--bucket', 'nothing')).authorization}`
  const tag = (await sendRaw(server.url, get(authorization))).headers.get('etag')
  const responses = await sendAll(
    get(authorization),
    get(stranger),
    get(authorization, 'Accept-Encoding: gzip'),
    get(authorization, `If-None-Match: ${tag}`),
    get(stranger, `If-None-Match: ${tag}`),
    get(withoutScope),
    get(authorization),
  )
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 304, 200, 403, 200])
  expect(
    responses.map(
      ({ headers, body }) => headers.get('content-encoding') ?? /"total":\d+/.exec(body)?.[0] ?? null,
    ),
  ).toEqual(['"total":10974', '"total":0', 'gzip', null, '"total":0', null, '"total":10974'])
})

test('L16, C1 a page that is sent again on a connection has the same head and bytes, and each origin its own head', async () => {
  const { token } = await seed(server, '--items', '25', '--bucket', 'few')
  const headers = { authorization: `Bearer ${token}` }
  const origin = { ...headers, origin: 'https://app.example.org' }
  const zipped = { ...headers, 'accept-encoding': 'gzip' }
  const exchange = async (sent: Record<string, string>) => {
    const response = await fetch(`${server.url}/api/media?page=2`, { headers: sent })
    return [[...response.headers].filter(([name]) => name !== 'date'), await response.text()]
  }
  const [first, fromOrigin, compressed] = [
    await exchange(headers),
    await exchange(origin),
    await exchange(zipped),
  ]
  expect(fromOrigin).toEqual([
    expect.arrayContaining([['access-control-allow-origin', origin.origin]]),
    first[1],
  ])
  for (let round = 0; round < 3; round += 1) {
    expect(await exchange(headers)).toEqual(first)
    expect(await exchange(origin)).toEqual(fromOrigin)
    expect(await exchange(zipped)).toEqual(compressed)
  }
})
