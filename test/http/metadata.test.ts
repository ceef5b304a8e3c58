import { createHash, randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { beforeAll, describe, expect, test } from 'vitest'
import { runHere } from '../harness/commands.ts'
import { film } from '../harness/films.ts'
import { noise } from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { makeToken } from '../harness/token.ts'
import { itemOf, tusOf } from '../harness/tus.ts'
import { uniqueName } from '../harness/unique-name.ts'
import { until } from '../harness/until.ts'
import { readItem, readPage } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** A new bucket, which removes metadata unless `setting` says otherwise. */
async function bucketWith(setting = 'on') {
  const name = uniqueName('metadata')
  const { authorization } = await makeToken(server, '--bucket', name)
  await runHere(server.data, 'bucket set', name, '--remove-metadata', setting)
  const request = (path: string, init: RequestInit = {}) =>
    server.request(path, { ...init, headers: { authorization, ...init.headers } })
  const post = (body: RequestInit['body'], headers: Record<string, string> = {}) =>
    request('/api/media', { method: 'POST', body: body ?? null, headers })
  return {
    name,
    request,
    post,
    tus: tusOf(server, authorization),
    /** The media object of a response, its bytes, and their metadata. */
    async read(response: Response) {
      const item = await readItem(response)
      return { item, ...(await bytesOf(item)) }
    },
    total: async () => (await readPage(await request('/api/media'))).total,
  }
}

async function bytesOf({ url }: { readonly url: string }) {
  const response = await fetch(url)
  const bytes = Buffer.from(await response.arrayBuffer())
  const { exif, icc, orientation } = await sharp(bytes).metadata()
  return {
    response,
    bytes,
    hasExif: exif?.includes('Secret') === true,
    hasProfile: icc !== undefined,
    orientation,
  }
}

/** A photograph of noise: about 3 kB for a side of 40, 900 kB for 800. */
const photo = (side: number): Promise<Buffer<ArrayBuffer>> =>
  sharp(randomBytes(side * side * 3), { raw: { width: side, height: side / 2, channels: 3 } })
    .withIccProfile('srgb')
    .withExif({
      IFD0: { Make: 'SecretMake', Artist: 'SecretArtist' },
      IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '48/1 8/1 0/1' },
    })
    .withMetadata({ orientation: 6 })
    .jpeg({ quality: 95 })
    .toBuffer() as Promise<Buffer<ArrayBuffer>>

const pixelsOf = (bytes: Buffer) => sharp(bytes).raw().toBuffer()
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const [small, large] = [40, 800]

