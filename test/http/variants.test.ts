import sharp from 'sharp'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  animation,
  cornersOf,
  crowdedTiff,
  quarters,
  uploadPicture,
  variantUrl,
} from '../harness/pictures.ts'
import { expectProblem } from '../harness/problem.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { tusOf } from '../harness/tus.ts'
import { upload } from '../harness/upload.ts'
import { parseItem } from '../harness/wire.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

const fetchVariant = async (id: string, variant?: string) => {
  const response = await fetch(variantUrl(server, id, variant))
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/webp'])
  return new Uint8Array(await response.arrayBuffer())
}

/** The format of a camera in portrait orientation, with location and author. */
const fromCamera = () =>
  quarters(60, 40)
    .jpeg({ quality: 95, chromaSubsampling: '4:4:4' })
    .withMetadata({ orientation: 6 })
    .withExifMerge({
      IFD0: { Make: 'SecretCamera', Artist: 'SecretArtist' },
      IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '51/1 30/1 3230/100' },
    })
    .withXmp('<x:xmpmeta xmlns:x="adobe:ns:meta/"><secret/></x:xmpmeta>')
    .toBuffer()

describe('V1', () => {
  test('V1 a variant fits into its square and keeps the proportions', async () => {
    const { id, url } = await uploadPicture(server, quarters(3000, 1500).jpeg().toBuffer(), 'image/jpeg')
    const sizeOf = async (bytes: Uint8Array) => {
      const { format, width, height } = await sharp(bytes).metadata()
      return [format, width, height]
    }
    expect(await sizeOf(await fetchVariant(id))).toEqual(['webp', 400, 200])
    expect(await sizeOf(await fetchVariant(id, 'medium'))).toEqual(['webp', 1600, 800])
    const withExtension = await fetch(`${url}?variant=thumb`)
    expect(await sizeOf(new Uint8Array(await withExtension.arrayBuffer()))).toEqual(['webp', 400, 200])
  })

  test('V1 a variant is never larger than the picture', async () => {
    const { id } = await uploadPicture(server, quarters(60, 40).png().toBuffer(), 'image/png')
    for (const variant of ['thumb', 'medium'])
      expect(await sharp(await fetchVariant(id, variant)).metadata()).toMatchObject({ width: 60, height: 40 })
  })

  test.each(['variant=large', 'variant=', 'variant', 'variant=thumb&variant=thumb'])(
    'V1 ?%s gets a 400 problem that names the parameter and its values',
    async (query) => {
      const { url } = await upload(server, 'x')
      const response = await fetch(`${url}?${query}`)
      const { errors } = await expectProblem(response, 400, 'variant-unknown')
      expect(errors).toEqual([
        {
          parameter: 'variant',
          detail: expect.stringMatching(/thumb, medium/),
          accepted: ['thumb', 'medium'],
        },
      ])
    },
  )

  test('V1, B7 a wrong extension gets a 404, with a variant too', async () => {
    const { id } = await uploadPicture(server, quarters(60, 40).png().toBuffer(), 'image/png')
    await expectProblem(await fetch(`${server.url}/media/${id}.jpg?variant=thumb`), 404, 'media-unknown')
  })
})

describe('V2', () => {
  test('V2 the orientation is applied, and metadata are removed', async () => {
    const sent = await fromCamera()
    expect(sent.includes('SecretCamera') && sent.includes('<secret/>')).toBe(true)
    expect(await sharp(sent).metadata()).toMatchObject({ orientation: 6, exif: expect.anything() })
    const { id } = await uploadPicture(server, sent, 'image/jpeg')
    const thumb = await fetchVariant(id)
    // A quarter turn to the right.
    expect(await cornersOf(thumb)).toEqual(['blue', 'red', 'white', 'green'])
    const { exif, xmp, iptc, orientation } = await sharp(thumb).metadata()
    expect([exif, xmp, iptc, orientation]).toEqual(Array(4).fill(undefined))
    expect(/secret/i.test(Buffer.from(thumb).toString('latin1'))).toBe(false)
  })

  test('V2 transparency is preserved', async () => {
    const hole = { input: { create: { width: 30, height: 20, channels: 4 as const, background: '#0000' } } }
    const holed = quarters(60, 40)
      .ensureAlpha()
      .composite([{ ...hole, left: 0, top: 0, blend: 'source' }])
    const { id } = await uploadPicture(server, holed.png().toBuffer(), 'image/png')
    expect((await cornersOf(await fetchVariant(id)))[0]).toBe('nothing')
  })

  test.each(['gif', 'webp'] as const)(
    'V2 the variant of an animated %s is its first frame',
    async (format) => {
      const moving = await animation(5)
      const bytes = await moving.toFormat(format).toBuffer()
      expect(await sharp(bytes).metadata()).toMatchObject({ pages: 5 })
      const { id } = await uploadPicture(server, bytes, `image/${format}`)
      const thumb = await fetchVariant(id)
      const { width, height, pages } = await sharp(thumb).metadata()
      expect([width, height, pages]).toEqual([20, 20, undefined])
      expect(await cornersOf(thumb)).toEqual(Array(4).fill('blue'))
    },
  )
})

