import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { until } from '../../../../test/harness/until.ts'
import { sendStream } from '../../src/downloads/bytes-body.ts'

/** A server that responds with `stream`, which is announced with `length` bytes. */
async function serve(stream: Readable, length: number) {
  const failures: Error[] = []
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-length': length })
    sendStream(stream, response, length, (error) => failures.push(error))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    ...{ port: address.port, url: `http://127.0.0.1:${address.port}`, failures },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

/** Chunks with memory of their own, as sockets emit them. */
function* chunksOf(bytes: Buffer, length = 65_536): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) {
    const chunk = Buffer.allocUnsafeSlow(Math.min(length, bytes.length - at))
    bytes.copy(chunk, 0, at)
    yield chunk
  }
}

const bytesOf = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer())

test('B1 all bytes are sent', async () => {
  const bytes = randomBytes(10_000_001)
  await using server = await serve(Readable.from(chunksOf(bytes)), bytes.length)
  expect((await bytesOf(server.url)).equals(bytes)).toBe(true)
  expect(server.failures).toEqual([])
})

test.each([
  ['shorter', 1_000_000, 1_000_001, 'a stream is shorter than the response'],
  ['longer', 1_000_000, 999_999, 'a stream is longer than the response'],
])('B9 a stream that is %s than the response aborts it', async (_, size, length, message) => {
  await using server = await serve(Readable.from(chunksOf(randomBytes(size))), length)
  await expect(bytesOf(server.url)).rejects.toThrow('terminated')
  expect(server.failures.map((error) => error.message)).toEqual([message])
})

test('B9 a stream that fails aborts the response', async () => {
  function* failing() {
    yield* chunksOf(randomBytes(500_000))
    throw new Error('the store failed')
  }
  await using server = await serve(Readable.from(failing()), 1_000_000)
  await expect(bytesOf(server.url)).rejects.toThrow('terminated')
  expect(server.failures.map((error) => error.message)).toEqual(['the store failed'])
})

test('N6 little is read for a client that does not read, and a client that goes away ends the stream', async () => {
  let taken = 0
  function* counted() {
    for (const chunk of chunksOf(Buffer.alloc(100_000_000))) {
      taken += chunk.length
      yield chunk
    }
  }
  const stream = Readable.from(counted(), { objectMode: true, highWaterMark: 1 })
  await using server = await serve(stream, 100_000_000)
  const client = connect(server.port, '127.0.0.1')
  client.pause()
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('the stream is paused', () => taken > 0 && stream.isPaused())
  // Most of it is in the buffers of the system.
  expect(taken).toBeLessThan(50_000_000)
  client.destroy()
  await until('the end of the stream', () => stream.destroyed)
  expect(server.failures).toEqual([])
})
