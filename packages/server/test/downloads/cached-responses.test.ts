import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeAll, expect, test } from 'vitest'
import { BucketVariants } from '../../src/core/bucket-pictures.ts'
import { newItemId } from '../../src/core/ids.ts'
import { BytesCache, cachedBytesOperations } from '../../src/downloads/bytes-cache.ts'
import { BytesResponder } from '../../src/downloads/bytes-response.ts'
import { createCachedResponses, headersMemory } from '../../src/downloads/bytes-routes.ts'
import { emptyLine } from '../../src/http/request-log.ts'
import { createWholeWriter } from '../../src/http/response-writers.ts'
import type { OpenVariant } from '../../src/pictures/rendered-variants.ts'
import { openMemoryBlob } from '../../src/storage/blobs/memory-blob.ts'
import type { Item } from '../../src/storage/catalog/records.ts'
import { storedItem } from '../storage/catalog/samples.ts'
import { variantList } from '../variant-samples.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

async function memoryInUse(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    await setImmediate()
    collectGarbage()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Without a hash, bytes are in the cache at once. Another thread computes hashes. */
class UnhashedCache extends BytesCache {
  override open(...[key, known, read]: Parameters<BytesCache['open']>): Promise<OpenVariant> {
    return super.open(key, { ...known, sha256: null }, read)
  }
}

/** Fills a cache with files of one size as their downloads do. Returns its statistics, and the growth of the process. */
async function fill(capacity: number, size: number) {
  const cache = new UnhashedCache(capacity, headersMemory)
  let found: Item | null = null
  const operations = cachedBytesOperations({
    cache,
    variantKeys: variantList.keys,
    leavesFiles: false,
    openBytes: async () => openMemoryBlob(Buffer.allocUnsafeSlow(size).fill('a')),
    openVariant: () => expect.unreachable(),
  })
  const responses = createCachedResponses({
    ...operations,
    variants: variantList,
    formatFor: () => 'webp',
    servability: () => expect.unreachable(),
  })
  const responder = new BytesResponder(
    {
      urls: { baseUrl: 'http://localhost', extensions: true },
      vary: (...names) => ['Origin', ...names].join(', '),
      authorize: () => expect.unreachable(),
      usage: { countRequest: () => {}, countBytes: () => {} },
      settings: { mediaMaxAge: 1_000, sendfile: null },
    },
    { ...operations, findByName: async () => found, verifyLink: () => expect.unreachable() },
    {
      ...responses,
      variants: new BucketVariants({}),
      formatFor: () => 'webp',
      prepareBody: async () => () => undefined,
      recordDownload: null,
    },
  )
  const writeWhole = createWholeWriter()
  const before = await memoryInUse()
  let previous = -1
  while (cache.statistics().size > previous) {
    previous = cache.statistics().size
    const id = newItemId()
    found = item(id, size)
    const { head } = await responder.respond({
      id,
      line: emptyLine(),
      isHead: false,
      name: id,
      selection: { name: undefined },
      wait: undefined,
      isDownload: false,
      link: null,
      isNamed: false,
      request: new IncomingMessage(new Socket()),
    })
    // The second request is served from memory, with a head that is formatted for it.
    const request = new IncomingMessage(new Socket())
    request.httpVersionMajor = 1
    request.httpVersionMinor = 1
    await setImmediate()
    const cached = responses.open(id, { name: undefined })
    expect(cached?.head ?? head).toBe(head)
    const response = new ServerResponse(request)
    response.assignSocket(request.socket)
    if (cached) writeWhole(request, response, head, cached.bytes)
  }
  found = null
  const growth = (await memoryInUse()) - before
  // Used after the measurement, so that nothing of it has been freed before.
  return { growth, counted: cache.statistics().size, kept: [responses, writeWhole, responder] }
}

const item = (id: Item['id'], size: number): Item =>
  storedItem({
    ...{ id, size, filename: `a picture of the harbour ${id.slice(20)}.txt`, contentType: 'text/plain' },
    ...{ extension: 'txt', sha256: new Uint8Array(32), createdAt: 1.7e12, width: null, height: null },
  })

// The first run also allocates what the functions need.
beforeAll(() => fill(100_000, 1))

test.each([1, 300, 2_000, 4_000, 20_000])(
  'a cache that is full of files of %i bytes takes at most 1.3 times its size',
  async (size) => {
    const capacity = 2_097_152
    const { growth, counted } = await fill(capacity, size)
    expect(counted).toBeGreaterThan(0.95 * capacity)
    expect(growth).toBeLessThan(1.3 * capacity)
  },
)
