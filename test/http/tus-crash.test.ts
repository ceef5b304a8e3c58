import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtempDisposable, readdir, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../harness/random.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { readItem, readPage } from '../harness/wire.ts'

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
const random = seededRandom()

/** Starts servers one after another on the same data, with the token of the first one. */
async function servers() {
  const directory = await mkdtempDisposable(join(tmpdir(), 'mediabucket-crash-'))
  let token = ''
  return {
    directory: directory.path,
    async start(settings: Record<string, string> = {}) {
      const server = await startServer(settings, directory.path)
      token ||= server.token
      return { server, tus: tusOf({ url: server.url, token }), token }
    },
    [Symbol.asyncDispose]: () => directory.remove(),
  }
}

const listed = async (server: TestServer, token: string) =>
  readPage(await server.request('/api/media', { headers: { authorization: `Bearer ${token}` } }))

/** The bytes from `start` to `end`; calls `then` before the body ends. */
async function* cut(bytes: Uint8Array, start: number, end: number, then: () => unknown) {
  for (let at = start; at < end; at += 50_000) yield bytes.subarray(at, Math.min(end, at + 50_000))
  then()
  await new Promise(() => undefined)
}

const streamOf = (source: AsyncIterable<Uint8Array>) => ReadableStream.from(source)

describe('R6 kill -9', () => {
  test('during chunks: the offset is between the acknowledged and the sent bytes, and the complete file is correct', async () => {
    await using data = await servers()
    const bytes = randomBytes(6_000_000)
    let url = ''
    let answered = 0
    let sent = 0
    for (let round = 0; round < 5; round += 1) {
      const { server, tus } = await data.start()
      await using _ = server
      url ||= await tus.createWithLength(bytes.length)
      const offset = await tus.offset(url)
      expect(offset).toBeGreaterThanOrEqual(answered)
      expect(offset).toBeLessThanOrEqual(sent)
      const acknowledged = offset + 100_000 + random(400_000)
      const chunk = await tus.sendChunk(url, offset, new Uint8Array(bytes.subarray(offset, acknowledged)))
      answered = Number(chunk.headers.get('upload-offset'))
      expect(answered).toBe(acknowledged)
      sent = answered + random(500_000)
      const killed = Promise.withResolvers<void>()
      const broken = tus.sendChunk(
        url,
        answered,
        streamOf(cut(bytes, answered, sent, () => killed.resolve(server.kill()))),
      )
      await expect(broken).rejects.toThrow()
      await killed.promise
    }
    const { server, tus, token } = await data.start()
    await using _ = server
    const offset = await tus.offset(url)
    const last = await tus.sendChunk(url, offset, new Uint8Array(bytes.subarray(offset)))
    const { pathname } = new URL(last.headers.get('content-location') ?? '')
    const headers = { authorization: `Bearer ${token}` }
    const item = await readItem(await server.request(pathname, { headers }))
    expect(item.sha256).toBe(sha256(bytes))
    expect(
      sha256(Buffer.from(await (await fetch(`${server.url}${new URL(item.url).pathname}`)).arrayBuffer())),
    ).toBe(item.sha256)
    expect((await listed(server, token)).total).toBe(1)
    const uploads = join(data.directory, 'uploads')
    // With an S3 store there is no such directory.
    expect(existsSync(uploads) ? await readdir(uploads) : []).toEqual([])
  })

  test('around the last byte: the upload is complete and has an item, or can be resumed', async () => {
    await using data = await servers()
    const bytes = new Uint8Array(randomBytes(300_000))
    const urls: string[] = []
    for (let round = 0; round < 5; round += 1) {
      const { server, tus } = await data.start()
      await using _ = server
      const url = await tus.createWithLength(bytes.length)
      urls.push(url)
      const killed = Promise.withResolvers<void>()
      const killSoon = async () => {
        // Slightly later each time: while the last bytes are written, synced, renamed, committed or acknowledged.
        for (let turn = 0; turn < round * 60; turn += 1) await setImmediate()
        killed.resolve(server.kill())
      }
      await tus.sendChunk(url, 0, streamOf(cut(bytes, 0, bytes.length, killSoon))).catch(() => null)
      await killed.promise
    }
    const { server, tus, token } = await data.start()
    await using _ = server
    const ids = new Set<string>()
    for (const url of urls) {
      const offset = await tus.offset(url)
      const response =
        offset === bytes.length
          ? await tus.head(url)
          : await tus.sendChunk(url, offset, bytes.subarray(offset))
      const { pathname } = new URL(response.headers.get('content-location') ?? '')
      const headers = { authorization: `Bearer ${token}` }
      const item = await readItem(await server.request(pathname, { headers }))
      expect(item.sha256).toBe(sha256(bytes))
      ids.add(item.id)
    }
    expect(ids.size).toBe(urls.length)
    expect((await listed(server, token)).total).toBe(urls.length)
  })
})