const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'

describe('V3', () => {
  test.each(['jpeg', 'png', 'gif', 'webp', 'tiff', 'avif'] as const)('V3 %s has variants', async (format) => {
    const bytes = await quarters(60, 40).toFormat(format).toBuffer()
    const { id, content_type } = await uploadPicture(server, bytes, `image/${format}`)
    expect(content_type).toBe(`image/${format}`)
    expect(await cornersOf(await fetchVariant(id))).toEqual(['red', 'green', 'blue', 'white'])
  })

  test.each([
    ['a text', 'hello', 'text.txt', 'text/plain'],
    ['a drawing', svg, 'drawing.svg', 'image/svg+xml'],
    ['an empty file', '', 'empty.jpg', 'image/jpeg'],
  ])(
    'V3 a request for a variant of %s gets a 404 problem that says why',
    async (_what, bytes, name, type) => {
      const { url } = await upload(server, bytes, { name, type })
      const { detail } = await expectProblem(await fetch(`${url}?variant=thumb`), 404, 'variant-unavailable')
      expect(detail).toContain('JPEG')
      expect((await fetch(url)).status).toBe(200)
    },
  )

  test.each([
    { 'if-none-match': '*' },
    { 'if-modified-since': 'Fri, 31 Dec 2100 00:00:00 GMT' },
    { 'if-match': '"x"' },
  ])(
    'V3, B4 a request for a variant that the item does not have gets a 404 problem, regardless of preconditions: %o',
    async (headers) => {
      const { url } = await upload(server, 'hello', { name: 'text.txt', type: 'text/plain' })
      await expectProblem(await fetch(`${url}?variant=thumb`, { headers }), 404, 'variant-unavailable')
    },
  )

  test('V3 each request for a variant of a damaged or truncated picture gets a 404 problem, and its bytes are served', async () => {
    const whole = await quarters(600, 400).jpeg().toBuffer()
    const broken = [
      whole.subarray(0, whole.length / 2),
      Buffer.concat([whole.subarray(0, 400), Buffer.alloc(5000, 0xff)]),
    ]
    for (const bytes of broken) {
      const { id, url, content_type } = await uploadPicture(server, bytes, 'image/jpeg')
      expect(content_type).toBe('image/jpeg')
      for (const variant of ['thumb', 'thumb', 'medium'])
        await expectProblem(await fetch(variantUrl(server, id, variant)), 404, 'variant-unavailable')
      expect(Buffer.from(await (await fetch(url)).arrayBuffer())).toEqual(bytes)
    }
  })

  test.each([
    ['the compression Zstandard', 259, 50_000],
    ['the compression LZMA', 259, 34_925],
    ['Lab colours', 262, 8],
    ['samples of 12 bits', 258, 12],
    ['whole numbers of 32 bits', 258, 32],
  ])('V3 the problem of a TIFF with %s says that the service does not decode it', async (_, tag, value) => {
    const bytes = crowdedTiff(1)
    const entry = bytes.indexOf(Buffer.from([tag & 255, tag >> 8, 4, 0, 1, 0, 0, 0]))
    bytes.writeUInt32LE(value, entry + 8)
    // As many pixels as the bytes have.
    if (value === 32) bytes.writeUInt32LE(2, bytes.indexOf(Buffer.from([0, 1, 4, 0, 1, 0, 0, 0])) + 8)
    const { id } = await uploadPicture(server, bytes, 'image/tiff')
    for (const variant of ['thumb', 'medium']) {
      const response = await fetch(variantUrl(server, id, variant))
      const { detail } = await expectProblem(response, 404, 'variant-unavailable')
      expect(detail).toContain('a form that the service does not decode')
    }
  })
})

