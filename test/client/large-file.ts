import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { type Client, createClient } from '../../packages/client/src/index.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import type { Passed } from '../harness/watched-proxy.ts'
import { newToken, urlsOf } from './buckets.ts'

export const chunkSize = 8 * 1024 * 1024
export const bytes = randomBytes(2 * chunkSize + 300_000)
/** Is sent in three chunks. */
export const file = new File([bytes], 'Größe.bin', { type: 'application/x-thing', lastModified: 1 })
export const sha256 = createHash('sha256').update(bytes).digest('hex')

export const retry = { delay: 1 }

/** Its base URL differs from the requested one, so that a client that follows Location fails. */
export const startRelocatedServer = (): Promise<TestServer> =>
  startServer({ MEDIABUCKET_BASE_URL: 'http://127.0.0.1:9/box' })

/** Clients of a new bucket: one that requests this URL, and one that requests the server. */
export async function clientsOf(server: TestServer, url = server.url) {
  const token = await newToken(server, randomUUID())
  return {
    token,
    client: createClient({ url, token, retry }),
    direct: createClient({ url: server.url, token }),
  }
}

/** Expects that the bucket has this item only, and that it has the bytes of the file. */
export async function expectOneItem(client: Client, media: { readonly url: string }): Promise<void> {
  expect(await urlsOf(client)).toEqual([media.url])
  expect(await client.describe(media.url)).toMatchObject({ size: bytes.length, sha256 })
}

export const offsets = (passed: readonly Passed[]) => passed.map(({ offset }) => offset)
