import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createListingFastPath } from '../../../src/http/listing/fast-path.ts'

/** 64 MB, far more than sockets hold. */
const count = 256
const chunkAt = (index: number) => Buffer.alloc(256 * 1024, index)

test('L7 a large response waits for its reader, and arrives complete and in order', async () => {
  let taken = 0
  function* chunks() {
    for (; taken < count; taken += 1) yield chunkAt(taken)
  }
  const length = count * chunkAt(0).length
  const listener = createListingFastPath(
    {
      respondToListing: async () => ({
        status: 200,
        head: ['content-length', `${length}`],
        cors: [],
        body: { length, own: 0, whole: null, chunks },
      }),
      direct: { begin: () => 'id', run: (_route, _request, _response, _id, respond) => respond() },
      isStopping: () => false,
    },
    (_request, response) => void response.writeHead(404).end(),
  )
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}/api/media`, {
      headers: { authorization: 'Bearer x' },
    })
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
