import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { readJsonObject } from '../../src/http/bodies.ts'

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
