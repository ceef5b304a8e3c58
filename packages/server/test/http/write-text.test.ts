import type { RequestListener } from 'node:http'
import { expect, test, vi } from 'vitest'
import { withHeadRoom } from '../../src/core/bytes.ts'
import { createTextWriter, createWholeWriter } from '../../src/http/response-writers.ts'
import { exchange, get, headOf, sequences, serve } from './exchange.ts'

test.each(['abc', '', 'x'.repeat(1_000_000)])(
  'L15 head and text in one write are what Node writes, in every kind of response',
  async (body) => {
    for (const requests of sequences) {
      const writeText = createTextWriter()
      // Each response has a head of its own.
      const heads = () => requests.map((_, index) => headOf(body, 'vary', `request ${index}`)).values()
      const [first, second] = [heads(), heads()]
      const ours = await exchange((request, response) => {
        writeText(request, response, first.next().value ?? [], body)
        expect([response.headersSent, response.statusCode]).toEqual([true, 200])
      }, requests)
      expect(ours).toBe(
        await exchange(
          (_request, response) => response.writeHead(200, second.next().value ?? []).end(body),
          requests,
        ),
      )
    }
  },
)

test('L15 a response finishes when its text is sent, and its connection serves the next request', async () => {
  const writeText = createTextWriter()
  const events: string[] = []
  const listener: RequestListener = (request, response) => {
    for (const event of ['finish', 'close'])
      response.on(event, () => events.push(`${event} ${response.writableFinished}`))
    writeText(request, response, headOf('abc'), 'abc')
  }
  await exchange(listener, [get, get])
  expect(events).toEqual(['finish true', 'close true', 'finish true', 'close true'])
})

test('O3 a response whose connection was destroyed does not count as sent', async () => {
  const [writeText, writeWhole] = [createTextWriter(), createWholeWriter()]
  const [head, bytes] = [headOf('abc'), withHeadRoom(Buffer.from('abc'))]
  const writers: ((...parts: Parameters<RequestListener>) => void)[] = [
    (request, response) => writeText(request, response, head, 'abc'),
    (request, response) => writeWhole(request, response, head, bytes),
  ]
  for (const write of writers) {
    const isFinished: boolean[] = []
    const listener =
      (isDestroyed: boolean): RequestListener =>
      (request, response) => {
        response.once('close', () => isFinished.push(response.writableFinished))
        if (isDestroyed) request.socket.destroy()
        write(request, response)
      }
    await exchange(listener(false), [get])
    await exchange(listener(true), [get])
    expect(isFinished).toEqual([true, false])
  }
})

test("L15 Node's own lines of the head are reused for a second, so that Date is right", async () => {
  let now = 5_000
  const formatted: number[] = []
  const writeText = createTextWriter(() => now)
  await serve(
    (request, response) => {
      const writeHead = vi.spyOn(response, 'writeHead')
      writeText(request, response, headOf('a'), 'a')
      formatted.push(writeHead.mock.calls.length)
    },
    async (port) => {
      for (now of [5_000, 5_999, 6_000, 6_500, 4_000])
        expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('a')
    },
  )
  expect(formatted).toEqual([1, 0, 1, 0, 1])
})
