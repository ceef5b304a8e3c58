import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test, vi } from 'vitest'
import { createHeadWriter } from '../../../src/http/media/reuse-heads.ts'

/** Sends the requests on one connection; returns what the server sent, except for `Date`. */
async function exchange(write: ReturnType<typeof createHeadWriter>, ...requests: string[]): Promise<string> {
  const head = ['etag', '"a"', 'content-length', '3']
  const server = createServer((request, response) => {
    write(request, response, head)
    expect([response.headersSent, response.statusCode]).toEqual([true, 200])
    response.end('abc')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.end(requests.join(''))
    return (await text(socket)).replaceAll(/Date: .*\r\n/g, '')
  } finally {
    server.close()
  }
}

const get = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n'
const others = [
  'HEAD / HTTP/1.1\r\nHost: h\r\n\r\n',
  'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n',
]

test('B2 a head that is reused is that which Node writes, in every kind of response', async () => {
  const formatted = createHeadWriter(() => Number.NaN)
  const reused = createHeadWriter(() => 0)
  for (const requests of [
    [get, get, get],
    [get, ...others],
    [...others, get],
  ])
    expect(await exchange(reused, ...requests)).toBe(await exchange(formatted, ...requests))
})

test('B2 a head is reused for a second, so that Date is right', async () => {
  let now = 5_000
  let formatted = 0
  const write = createHeadWriter(() => now)
  const head = ['content-length', '0']
  const server = createServer((request, response) => {
    const writeHead = vi.spyOn(response, 'writeHead')
    write(request, response, head)
    formatted += writeHead.mock.calls.length
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const counts: number[] = []
  for (now of [5_000, 5_999, 6_000, 6_500, 4_000]) {
    await (await fetch(`http://127.0.0.1:${port}/`)).arrayBuffer()
    counts.push(formatted)
  }
  server.closeAllConnections()
  server.close()
  expect(counts).toEqual([1, 1, 2, 2, 3])
})
