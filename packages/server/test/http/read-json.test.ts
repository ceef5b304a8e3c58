import { once } from 'node:events'
import { createServer, IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openConnection } from '../../../../test/harness/connection.ts'
import { until } from '../../../../test/harness/until.ts'
import { Backpressure, createBodyReader, readJsonObject } from '../../src/http/bodies.ts'

test('O4 a JSON body that does not arrive within 30 seconds is refused', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const request = new IncomingMessage(new Socket())
  request.headers['content-type'] = 'application/json'
  async function* slowBody() {
    yield Buffer.from('{')
    await new Promise(() => undefined)
  }
  const reading = expect(readJsonObject(request, slowBody, ['ids'])).rejects.toMatchObject({
    code: 'request-timeout',
  })
  await vi.advanceTimersByTimeAsync(30_000)
  await reading
})

test.each([
  ['all', 'complete', 0],
  ['some', 'request-timeout', 1],
])(
  'O4 if %s bytes of a JSON body arrive while the process does not run, it is %s',
  async (_, result, missing) => {
    const outcomes: Promise<string>[] = []
    const requests: IncomingMessage[] = []
    const readBody = createBodyReader(new Backpressure(1_000_000))
    const server = createServer((request, response) => {
      requests.push(request)
      const outcome = readJsonObject(request, readBody, null).then(
        () => 'complete',
        (error: unknown) => String(Object(error).code),
      )
      outcomes.push(outcome)
      void outcome.finally(() => response.end())
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void server.close())
    using connection = await openConnection(`http://127.0.0.1:${Object(server.address()).port}`)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const body = JSON.stringify({ text: 'x'.repeat(120_000) })
    connection.send(
      `POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n{`,
    )
    await until('the first byte', () => (requests[0]?.socket.bytesRead ?? 0) > 0)
    // The kernel has the rest, and the deadline passes before anything is read.
    connection.send(body.slice(1, body.length - missing))
    vi.advanceTimersByTime(31_000)
    expect(await outcomes[0]).toBe(result)
  },
)
