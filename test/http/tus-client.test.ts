import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { Upload, type UploadOptions } from 'tus-js-client'
import { beforeAll, describe, expect, test } from 'vitest'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import { traces } from '../harness/resources.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { startWatchedProxy } from '../harness/watched-proxy.ts'
import { readMedia, readPage } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

const settings = (url = server.url): UploadOptions => ({
  endpoint: `${url}/api/uploads`,
  headers: { authorization: `Bearer ${server.token}` },
  chunkSize: 100_000,
  retryDelays: Array(20).fill(0),
})

const uppyMetadata = { name: 'a b.bin', type: '', filename: 'a b.bin', filetype: '', relativePath: 'null' }

/** Uploads with tus-js-client and returns the upload's URL. */
function send(file: Buffer | Readable, options: UploadOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const upload = new Upload(file, {
      ...options,
      onError: reject,
      onSuccess: () => resolve(upload.url ?? ''),
    })
    upload.start()
  })
}

/** The item of a complete upload. */
async function itemAt(url: string) {
  const head = await tusOf(server).head(new URL(url, server.url).pathname)
  const location = head.headers.get('content-location')
  if (!location) throw new Error('the upload is not finished')
  return await readMedia(await server.request(new URL(location).pathname))
}

async function expectOneItem(before: { total: number }, url: string, bytes: Buffer) {
  const item = await itemAt(url)
  expect(item).toMatchObject({ size: bytes.length, sha256: sha256(bytes) })
  expect(sha256(Buffer.from(await (await fetch(item.url)).arrayBuffer()))).toBe(sha256(bytes))
  const { total, last_page } = await readPage(await server.request('/api/media'))
  const { data } = await readPage(await server.request(`/api/media?page=${last_page}`))
  expect([total, data.at(-1)]).toEqual([before.total + 1, item.url])
}

