import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { Upload, type UploadOptions } from 'tus-js-client'
import { beforeAll, describe, expect, test } from 'vitest'
import { startLossyProxy } from '../harness/lossy-proxy.ts'
import { countStored } from '../harness/resources.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { tusOf } from '../harness/tus.ts'
import { until } from '../harness/until.ts'
import { startWatchedProxy } from '../harness/watched-proxy.ts'
import { readItem, readPage } from '../harness/wire.ts'

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

/** Options that resume an existing upload. Without an endpoint the client cannot create another one. */
function resumeSettings(uploadUrl: string): UploadOptions {
  const { endpoint: _, ...options } = settings()
  return { ...options, uploadUrl }
}

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
  return await readItem(await server.request(new URL(location).pathname))
}

/** Expects exactly one item more than before: the upload's, with these bytes, at the end of the listing. */
async function expectOneNewItem(before: { total: number }, url: string, bytes: Buffer) {
  const item = await itemAt(url)
  expect(item).toMatchObject({ size: bytes.length, sha256: sha256(bytes) })
  expect(sha256(Buffer.from(await (await fetch(item.url)).arrayBuffer()))).toBe(sha256(bytes))
  const { total, last_page } = await readPage(await server.request('/api/media'))
  const { data } = await readPage(await server.request(`/api/media?page=${last_page}`))
  expect([total, data.at(-1)]).toEqual([before.total + 1, item.url])
}

