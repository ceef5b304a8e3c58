import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { writeBody } from '../../src/listing/listing-routes.ts'

/** 64 MB, far more than sockets hold. */
const count = 256
const chunkAt = (index: number) => Buffer.alloc(256 * 1024, index)

test('L7 a large response waits for its reader, and arrives complete and in order', async () => {
  let taken = 0
  function* chunks() {
    for (; taken < count; taken += 1) yield chunkAt(taken)
  }
  const server = createServer((_request, response) => void writeBody(response, { chunks }))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}`)
    // Many more ticks than a writer without backpressure needs.
    for (let tick = 0; tick < 10 * count; tick += 1) await setImmediate()
    expect(taken).toBeLessThan(count)
    const bytes = Buffer.from(await response.arrayBuffer())
    expect(bytes.equals(Buffer.concat(Array.from({ length: count }, (_, index) => chunkAt(index))))).toBe(
      true,
    )
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