test('R6 SIGTERM stores the received bytes', async () => {
  await using data = await servers()
  const bytes = randomBytes(1_000_000)
  const first = await data.start({ MEDIABUCKET_SHUTDOWN_TIMEOUT: '200ms' })
  const url = await first.tus.createWithLength(bytes.length)
  const stopped = Promise.withResolvers<number | null>()
  const broken = first.tus.sendChunk(
    url,
    0,
    streamOf(
      cut(bytes, 0, 500_000, async () => {
        const part = join(data.directory, 'uploads', url.split('/').at(-1) ?? '')
        await until('all of it has arrived', () => sizeAtLeast(part, 500_000))
        stopped.resolve(first.server.stop())
      }),
    ),
  )
  await expect(broken).rejects.toThrow()
  expect(await stopped.promise).toBe(0)
  const { server, tus } = await data.start()
  await using _ = server
  expect(await tus.offset(url)).toBe(500_000)
})

test('R6 a start repairs files that are longer or shorter than their offsets, and removes unknown files', async () => {
  await using data = await servers()
  const bytes = new Uint8Array(randomBytes(10_000))
  const first = await data.start()
  const [longer, shorter] = [
    await first.tus.createWithLength(10_000),
    await first.tus.createWithLength(10_000),
  ]
  for (const url of [longer, shorter]) await first.tus.sendChunk(url, 0, bytes.subarray(0, 5_000))
  await first.server.kill()
  const fileOf = (url: string) => join(data.directory, 'uploads', url.split('/').at(-1) ?? '')
  await truncate(fileOf(longer), 9_000)
  await truncate(fileOf(shorter), 2_000)
  await writeFile(join(data.directory, 'uploads', 'unknown'), 'x')
  const { server, tus } = await data.start()
  await using _ = server
  expect([await tus.offset(longer), await tus.offset(shorter)]).toEqual([5_000, 2_000])
  expect((await readdir(join(data.directory, 'uploads'))).sort()).toEqual(
    [longer, shorter].map((url) => url.split('/').at(-1)).sort(),
  )
  for (const [url, offset] of [
    [longer, 5_000],
    [shorter, 2_000],
  ] as const) {
    const last = await tus.sendChunk(url, offset, bytes.subarray(offset))
    expect(last.headers.get('content-location')).not.toBeNull()
  }
})

test('R8 an upload expires, and its reserved bytes are released', async () => {
  await using data = await servers()
  const { server, tus, token } = await data.start({ MEDIABUCKET_UPLOAD_EXPIRY: '10s' })
  await using _ = server
  const response = await tus.send('POST', '/api/uploads', { 'upload-length': '10' })
  const expires = Date.parse(response.headers.get('upload-expires') ?? '')
  // The default is one day.
  expect(Math.abs(expires - Date.now())).toBeLessThan(60_000)
  const { pathname } = new URL(response.headers.get('location') ?? '')
  expect((await tus.sendChunk(pathname, 0, 'abc')).headers.get('upload-expires')).toMatch(/GMT$/)
  await until('it is unknown', async () => (await tus.head(pathname)).status === 404)
  await until('its file is gone', async () => (await readdir(join(data.directory, 'uploads'))).length === 0)
  const bucket = await server.request('/api/bucket', { headers: { authorization: `Bearer ${token}` } })
  expect(await bucket.json()).toMatchObject({ reserved_items: 0, reserved_bytes: 0 })
})

async function sizeAtLeast(path: string, size: number): Promise<boolean> {
  return stat(path).then(
    (status) => status.size >= size,
    () => false,
  )
}