describe.each([
  ['small', small],
  ['large', large],
])('X1, X2, X5 a %s picture', (_, side) => {
  test('that is sent as a raw body is stored without metadata, and described as it is stored', async () => {
    const bucket = await bucketWith()
    const sent = await photo(side)
    const { item, bytes, response, ...found } = await bucket.read(
      await bucket.post(sent, { 'content-disposition': 'attachment; filename="a.jpg"' }),
    )
    expect(found).toEqual({ hasExif: false, hasProfile: true, orientation: 6 })
    expect(bytes.includes('Secret')).toBe(false)
    expect((await pixelsOf(bytes)).equals(await pixelsOf(sent))).toBe(true)
    expect(bytes.length).toBeLessThan(sent.length)
    expect(item).toMatchObject({ size: bytes.length, sha256: sha256(bytes), filename: 'a.jpg' })
    expect(item).toMatchObject({ width: side / 2, height: side })
    expect(response.headers.get('content-length')).toBe(`${bytes.length}`)
    expect(await bucket.total()).toBe(1)
  })

  test('in a form with other files is stored without metadata', async () => {
    const bucket = await bucketWith()
    const sent = await photo(side)
    const form = new FormData()
    form.append('file', new File([sent], 'a.jpg'))
    form.append('file', new File(['text'], 'a.txt'))
    form.append('file', new File([sent], 'b.jpg'))
    const { data } = (await (await bucket.post(form)).json()) as { data: { url: string; size: number }[] }
    const [first, text, second] = data
    if (!first || !text || !second) throw new Error('files are missing')
    expect(text.size).toBe(4)
    for (const item of [first, second]) {
      const { bytes, hasExif } = await bytesOf(item)
      expect(hasExif).toBe(false)
      expect((await pixelsOf(bytes)).equals(await pixelsOf(sent))).toBe(true)
    }
  })

  test('R5 that is sent in chunks is stored without metadata, and the upload keeps its length', async () => {
    const { tus, request, total } = await bucketWith()
    const sent = await photo(side)
    const url = await tus.createWithLength(sent.length)
    const half = Math.floor(sent.length / 2)
    expect((await tus.sendChunk(url, 0, sent.subarray(0, half))).status).toBe(204)
    const end = await tus.sendChunk(url, half, sent.subarray(half))
    expect([end.status, end.headers.get('upload-offset')]).toEqual([204, `${sent.length}`])
    const item = await itemOf({ request }, end)
    const { bytes, hasExif, orientation } = await bytesOf(item)
    expect([hasExif, orientation]).toEqual([false, 6])
    expect((await pixelsOf(bytes)).equals(await pixelsOf(sent))).toBe(true)
    expect(item).toMatchObject({ size: bytes.length, sha256: sha256(bytes) })
    const head = await tus.head(url)
    expect(head.headers.get('upload-offset')).toBe(`${sent.length}`)
    expect(head.headers.get('content-location')).toBe(end.headers.get('content-location'))
    expect(await total()).toBe(1)
    // R9: the upload knows its item.
    expect((await tus.terminate(url)).status).toBe(204)
    expect(await total()).toBe(0)
  })

  test('X4 that is damaged is refused, and nothing of it is stored', async () => {
    const bucket = await bucketWith()
    const damaged = (await photo(side)).subarray(0, 300)
    const sent = side === small ? damaged : Buffer.concat([damaged, randomBytes(500_000)])
    await expectProblem(await bucket.post(sent), 422, 'file-unreadable')
    const url = await bucket.tus.createWithLength(sent.length)
    await expectProblem(await bucket.tus.sendChunk(url, 0, sent), 422, 'file-unreadable')
    expect((await bucket.tus.head(url)).status).toBe(404)
    expect(await bucket.request('/api/bucket').then((response) => response.json())).toMatchObject({
      items: 0,
      bytes: 0,
      reserved_bytes: 0,
      remove_metadata: true,
    })
  })
})

test('X1 a bucket without the setting stores the bytes as they are sent', async () => {
  const bucket = await bucketWith('off')
  const sent = await photo(small)
  const { bytes } = await bucket.read(await bucket.post(sent))
  expect(bytes.equals(sent)).toBe(true)
})

test('X1 the setting applies from the next upload on, and stored items stay as they are', async () => {
  const bucket = await bucketWith('off')
  const sent = await photo(small)
  const before = await readItem(await bucket.post(sent))
  await runHere(server.data, 'bucket set', bucket.name, '--remove-metadata', 'on')
  const after = await readItem(await bucket.post(sent))
  expect([before.size, after.size < sent.length]).toEqual([sent.length, true])
  expect((await bytesOf(before)).bytes.equals(sent)).toBe(true)
})

test('X2 a TIFF picture with a wrong length of its pixels keeps them', async () => {
  const bucket = await bucketWith()
  const sent = await noise(16).tiff({ compression: 'none' }).toBuffer()
  const entry = sent.indexOf(Buffer.from([0x17, 0x01, 4, 0, 1, 0, 0, 0]))
  sent.writeUInt32LE(0, entry + 8)
  const { bytes, item } = await bucket.read(await bucket.post(Buffer.concat([sent, Buffer.from('Secret')])))
  expect([item.content_type, bytes.includes('Secret')]).toEqual(['image/tiff', false])
  // The decoder warns of the length.
  const decoded = (picture: Buffer) => sharp(picture, { failOn: 'error' }).raw().toBuffer()
  expect((await decoded(bytes)).equals(await decoded(sent))).toBe(true)
})

test('X2, X4 bytes behind the compressed pixels of a PNG file are removed, and pixels behind its last row refused', async () => {
  const bucket = await bucketWith()
  const png = await noise(large).png().toBuffer()
  const pixels = (data: Buffer) => {
    const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from('IDAT'), data, Buffer.alloc(4)])
    chunk.writeUInt32BE(data.length)
    chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4)
    return chunk
  }
  const headers = { 'content-type': 'image/png' }
  const sent = Buffer.concat([png.subarray(0, -12), pixels(Buffer.from('Secret')), png.subarray(-12)])
  const { bytes } = await bucket.read(await bucket.post(sent, headers))
  expect(bytes.equals(png)).toBe(true)

  const first = png.indexOf('IDAT') - 4
  const rows = Buffer.concat([Buffer.alloc(large * (1 + large * 3)), Buffer.from('Secret')])
  const longer = Buffer.concat([
    png.subarray(0, first),
    pixels(deflateSync(rows, { level: 0 })),
    png.subarray(-12),
  ])
  await expectProblem(await bucket.post(longer, headers), 422, 'file-unreadable')
  expect(await bucket.total()).toBe(1)
})

