import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient, type UploadProgress } from '../../packages/client/src/index.ts'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import type { TestServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'
import { startWatchedProxy } from '../harness/watched-proxy.ts'
import { caught, urlsOf } from './buckets.ts'
import {
  bytes,
  chunkSize,
  clientsOf,
  expectOneItem,
  file,
  offsets,
  retry,
  sha256,
  startRelocatedServer,
} from './large-file.ts'
import { memoryStore } from './memory-store.ts'

let server: TestServer
beforeAll(async () => {
  server = await startRelocatedServer()
})
afterAll(() => server[Symbol.asyncDispose]())

const bucket = (url?: string) => clientsOf(server, url)

describe('an upload with stored state', () => {
  /** Aborts an upload of the file during its second chunk. */
  async function interrupted(source = file) {
    const proxy = await startWatchedProxy(() => server.url)
    const { token, direct } = await bucket()
    const resume = memoryStore()
    const aborter = new AbortController()
    const reached = proxy.hold(({ offset, bytes }) => offset === chunkSize && bytes > 1_000_000)
    const client = () => createClient({ url: proxy.url, token, retry })
    const upload = caught(client().upload(source, { resume, signal: aborter.signal }))
    await reached
    aborter.abort('enough')
    expect(await upload).toBe('enough')
    expect([...resume.kept.keys()].join()).not.toContain(token)
    proxy.passed.length = 0
    return { proxy, token, direct, resume, client: client() }
  }

  test('R6 is resumed at its offset, reports that, and its state is removed at its end', async () => {
    const { proxy, direct, resume, client } = await interrupted()
    await using _ = proxy
    const seen: UploadProgress[] = []
    const media = await client.upload(file, { resume, onProgress: (progress) => seen.push(progress) })
    expect(seen[0]).toEqual({ sent: chunkSize, total: bytes.length })
    expect(offsets(proxy.chunks())).toEqual([chunkSize, 2 * chunkSize])
    expect(proxy.passed.map(({ method }) => method)).toEqual(['HEAD', 'PATCH', 'PATCH', 'GET'])
    expect(resume.kept.size).toBe(0)
    await expectOneItem(direct, media)
    await client.upload(file, { resume })
    expect(await urlsOf(direct)).toHaveLength(2)
  })

  test('R5 that is complete but whose response was lost returns its item', async () => {
    await using proxy = await startLossyProxy(
      server.url,
      (method, nth) => method === 'HEAD' || (method === 'PATCH' && nth > 2),
    )
    const { client, direct, token } = await bucket(proxy.url)
    const resume = memoryStore()
    expect(await caught(client.upload(file, { resume }))).toMatchObject({ name: 'ConnectionError' })
    const [url] = await urlsOf(direct)
    await using watched = await startWatchedProxy(() => server.url)
    // Uses the same URL in the key, as the URL is part of it.
    const [id = ''] = resume.kept.values()
    const again = { ...memoryStore(), get: () => id }
    const media = await createClient({ url: watched.url, token }).upload(file, { resume: again })
    expect([media.url, watched.chunks()]).toEqual([url, []])
    await expectOneItem(direct, media)

    // The item was deleted since, so the file is stored again.
    await direct.delete(media.id)
    const second = await createClient({ url: watched.url, token }).upload(file, { resume: again })
    expect(second.id).not.toBe(media.id)
    await expectOneItem(direct, second)
  })

  test('R6 starts again in another bucket', async () => {
    const { proxy, direct, resume } = await interrupted()
    await using _ = proxy
    const other = await bucket(proxy.url)
    await expectOneItem(other.direct, await other.client.upload(file, { resume }))
    expect(offsets(proxy.chunks())).toEqual([0, chunkSize, 2 * chunkSize])
    expect(await urlsOf(direct)).toEqual([])
  })

  test('R6 starts again if it was terminated or its state is invalid', async () => {
    const { proxy, token, direct, resume, client } = await interrupted()
    await using _ = proxy
    const [[key, id] = ['', '']] = resume.kept
    await tusOf({ url: server.url, token }).terminate(`/api/uploads/${id}`)
    for (const value of [id, '', '../media', 'a b']) {
      resume.kept.set(key, value)
      proxy.passed.length = 0
      const media = await client.upload(file, { resume })
      expect(offsets(proxy.chunks())).toEqual([0, chunkSize, 2 * chunkSize])
      expect(proxy.passed.every(({ path }) => !/\.\.|%20|uploads\/$/.test(path))).toBe(true)
      await expectOneItem(direct, media)
      await direct.delete(media.id)
    }
  })

  test.each<[string, File]>([
    ['bytes', new File([bytes.map((byte, index) => (index === 5 ? byte ^ 1 : byte))], file.name, file)],
    ['size', new File([bytes.subarray(1)], file.name, file)],
    ['time', new File([bytes], file.name, { type: file.type, lastModified: 2 })],
    ['name', new File([bytes], 'another.bin', file)],
  ])('R6 starts again for a file with another %s', async (_name, changed) => {
    const { proxy, direct, resume, client } = await interrupted()
    await using _ = proxy
    const media = await client.upload(changed, { resume })
    expect(proxy.chunks()[0]?.offset).toBe(0)
    expect(media.sha256).toBe(
      createHash('sha256')
        .update(await changed.bytes())
        .digest('hex'),
    )
    expect(await urlsOf(direct)).toEqual([media.url])
  })

  test('R6 starts again with another name or type, even with the same fingerprint', async () => {
    const { proxy, resume, client } = await interrupted()
    await using _ = proxy
    const media = await client.upload(file, { resume, filename: 'b.bin' })
    expect([media.filename, proxy.chunks()[0]?.offset]).toEqual(['b.bin', 0])
  })

  test('R6 is resumed by only one of two concurrent uploads of the file; each creates an item', async () => {
    const { proxy, resume, client } = await interrupted()
    await using _ = proxy
    const [one, other] = await Promise.all([client.upload(file, { resume }), client.upload(file, { resume })])
    expect(one.id).not.toBe(other.id)
    expect([one.sha256, other.sha256]).toEqual([sha256, sha256])
    expect(resume.kept.size).toBe(0)
    const sizes = proxy.chunks().map(({ bytes }) => bytes)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(2 * bytes.length - chunkSize)
  })

  test('R6 starts again if the service drops it while it is sent', async () => {
    const { proxy, token, direct, resume, client } = await interrupted()
    await using _ = proxy
    const [id = ''] = resume.kept.values()
    let ended: Promise<Response> | undefined
    const media = await client.upload(file, {
      resume,
      onProgress({ sent }) {
        if (sent >= 2 * chunkSize) ended ??= tusOf({ url: server.url, token }).terminate(`/api/uploads/${id}`)
      },
    })
    expect((await ended)?.status).toBe(204)
    await expectOneItem(direct, media)
  })
})

test('bytes without a name need a fingerprint for stored state', async () => {
  const { client } = await bucket()
  const resume = memoryStore()
  expect(await caught(client.upload(new Blob([bytes]), { resume }))).toMatchObject({
    name: 'TypeError',
    message: expect.stringContaining('fingerprint'),
  })
  const media = await client.upload(new Blob([bytes]), { resume, fingerprint: 'the first' })
  expect(media.sha256).toBe(sha256)
})