describe('R4, R5 tus-js-client', () => {
  test.each([100_000, 70_001, Number.POSITIVE_INFINITY])('uploads in chunks of %d', async (chunkSize) => {
    const [before, bytes] = [await traces(server), randomBytes(350_000)]
    const metadata = { filename: 'Große Datei.bin', filetype: 'application/octet-stream' }
    const url = await send(bytes, { ...settings(), chunkSize, metadata })
    await expectOneItem(before, url, bytes)
    expect(await itemAt(url)).toMatchObject({ filename: 'Große Datei.bin' })
  })

  // Uppy's Tus plugin is this client; each case is one of its settings.
  test.each<[setting: string, options: Partial<UploadOptions>]>([
    ['whose first chunk is in the creation', { uploadDataDuringCreation: true }],
    ['that sends the whole file in the creation', { uploadDataDuringCreation: true, chunkSize: Infinity }],
    ['that overrides PATCH', { overridePatchMethod: true }],
    [
      'that overrides PATCH and sends data in the creation',
      { overridePatchMethod: true, uploadDataDuringCreation: true },
    ],
    ['with its own request ids and the metadata of Uppy', { addRequestId: true, metadata: uppyMetadata }],
  ])('uploads a file %s', async (_, options) => {
    const [before, bytes] = [await traces(server), randomBytes(250_000)]
    await expectOneItem(before, await send(bytes, { ...settings(), ...options }), bytes)
  })

  test.each([false, true])(
    'uploads a stream of unknown length (PATCH overridden: %s)',
    async (overridePatchMethod) => {
      const [before, bytes] = [await traces(server), randomBytes(250_000)]
      const stream = Readable.from([bytes.subarray(0, 120_000), bytes.subarray(120_000)])
      const options = { ...settings(), uploadLengthDeferred: true, overridePatchMethod }
      await expectOneItem(before, await send(stream, options), bytes)
    },
  )

  test('uploads an empty file, with data in the creation or without', async () => {
    for (const uploadDataDuringCreation of [false, true]) {
      const before = await traces(server)
      await expectOneItem(
        before,
        await send(Buffer.alloc(0), { ...settings(), uploadDataDuringCreation }),
        Buffer.alloc(0),
      )
    }
  })

  test('uploads several files at the same time', async () => {
    const before = await traces(server)
    const files = Array.from({ length: 6 }, (_, index) => randomBytes(120_000 + index))
    const urls = await Promise.all(files.map((bytes) => send(bytes, settings())))
    const items = await Promise.all(urls.map(itemAt))
    expect(items.map((item) => item.sha256)).toEqual(files.map(sha256))
    expect((await traces(server)).total).toBe(before.total + files.length)
  })

  test('R12 that splits a file into parallel uploads receives a 400 problem, and no upload remains', async () => {
    const before = await traces(server)
    const refused = send(randomBytes(200_000), { ...settings(), parallelUploads: 2, retryDelays: [] })
    await expect(refused).rejects.toThrow(
      /response code: 400.*upload-malformed.*Concatenation is not supported/,
    )
    expect(await traces(server)).toEqual(before)
  })

  test('R4 that declares the length again, because the connection broke in the chunk that declared it, continues', async () => {
    const [before, bytes] = [await traces(server), randomBytes(1_500_000)]
    await using proxy = await startWatchedProxy(() => server.url)
    const path = await tusOf(server).begin({ 'upload-defer-length': '1' })
    const stopped = proxy.hold(({ method, bytes: sent }) => method === 'PATCH' && sent > 500_000)
    const uploadUrl = `${proxy.url}${path}`
    const { endpoint: _, ...options } = {
      ...settings(),
      chunkSize: 2_000_000,
      uploadLengthDeferred: true,
      uploadUrl,
    }
    const sending = send(Readable.from([bytes]), options)
    await stopped
    await until('the length is declared', async () =>
      (await tusOf(server).head(path)).headers.has('upload-length'),
    )
    proxy.cut()
    await sending
    expect(proxy.chunks().length).toBeGreaterThan(1)
    await expectOneItem(before, path, bytes)
  })

  test('paused, and resumed by another client from the stored URL', async () => {
    const [before, bytes] = [await traces(server), randomBytes(400_000)]
    const url = await new Promise<string>((resolve, reject) => {
      const upload = new Upload(bytes, {
        ...settings(),
        onError: reject,
        onChunkComplete: () => void upload.abort().then(() => resolve(upload.url ?? ''), reject),
      })
      upload.start()
    })
    expect((await traces(server)).total).toBe(before.total)
    const offset = await tusOf(server).offset(new URL(url).pathname)
    expect(offset).toBeGreaterThanOrEqual(100_000)
    const options = settings()
    delete options.endpoint
    expect(await send(bytes, { ...options, uploadUrl: url })).toBe(url)
    await expectOneItem(before, url, bytes)
  })

  test('R6 resumed after its process was killed', async () => {
    const [before, bytes] = [await traces(server), randomBytes(400_000)]
    const file = join(server.data, 'to-send')
    await writeFile(file, bytes)
    const script = `
      import { readFileSync } from 'node:fs'
      import { Upload } from 'tus-js-client'
      const upload = new Upload(readFileSync(${JSON.stringify(file)}), {
        ...${JSON.stringify({ ...settings(), retryDelays: [0] })},
        onChunkComplete: () => { process.stdout.write(upload.url); process.kill(process.pid, 'SIGKILL') },
      })
      upload.start()`
    const died = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
      cwd: import.meta.dirname,
    }).catch((error: { stdout: string; signal: string }) => error)
    expect(died).toMatchObject({ signal: 'SIGKILL' })
    const url = died.stdout
    await send(bytes, { ...settings(), uploadUrl: url })
    await expectOneItem(before, url, bytes)
  })

  test('R9 that terminates its upload leaves no data', async () => {
    const [before, bytes] = [await traces(server), randomBytes(300_000)]
    const upload = await new Promise<Upload>((resolve, reject) => {
      const one: Upload = new Upload(bytes, {
        ...settings(),
        onError: reject,
        onChunkComplete: () => void one.abort(true).then(() => resolve(one), reject),
      })
      one.start()
    })
    expect((await tusOf(server).head(new URL(upload.url ?? server.url).pathname)).status).toBe(404)
    expect(await traces(server)).toEqual(before)
  })
})

describe('R5 tus-js-client when responses are lost', () => {
  test.each([
    ['the last chunk', (method: string, nth: number) => method === 'PATCH' && nth === 4],
    ['every chunk', (method: string) => method === 'PATCH'],
    [
      'the second chunk and the HEAD after it',
      (method: string, nth: number) => (method === 'PATCH' && nth === 2) || (method === 'HEAD' && nth === 1),
    ],
    ['the creation', (method: string, nth: number) => method === 'POST' && nth === 1],
  ])('of %s: one item', async (_, loses) => {
    const [before, bytes] = [await traces(server), randomBytes(400_000)]
    await using proxy = await startLossyProxy(server.url, loses)
    const url = await send(bytes, settings(proxy.url))
    expect(proxy.seen.filter((one) => one.endsWith('!'))).not.toEqual([])
    await expectOneItem(before, url, bytes)
  })
})
