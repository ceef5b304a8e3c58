import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { bucketWith } from '../harness/bucket.ts'
import { openConnection } from '../harness/connection.ts'
import { expectProblem } from '../harness/problem.ts'
import { parseResponse, responseOf } from '../harness/raw-http.ts'
import { type SharedServer, startServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { chunkType } from '../harness/tus.ts'
import { until } from '../harness/until.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** The head of a creation with its first chunk. */
const creationHead = (
  { url }: { readonly url: string },
  { authorization }: { readonly authorization: string },
  lengths: readonly string[],
): string =>
  [
    'POST /api/uploads HTTP/1.1',
    `Host: ${new URL(url).host}`,
    `Authorization: ${authorization}`,
    'Tus-Resumable: 1.0.0',
    `Content-Type: ${chunkType}`,
    ...lengths,
    '\r\n',
  ].join('\r\n')

describe('Q1, Q2 quotas', () => {
  test('a length above the quota is refused at creation; one within the quota is reserved', async () => {
    const bucket = await bucketWith(server, '--max-bytes', '10kB', '--max-items', '3')
    await expectProblem(
      await bucket.tus.send('POST', '/api/uploads', { 'upload-length': '10001' }),
      507,
      'quota-exceeded',
    )
    const url = await bucket.tus.createWithLength(6_000)
    expect(await bucket.state()).toMatchObject({ reserved_items: 1, reserved_bytes: 6_000, items: 0 })
    await expectProblem(
      await bucket.tus.send('POST', '/api/uploads', { 'upload-length': '4001' }),
      507,
      'quota-exceeded',
    )
    const { authorization } = bucket
    const plain = (length: number) =>
      server.request('/api/media', { method: 'POST', body: randomBytes(length), headers: { authorization } })
    await expectProblem(await plain(4_001), 507, 'quota-exceeded')
    expect((await plain(4_000)).status).toBe(201)
    expect((await bucket.tus.sendChunk(url, 0, randomBytes(6_000))).status).toBe(204)
    expect(await bucket.state()).toMatchObject({
      reserved_items: 0,
      reserved_bytes: 0,
      items: 2,
      bytes: 10_000,
    })
  })

  test('terminating an upload releases its reserved bytes', async () => {
    const bucket = await bucketWith(server, '--max-bytes', '10kB')
    const url = await bucket.tus.createWithLength(10_000)
    await bucket.tus.sendChunk(url, 0, randomBytes(5_000))
    await bucket.tus.terminate(url)
    expect(await bucket.state()).toMatchObject({ reserved_items: 0, reserved_bytes: 0 })
    await bucket.tus.createWithLength(10_000)
  })

  test('R1 a creation whose connection breaks reserves nothing', async () => {
    const bucket = await bucketWith(server, '--max-bytes', '100kB')
    const reserves = async (items: number) => Object(await bucket.state()).reserved_items === items
    {
      using connection = await openConnection(server.url)
      const head = creationHead(server, bucket, ['Upload-Length: 100000', 'Content-Length: 100000'])
      connection.send(`${head}${'x'.repeat(80_000)}`)
      await until('the upload', () => reserves(1))
    }
    await until('its removal', () => reserves(0))
  })

  test('R1, S4 a creation whose chunk does not fit on the disk reserves nothing', async () => {
    await using large = await startServer({ MEDIABUCKET_MAX_FILE_SIZE: '1000TB' })
    const bucket = await bucketWith(large, '--max-items', '1')
    using connection = await openConnection(large.url)
    connection.send(creationHead(large, bucket, ['Upload-Defer-Length: 1', `Content-Length: ${999e12}`]))
    await connection.closed
    await expectProblem(responseOf(parseResponse(connection.received())), 507, 'storage-full')
    expect(await bucket.state()).toMatchObject({ reserved_items: 0 })
  })

  test('parallel creations share one quota', async () => {
    const bucket = await bucketWith(server, '--max-bytes', '10kB', '--max-items', '7')
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => bucket.tus.send('POST', '/api/uploads', { 'upload-length': '1400' })),
    )
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(7)
    expect(responses.filter(({ status }) => status === 507)).toHaveLength(13)
    expect(await bucket.state()).toMatchObject({ reserved_items: 7, reserved_bytes: 9_800 })
  })

  test('uploads with deferred lengths do not exceed the quota, however many there are', async () => {
    const bucket = await bucketWith(server, '--max-bytes', '10kB')
    const urls = await Promise.all(
      Array.from({ length: 4 }, () => bucket.tus.create({ 'upload-defer-length': '1' })),
    )
    for (const offset of [0, 1_000, 2_000, 3_000])
      for (const url of urls) {
        const response = await bucket.tus.sendChunk(url, offset, randomBytes(1_000))
        // 409: an upload whose previous chunk was refused has a smaller offset.
        if (response.status !== 204 && response.status !== 409)
          await expectProblem(response, 507, 'quota-exceeded')
      }
    expect(await bucket.state()).toMatchObject({ reserved_bytes: 10_000, bytes: 0 })
    const declared = await bucket.tus.sendChunk(urls[0] ?? '', 3_000, '', { 'upload-length': '5000' })
    await expectProblem(declared, 507, 'quota-exceeded')
  })

  test('concurrent uploads of every kind do not exceed the quota', async () => {
    const bucket = await bucketWith(server, '--max-bytes', '100kB', '--max-items', '8')
    const { authorization } = bucket
    const ways = [
      () =>
        server.request('/api/media', {
          method: 'POST',
          body: randomBytes(9_000),
          headers: { authorization },
        }),
      async () => {
        const url = await bucket.tus.createWithLength(9_000)
        await bucket.tus.sendChunk(url, 0, randomBytes(4_000))
        return await bucket.tus.sendChunk(url, 4_000, randomBytes(5_000))
      },
      async () => {
        const url = await bucket.tus.create({ 'upload-defer-length': '1' })
        return await bucket.tus.sendChunk(url, 0, randomBytes(9_000), { 'upload-length': '9000' })
      },
    ]
    await Promise.allSettled(Array.from({ length: 36 }, (_, i) => ways[i % ways.length]?.()))
    const state = await bucket.state()
    expect(state).toMatchObject({ items: 8, bytes: 72_000 })
  })
})
