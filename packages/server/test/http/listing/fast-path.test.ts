import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createListingFastPath } from '../../../src/http/listing/fast-path.ts'

/** 64 MB, far more than sockets hold. */
const count = 256
const chunkAt = (index: number) => Buffer.alloc(256 * 1024, index)

test('L7 a large answer waits for its reader, and arrives whole and in order', async () => {
  let taken = 0
  function* chunks() {
    for (; taken < count; taken += 1) yield chunkAt(taken)
  }
  const length = count * chunkAt(0).length
  const lane = createListingFastPath(
    {
      respondToListing: async () => ({
        status: 200,
        head: ['content-length', `${length}`],
        body: { length, own: 0, whole: null, chunks },
      }),
      logRequest: () => undefined,
      corsHeaders: () => ({}),
      limits: { countAddress: () => null },
      reportFault: () => expect.unreachable(),
      baseUrl: 'http://x',
      isStopping: () => false,
    },
    (_request, response) => void response.writeHead(404).end(),
  )
  const server = createServer(lane).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const answer = await fetch(`http://127.0.0.1:${port}/api/media`, {
      headers: { authorization: 'Bearer x' },
    })
    // Many more turns than a writer needs that does not wait.
    for (let turn = 0; turn < 10 * count; turn += 1) await setImmediate()
    expect(taken).toBeLessThan(count)
    const bytes = Buffer.from(await answer.arrayBuffer())
    expect(bytes.equals(Buffer.concat(Array.from({ length: count }, (_, index) => chunkAt(index))))).toBe(
      true,
    )
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
