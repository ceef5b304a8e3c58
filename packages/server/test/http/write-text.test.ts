import type { RequestListener } from 'node:http'
import { expect, test, vi } from 'vitest'
import { withHeadRoom } from '../../src/core/bytes.ts'
import { createTextWriter, createWholeWriter } from '../../src/http/response-writers.ts'
import { exchange, get, headOf, sequences, serve } from './exchange.ts'

/** The head of a response with this text, or of a 304 if it is null. */
const headFor = (text: string | null, ...more: string[]) => (text === null ? more : headOf(text, ...more))

test.each(['abc', '', 'x'.repeat(1_000_000), null])(
  'L15, L16 head and text in one write are what Node writes, in every kind of response',
  async (body) => {
    const status = body === null ? 304 : 200
    for (const requests of sequences) {
      const writeText = createTextWriter()
      // Each response has a head of its own.
      const heads = () => requests.map((_, index) => headFor(body, 'vary', `request ${index}`)).values()
      const [first, second] = [heads(), heads()]
      const ours = await exchange((request, response) => {
        writeText(request, response, first.next().value ?? [], body)
        expect([response.headersSent, response.statusCode]).toEqual([true, status])
      }, requests)
      expect(ours).toBe(
        await exchange(
          (_request, response) => response.writeHead(status, second.next().value ?? []).end(body ?? ''),
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

test.each([[['abc', null, 'abc']], [[null, 'abc', null]]])(
  "L15 Node's own lines serve a page and a 304 alike: %j",
  async (texts) => {
    const writeText = createTextWriter(() => 5_000)
    const formatted: number[] = []
    for (const text of texts) {
      const written = await exchange(
        (request, response) => {
          const writeHead = vi.spyOn(response, 'writeHead')
          writeText(request, response, headFor(text), text)
          formatted.push(writeHead.mock.calls.length)
        },
        [get],
      )
      const expected = await exchange(
        (_request, response) => response.writeHead(text === null ? 304 : 200, headFor(text)).end(text ?? ''),
        [get],
      )
      expect(written).toBe(expected)
    }
    expect(formatted).toEqual([1, 0, 0])
  },
)

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
