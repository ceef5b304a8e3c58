import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { requestBody } from '../../../src/storage/blobs/s3/object-reads.ts'

/** A store that sends these texts, one after the other, after it has received a request. */
async function storeOf(...texts: readonly string[]) {
  const requests: string[] = []
  const server = createServer((socket: Socket) => {
    socket.on('error', () => undefined)
    socket.once('data', async (request) => {
      requests.push(request.toString())
      for (const text of texts) {
        await new Promise((done) => socket.write(text, done))
        await new Promise(setImmediate)
      }
      if (texts.length > 0) socket.end()
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: new URL(`http://127.0.0.1:${address.port}/bucket/key?signature=a%2Fb`),
    requests,
    [Symbol.dispose]: () => void server.close(),
  }
}

const range = { start: 3, length: 5 }
const head = 'HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\nContent-Range: bytes 3-7/9\r\n\r\n'

test.each([
  ['at once', [`${head}12345`]],
  ['in pieces', [head.slice(0, 20), head.slice(20, -1), `${head.slice(-1)}1`, '23', '45']],
  ['after the head', [head, '12345']],
])('the body that arrives %s remains to be read', async (_, texts) => {
  using store = await storeOf(...texts)
  const socket = await requestBody(store.url, range, 5_000)
  if (socket === null) throw new Error('the range was sent')
  expect((await buffer(socket)).toString()).toBe('12345')
  const [line, ...headers] = store.requests[0]?.split('\r\n') ?? []
  expect(line).toBe('GET /bucket/key?signature=a%2Fb HTTP/1.1')
  expect(headers).toContain('Range: bytes=3-7')
  expect(headers).toContain(`Host: ${store.url.host}`)
})

test.each([
  ['another status', ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345']],
  ['an error', ['HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\n12345']],
  ['another length', [head.replace('Length: 5', 'Length: 4')]],
  ['two lengths', [head.replace('Content-Range', 'Content-Length: 5\r\nContent-Range')]],
  ['no length', ['HTTP/1.1 206 Partial Content\r\n\r\n12345']],
  ['a transfer coding', [head.replace('Content-Range', 'Transfer-Encoding: chunked\r\nContent-Range')]],
  ['a content coding', [head.replace('Content-Range', 'Content-Encoding: gzip\r\nContent-Range')]],
  ['an incomplete head', [head.slice(0, -4)]],
  ['an endless head', [head.slice(0, -2), 'X: y\r\n'.repeat(10_000)]],
  ['something else', ['220 mail.example.org ESMTP\r\n']],
])('a response with %s is refused', async (_, texts) => {
  using store = await storeOf(...texts)
  expect(await requestBody(store.url, range, 5_000)).toBeNull()
})

test('a store that does not respond in time, or at all, is refused', async () => {
  using silent = await storeOf()
  expect(await requestBody(silent.url, range, 200)).toBeNull()
  expect(await requestBody(new URL('http://127.0.0.1:1/'), range, 5_000)).toBeNull()
  expect(await requestBody(new URL('https://127.0.0.1:1/'), range, 5_000)).toBeNull()
})