describe('X2 files that decoders read are cleaned or refused, whatever their stored types are:', () => {
  test('QuickTime with any first box', async () => {
    const bucket = await bucketWith()
    const place = '+48.1234+011.5678/'
    const sent = await film('mov', '16x16', ['-metadata', `location=${place}`, '-frames:v', '2'])
    expect(sent.includes(place)).toBe(true)
    for (const type of ['ftyp', 'pnot', 'skip', 'udta', 'junk', 'wide', 'free', 'abcd', '\0\0\0\0', 'uuid']) {
      const file = Buffer.from(sent)
      file.write(type, 4, 'latin1')
      // The identifier of such a box, which decoders require, takes the place of a box that they do not need.
      if (type === 'uuid') file.writeUInt32BE(file.readUInt32BE(0) + 8)
      const { url } = await readItem(await bucket.post(file))
      const stored = Buffer.from(await (await fetch(url)).arrayBuffer())
      expect([type, stored.length, stored.includes(place)]).toEqual([type, sent.length, false])
    }
    // Players find what follows a tag, and a movie whose type was changed.
    const tag = Buffer.from('ID3\x04\0\0\0\0\0\x05hello', 'latin1')
    await expectProblem(await bucket.post(Buffer.concat([tag, sent])), 422, 'file-unreadable')
    const renamed = Buffer.from(sent)
    renamed.write('hoov', sent.indexOf('moov'))
    renamed.write('skip', 4)
    await expectProblem(await bucket.post(renamed), 422, 'file-unreadable')
  })

  test('JPEG-LS, and JPEG with bytes before its first marker', async () => {
    const bucket = await bucketWith()
    const sent = await photo(small)
    const lossless = Buffer.concat([
      Buffer.from('ffd8fff7000b08001000100101110000', 'hex').subarray(0, 15),
      sent.subarray(2),
    ])
    const shifted = Buffer.concat([sent.subarray(0, 2), Buffer.from('ab'), sent.subarray(2)])
    for (const file of [lossless, shifted])
      await expectProblem(await bucket.post(file), 422, 'file-unreadable')
    expect(await bucket.total()).toBe(0)
  })
})

test('X3 files of other types are stored as they are sent', async () => {
  const bucket = await bucketWith()
  const text = Buffer.from('GPS: 48.1, 11.5')
  const item = await readItem(await bucket.post(text, { 'content-type': 'text/plain' }))
  expect(Buffer.from(await (await fetch(item.url)).arrayBuffer()).equals(text)).toBe(true)
})

test('X5, I2 a repeated request is recognized by the bytes that were sent, also after the setting was changed', async () => {
  const bucket = await bucketWith()
  const sent = await photo(small)
  const key = { 'idempotency-key': uniqueName('key') }
  const first = await readItem(await bucket.post(sent, key))
  expect(await readItem(await bucket.post(sent, key))).toEqual(first)
  await runHere(server.data, 'bucket set', bucket.name, '--remove-metadata', 'off')
  expect(await readItem(await bucket.post(sent, key))).toEqual(first)
  await expectProblem(await bucket.post(await photo(small), key), 422, 'idempotency-key-reused')
  expect(await bucket.total()).toBe(1)
})

test('X2 no copy of a large picture with its metadata stays', async () => {
  const bucket = await bucketWith()
  const sent = await photo(large)
  // A server with an S3 store has none of these directories.
  const namesIn = (name: string) => readdir(join(server.data, name)).catch(() => [])
  const present = async () => [...(await namesIn('tmp')), ...(await namesIn('uploads'))]
  // Other tests of this server leave unfinished uploads.
  const earlier = new Set(await present())
  await readItem(await bucket.post(sent))
  const url = await bucket.tus.createWithLength(sent.length)
  await bucket.tus.sendChunk(url, 0, sent)
  await until('no temporary file stays', async () => (await present()).every((name) => earlier.has(name)))
})
