import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { headRoom } from '../../src/core/bytes.ts'
import { createBodyPreparer } from '../../src/downloads/bytes-body.ts'
import { createWholeWriter } from '../../src/http/response-writers.ts'
import { UnreadBytes } from '../../src/http/unread-bytes.ts'
import { openMemoryBlob } from '../../src/storage/blobs/memory-blob.ts'
import { get } from './exchange.ts'

/** More than the kernel takes for a connection that is not read. */
const size = 12_000_000

/** A server whose responses have `size` bytes, with this limit for those that are not read. Shared bytes are sent whole, or as a range of a blob. */
async function start(limit: number, sharing: 'none' | 'whole' | 'range' | 'other range' = 'none') {
  const memory = Buffer.allocUnsafeSlow(headRoom + size).fill('x')
  const shared = memory.subarray(headRoom)
  const write = createWholeWriter()
  const prepareBody = createBodyPreparer(() => undefined)
  const server = createServer((request, response) => {
    if (sharing === 'whole') return write(request, response, ['content-length', `${size}`], shared)
    if (sharing !== 'none')
      return void prepareBody(openMemoryBlob(shared, sharing === 'range'), 1, size - 1, '', () => {}).then(
        (send) => {
          send(response.writeHead(206))
        },
      )
    return response.end(Buffer.alloc(size, 'x'))
  })
  let closed = 0
  const onClose = () => {
    closed += 1
  }
  const unread = new UnreadBytes({ limit, onClose })
  unread.watch(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const open = async (reads: boolean): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    if (reads) socket.resume()
    else socket.pause()
    await once(socket, 'connect')
    socket.write(get)
    onTestFinished(() => void socket.destroy())
    return socket
  }
  return { server, count: () => unread.total(), open, closed: () => closed }
}

const connections = (server: Awaited<ReturnType<typeof start>>['server']) =>
  new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))

test('N6 while clients do not read too many bytes, those that would need longest are closed', async () => {
  const { server, count, open, closed } = await start(3 * size)
  const stalled = []
  for (let index = 0; index < 8; index += 1) stalled.push(await open(false))
  await expect.poll(closed).toBeGreaterThanOrEqual(4)
  await expect.poll(count).toBeLessThanOrEqual(3 * size)
  const left = await connections(server)
  expect(left).toBeGreaterThanOrEqual(2)
  // One that reads gets all of its response, although others were there before.
  const reader = connect((server.address() as AddressInfo).port, '127.0.0.1')
  let received = 0
  reader.on('data', (bytes) => {
    received += bytes.length
  })
  reader.write(get)
  await expect.poll(() => received).toBeGreaterThan(size)
  reader.destroy()
})

test.each(['whole', 'range'] as const)(
  'N6 bytes that responses share are not counted: %s',
  async (sharing) => {
    const { count, open, closed } = await start(size, sharing)
    for (let index = 0; index < 8; index += 1) await open(false)
    // Longer than some counts.
    for (let counts = 0; counts < 5; counts += 1) {
      await setTimeout(200)
      expect(count()).toBeLessThan(size)
    }
    expect(closed()).toBe(0)
  },
)

test('N6 bytes in memory that no other response has are counted', async () => {
  const { open, closed } = await start(size, 'other range')
  for (let index = 0; index < 8; index += 1) await open(false)
  await expect.poll(closed).toBeGreaterThanOrEqual(4)
})