describe('V4', () => {
  test('V4 a variant has the headers of the bytes and its own ETag, and HEAD has all of them', async () => {
    const { id, url } = await uploadPicture(server, quarters(60, 40).png().toBuffer(), 'image/png')
    const bytes = await fetch(url)
    const thumb = await fetch(variantUrl(server, id))
    for (const name of [
      'accept-ranges',
      'x-content-type-options',
      'cross-origin-resource-policy',
      'content-security-policy',
    ])
      expect([name, thumb.headers.get(name)]).toEqual([name, bytes.headers.get(name)])
    expect(thumb.headers.get('cache-control')).toMatch(/^public, max-age=\d+$/)
    expect(thumb.headers.get('content-disposition')).toBe('inline; filename=picture.webp')
    const etags = [bytes, thumb, await fetch(variantUrl(server, id, 'medium'))].map(({ headers }) =>
      headers.get('etag'),
    )
    expect(new Set(etags).size).toBe(3)
    for (const etag of etags) expect(etag).toMatch(/^"[\w.-]+"$/)

    const head = await fetch(variantUrl(server, id), { method: 'HEAD' })
    const without = ({ headers }: Response) =>
      [...headers].filter(([name]) => !/^(date|connection|keep-alive)$/.test(name))
    expect([head.status, without(head)]).toEqual([200, without(thumb)])
    expect(Number(head.headers.get('content-length'))).toBe((await thumb.arrayBuffer()).byteLength)
    expect(await head.text()).toBe('')
  })

  test('V4 the same bytes have the same ETag in every item', async () => {
    const bytes = await quarters(80, 40).png().toBuffer()
    const tagOf = async () => {
      const { id } = await uploadPicture(server, bytes, 'image/png')
      return (await fetch(variantUrl(server, id))).headers.get('etag')
    }
    expect(await tagOf()).toBe(await tagOf())
  })

  test('V4 preconditions and ranges work as for the bytes', async () => {
    const { id } = await uploadPicture(server, quarters(60, 40).png().toBuffer(), 'image/png')
    const thumb = await fetch(variantUrl(server, id))
    const [etag, whole] = [thumb.headers.get('etag') ?? '', new Uint8Array(await thumb.arrayBuffer())]
    const ask = (headers: Record<string, string>) => fetch(variantUrl(server, id), { headers })
    const unchanged = await ask({ 'if-none-match': etag })
    expect([unchanged.status, unchanged.headers.get('etag'), await unchanged.text()]).toEqual([304, etag, ''])
    expect((await ask({ 'if-none-match': '*' })).status).toBe(304)
    await expectProblem(await ask({ 'if-match': '"other"' }), 412, 'precondition-failed')
    const part = await ask({ range: 'bytes=4-11' })
    expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 4-11/${whole.length}`])
    expect(new Uint8Array(await part.arrayBuffer())).toEqual(whole.slice(4, 12))
    const past = await ask({ range: `bytes=${whole.length}-` })
    expect(past.headers.get('content-range')).toBe(`bytes */${whole.length}`)
    await expectProblem(past, 416, 'range-unsatisfiable')
  })
})

describe('V8', () => {
  test('V8 width and height are recorded as displayed, however the picture is sent', async () => {
    const bytes = new Uint8Array(await fromCamera())
    const form = await uploadPicture(server, Buffer.from(bytes), 'image/jpeg')
    const raw = await server.request('/api/media', {
      method: 'POST',
      body: bytes,
      headers: { 'content-type': 'image/jpeg' },
    })
    const tus = tusOf(server)
    const upload = await tus.createWithLength(bytes.length)
    await tus.sendChunk(upload, 0, bytes.slice(0, 100))
    const finished = await tus.sendChunk(upload, 100, bytes.slice(100))
    const resumable = await server.request(new URL(finished.headers.get('content-location') ?? '').pathname)
    const all = [form, parseItem(await raw.text()), parseItem(await resumable.text())]
    for (const { id } of all) {
      const kept = parseItem(await (await server.request(`/api/media/${id}`)).text())
      expect([kept.width, kept.height]).toEqual([40, 60])
    }
    expect(all.map(({ width, height }) => [width, height])).toEqual(Array(3).fill([40, 60]))
  })

  test.each(['jpeg', 'png', 'gif', 'webp', 'tiff', 'avif'] as const)(
    'V8 width and height of %s are recorded',
    async (format) => {
      const made = quarters(62, 40).toFormat(format).toBuffer()
      expect(await uploadPicture(server, made, `image/${format}`)).toMatchObject({ width: 62, height: 40 })
    },
  )

  test('V8 the dimensions of an animated picture are those of a frame', async () => {
    const moving = (await animation(5)).gif().toBuffer()
    expect(await uploadPicture(server, moving, 'image/gif')).toMatchObject({ width: 20, height: 20 })
  })

  test('V8 a file without a readable header is stored without width and height', async () => {
    const cut = (await quarters(60, 40).jpeg().toBuffer()).subarray(0, 30)
    const stored = [
      await uploadPicture(server, cut, 'image/jpeg'),
      await upload(server, svg, { name: 'a.svg', type: 'image/svg+xml' }),
      await upload(server, 'hello'),
    ]
    for (const { width, height } of stored) expect([width, height]).toEqual([null, null])
  })
})