describe('R4, R5 tus-js-client', () => {
  test.each([100_000, 70_001, Number.POSITIVE_INFINITY])('uploads in chunks of %d', async (chunkSize) => {
    const [before, bytes] = [await countStored(server), randomBytes(350_000)]
    const metadata = { filename: 'Große Datei.bin', filetype: 'application/octet-stream' }
    const url = await send(bytes, { ...settings(), chunkSize, metadata })
    await expectOneNewItem(before, url, bytes)
    expect(await itemAt(url)).toMatchObject({ filename: 'Große Datei.bin' })
  })

  // Uppy's Tus plugin uses tus-js-client. Each case sets options that the plugin offers or sets itself.
  test.each<[what: string, options: Partial<UploadOptions>]>([
    ['the first chunk in the creation request', { uploadDataDuringCreation: true }],
    ['the whole file in the creation request', { uploadDataDuringCreation: true, chunkSize: Infinity }],
    ['PATCH overridden', { overridePatchMethod: true }],
    [
      'PATCH overridden and the first chunk in the creation request',
      { overridePatchMethod: true, uploadDataDuringCreation: true },
    ],
    ['request ids and the metadata of Uppy', { addRequestId: true, metadata: uppyMetadata }],
  ])('uploads a file with %s', async (_, options) => {
    const [before, bytes] = [await countStored(server), randomBytes(250_000)]
    await expectOneNewItem(before, await send(bytes, { ...settings(), ...options }), bytes)
  })

  test.each([false, true])(
    'uploads a stream of unknown length (PATCH overridden: %s)',
    async (overridePatchMethod) => {
      const [before, bytes] = [await countStored(server), randomBytes(250_000)]
      const stream = Readable.from([bytes.subarray(0, 120_000), bytes.subarray(120_000)])
      const options = { ...settings(), uploadLengthDeferred: true, overridePatchMethod }
      await expectOneNewItem(before, await send(stream, options), bytes)
    },
  )

  test('uploads an empty file, with and without data in the creation request', async () => {
    for (const uploadDataDuringCreation of [false, true]) {
      const before = await countStored(server)
      await expectOneNewItem(
        before,
        await send(Buffer.alloc(0), { ...settings(), uploadDataDuringCreation }),
        Buffer.alloc(0),
      )
    }
  })

  test('uploads several files at the same time', async () => {
    const before = await countStored(server)
    const files = Array.from({ length: 6 }, (_, index) => randomBytes(120_000 + index))
    const urls = await Promise.all(files.map((bytes) => send(bytes, settings())))
    const items = await Promise.all(urls.map(itemAt))
    expect(items.map((item) => item.sha256)).toEqual(files.map(sha256))
    expect((await countStored(server)).total).toBe(before.total + files.length)
  })

  test('R12 parallel uploads of the parts of one file are refused with a 400 problem, and no upload remains', async () => {
    const before = await countStored(server)
    const refused = send(randomBytes(200_000), { ...settings(), parallelUploads: 2, retryDelays: [] })
    await expect(refused).rejects.toThrow(
      /response code: 400.*upload-malformed.*Concatenation is not supported/,
    )
    expect(await countStored(server)).toEqual(before)
  })

  test('R4 an upload continues when a retry declares its length again, because the connection broke in the first attempt', async () => {
    const [before, bytes] = [await countStored(server), randomBytes(1_500_000)]
    await using proxy = await startWatchedProxy(() => server.url)
    const path = await tusOf(server).create({ 'upload-defer-length': '1' })
    const held = proxy.hold(({ method, bytes: sent }) => method === 'PATCH' && sent > 500_000)
    const options = {
      ...resumeSettings(`${proxy.url}${path}`),
      chunkSize: 2_000_000,
      uploadLengthDeferred: true,
    }
    const sending = send(Readable.from([bytes]), options)
    await held
    await until('the length is declared', async () =>
      (await tusOf(server).head(path)).headers.has('upload-length'),
    )
    proxy.cut()
    await sending
    expect(proxy.chunks().length).toBeGreaterThan(1)
    await expectOneNewItem(before, path, bytes)
  })

  test('a paused upload is resumed by another client that has its URL', async () => {
    const [before, bytes] = [await countStored(server), randomBytes(400_000)]
    const url = await new Promise<string>((resolve, reject) => {
      const upload = new Upload(bytes, {
        ...settings(),
        onError: reject,
        onChunkComplete: () => void upload.abort().then(() => resolve(upload.url ?? ''), reject),
      })
      upload.start()
    })
    expect((await countStored(server)).total).toBe(before.total)
    const offset = await tusOf(server).offset(new URL(url).pathname)
    expect(offset).toBeGreaterThanOrEqual(100_000)
    expect(await send(bytes, resumeSettings(url))).toBe(url)
    await expectOneNewItem(before, url, bytes)
  })

  test('R6 an upload whose client was killed is resumed', async () => {
    const [before, bytes] = [await countStored(server), randomBytes(400_000)]
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
    await send(bytes, resumeSettings(url))
    await expectOneNewItem(before, url, bytes)
  })

  test('R9 an upload that the client terminates leaves no data', async () => {
    const [before, bytes] = [await countStored(server), randomBytes(300_000)]
    const upload = await new Promise<Upload>((resolve, reject) => {
      const one: Upload = new Upload(bytes, {
        ...settings(),
        onError: reject,
        onChunkComplete: () => void one.abort(true).then(() => resolve(one), reject),
      })
      one.start()
    })
    expect((await tusOf(server).head(new URL(upload.url ?? server.url).pathname)).status).toBe(404)
    expect(await countStored(server)).toEqual(before)
  })
})

describe('R5 tus-js-client on a connection that loses responses', () => {
  test.each([
    ['the last chunk', (method: string, nth: number) => method === 'PATCH' && nth === 4],
    ['every chunk', (method: string) => method === 'PATCH'],
    [
      'the second chunk and the HEAD after it',
      (method: string, nth: number) => (method === 'PATCH' && nth === 2) || (method === 'HEAD' && nth === 1),
    ],
    ['the creation request', (method: string, nth: number) => method === 'POST' && nth === 1],
  ])('the response to %s is lost: the upload creates one item', async (_, loses) => {
    const [before, bytes] = [await countStored(server), randomBytes(400_000)]
    await using proxy = await startLossyProxy(server.url, loses)
    const url = await send(bytes, settings(proxy.url))
    expect(proxy.lost()).not.toBe(0)
    await expectOneNewItem(before, url, bytes)
  })
})
