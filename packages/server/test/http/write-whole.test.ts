import type { RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { headRoom, withHeadRoom } from '../../src/core/bytes.ts'
import { createWholeWriter } from '../../src/http/response-writers.ts'
import { exchange, get, headOf, sequences, serve } from './exchange.ts'

/** Bytes as they are cached. */
const cached = (body: string): Uint8Array => withHeadRoom(Buffer.from(body))

test.each(['abc', '', 'x'.repeat(1_000_000)])(
  'B2 head and bytes in one write are what Node writes, in every kind of response',
  async (body) => {
    const writeWhole = createWholeWriter()
    const longName = 'n'.repeat(headRoom)
    for (const more of [[], ['content-disposition', longName]]) {
      const [head, bytes] = [headOf(body, ...more), cached(body)]
      for (const requests of sequences) {
        const ours = await exchange((request, response) => {
          writeWhole(request, response, head, bytes)
          expect([response.headersSent, response.statusCode]).toEqual([true, 200])
        }, requests)
        expect(ours).toBe(
          await exchange((_request, response) => response.writeHead(200, head).end(body), requests),
        )
      }
      expect(Buffer.from(bytes).equals(Buffer.from(body))).toBe(true)
    }
  },
)

test('B2 bytes without room for a head are sent as Node sends them', async () => {
  const writeWhole = createWholeWriter()
  const bytes = new TextEncoder().encode('abc')
  const listener: RequestListener = (request, response) => writeWhole(request, response, headOf('abc'), bytes)
  expect(await exchange(listener, [get, get])).toMatch(/\r\n\r\nabcHTTP[\s\S]*\r\n\r\nabc$/)
})

test('B2 a response finishes when its bytes are sent, and its connection serves the next request', async () => {
  const writeWhole = createWholeWriter()
  const events: string[] = []
  const listener: RequestListener = (request, response) => {
    for (const event of ['finish', 'close'])
      response.on(event, () => events.push(`${event} ${response.writableFinished}`))
    writeWhole(request, response, headOf('abc'), cached('abc'))
  }
  await exchange(listener, [get, get])
  expect(events).toEqual(['finish true', 'close true', 'finish true', 'close true'])
})

test('B2 a head is reused for a second, so that Date is right', async () => {
  let now = 5_000
  let formatted = 0
  const writeWhole = createWholeWriter(() => now)
  const [head, bytes] = [headOf('a'), cached('a')]
  const counts: number[] = []
  await serve(
    (request, response) => {
      const writeHead = vi.spyOn(response, 'writeHead')
      writeWhole(request, response, head, bytes)
      formatted += writeHead.mock.calls.length
    },
    async (port) => {
      for (now of [5_000, 5_999, 6_000, 6_500, 4_000]) {
        await (await fetch(`http://127.0.0.1:${port}/`)).arrayBuffer()
        counts.push(formatted)
      }
    },
  )
  expect(counts).toEqual([1, 1, 2, 2, 3])
})

test('B2 a head that a connection has not accepted does not change', async () => {
  let now = 5_000
  const writeWhole = createWholeWriter(() => now)
  // More than the system accepts for a client that does not read.
  const body = 'x'.repeat(16_777_216)
  const [head, bytes] = [headOf(body), cached(body)]
  const memory = Buffer.from(bytes.buffer)
  // The head room is not initialized, and may contain the head of another test.
  memory.fill(0, 0, headRoom)
  const sockets: Socket[] = []
  await serve(
    (request, response) => {
      sockets.push(request.socket)
      writeWhole(request, response, head, bytes)
    },
    async (port) => {
      const download = async () => expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe(body)
      const slow = connect(port, '127.0.0.1')
      slow.pause()
      slow.write(get)
      await expect.poll(() => sockets[0]?.writableLength).toBeGreaterThan(0)
      // Shows whether the head is written again.
      const start = memory.indexOf('HTTP')
      memory.write('http', start)
      now = 9_000
      await download()
      expect(memory.toString('latin1', start, start + 4)).toBe('http')
      const [accepted] = sockets
      if (!accepted) throw new Error('the server has accepted no connection')
      const closed = new Promise((done) => accepted.once('close', done))
      slow.destroy()
      await closed
      await download()
      expect(memory.toString('latin1', start, start + 4)).toBe('HTTP')
    },
  )
})
