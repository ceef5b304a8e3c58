import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { closeSlowReaders } from '../../src/http/client-connections.ts'

const size = 60_000_000

test('N6 a client that reads more slowly than the minimal rate is disconnected, although it is never idle', async () => {
  const body = Buffer.alloc(size)
  const server = createServer((_request, response) => response.end(body))
  let closed = 0
  closeSlowReaders(server, { minSendRate: 2_000_000, idleTimeout: 1_000 }, () => {
    closed += 1
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  onTestFinished(() => void server.close())

  async function download(bytesPerStep: number): Promise<number> {
    let received = 0
    let quota = bytesPerStep
    const socket = connect(port, '127.0.0.1', () =>
      socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
    )
    const step = setInterval(() => {
      quota = bytesPerStep
      socket.resume()
    }, 100)
    socket.on('data', ({ length }) => {
      received += length
      quota -= length
      if (quota <= 0) socket.pause()
    })
    socket.on('error', () => undefined)
    await once(socket, 'close')
    clearInterval(step)
    return received
  }
  // 640 kB per second, and as fast as possible, which a busy machine makes many times slower.
  const [slow, quick] = await Promise.all([download(60_000), download(size)])
  expect(quick).toBeGreaterThan(size)
  expect(slow).toBeLessThan(size)
  expect(closed).toBe(1)
})
