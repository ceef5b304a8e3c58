import sharp, { type Sharp } from 'sharp'
import { thumbHashToRGBA } from 'thumbhash'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { animatedPng, shownFrame } from '../harness/animated-png.ts'
import { bucketWith } from '../harness/bucket.ts'
import { animation, quarters, renderCount, storedVariants, variantUrl } from '../harness/pictures.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { upload } from '../harness/upload.ts'
import { readItem } from '../harness/wire.ts'

const sizes = [
  'tiny=2',
  ...[
    'link=120x63:cover:jpeg',
    'mail=90:q30:jpeg',
    'white=120:jpeg',
    'clear=100:png',
    'small=100:q20',
    'modern=100:avif',
  ],
  ...['moving=40:animated', 'gif=30x20:gif:cover:animated', 'still=40:gif', 'plain=100', 'old=100:webp'],
]

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_VARIANTS: sizes.join(), MEDIABUCKET_RENDER_AHEAD: 'off' })
})
afterAll(() => server[Symbol.asyncDispose]())

const store = async (bytes: Buffer, type: string, name = 'picture') =>
  upload(server, Uint8Array.from(bytes), { name: `${name}.${type.split('/')[1]}`, type })

async function get(id: string, name: string, accept = '*/*') {
  const response = await fetch(variantUrl(server, id, name), { headers: { accept } })
  expect([name, response.status]).toEqual([name, 200])
  const bytes = Buffer.from(await response.arrayBuffer())
  return { response, bytes, metadata: await sharp(bytes, { animated: true }).metadata() }
}

const avif = 'image/avif,image/webp,*/*'

describe('V20 the format of a size', () => {
  test.each([
    ['link', 'jpeg', 'image/jpeg', 'jpg'],
    ['mail', 'jpeg', 'image/jpeg', 'jpg'],
    ['clear', 'png', 'image/png', 'png'],
    ['modern', 'heif', 'image/avif', 'avif'],
    ['old', 'webp', 'image/webp', 'webp'],
    ['still', 'gif', 'image/gif', 'gif'],
    ['moving', 'webp', 'image/webp', 'webp'],
  ])('%s is %s for every Accept', async (name, format, type, extension) => {
    const item = await store(await quarters(240, 160).png().toBuffer(), 'image/png')
    const [one, other] = [await get(item.id, name), await get(item.id, name, avif)]
    expect(one.metadata.format).toBe(format)
    expect(other.bytes).toEqual(one.bytes)
    const { headers } = one.response
    expect(headers.get('content-type')).toBe(type)
    expect(headers.get('content-disposition')).toBe(`inline; filename=picture.${extension}`)
    expect([headers.get('vary'), headers.get('etag')]).toEqual([null, other.response.headers.get('etag')])
  })

  test('V18 sizes whose pictures are equal have headers of their own, also from memory', async () => {
    const item = await store(await quarters(240, 160).png().toBuffer(), 'image/png')
    const headersOf = async (name: string) => {
      const { headers } = (await get(item.id, name)).response
      return [headers.get('mediabucket-variant'), headers.get('vary')]
    }
    for (let round = 0; round < 3; round += 1) {
      expect(await headersOf('old')).toEqual(['old', null])
      expect(await headersOf('plain')).toEqual(['plain', 'Accept'])
    }
  })

  test('a size without one is negotiated, also with a quality, which makes it smaller', async () => {
    const noisy = await sharp({
      create: {
        width: 200,
        height: 200,
        channels: 3,
        background: 'grey',
        noise: { type: 'gaussian', mean: 128, sigma: 60 },
      },
    })
      .png()
      .toBuffer()
    const item = await store(noisy, 'image/png')
    const [webp, small] = [await get(item.id, 'plain'), await get(item.id, 'small')]
    expect(small.bytes.byteLength).toBeLessThan(webp.bytes.byteLength * 0.7)
    expect(small.response.headers.get('vary')).toBe('Accept')
    const [plainAvif, smallAvif] = [await get(item.id, 'plain', avif), await get(item.id, 'small', avif)]
    expect(smallAvif.metadata.compression).toBe('av1')
    expect(smallAvif.bytes.byteLength).toBeLessThan(plainAvif.bytes.byteLength * 0.7)
    const tags = [webp, small, plainAvif, smallAvif].map(({ response }) => response.headers.get('etag'))
    expect(new Set(tags).size).toBe(4)
  })

  test('JPEG shows what is transparent as white, and PNG keeps it', async () => {
    const clear = sharp({
      create: { width: 150, height: 150, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } },
    })
    const item = await store(await clear.png().toBuffer(), 'image/png')
    const pixel = async (name: string) => {
      const { bytes } = await get(item.id, name)
      return [...(await sharp(bytes).raw().toBuffer()).subarray(0, 4)]
    }
    expect((await pixel('link')).slice(0, 3)).toEqual([255, 255, 255])
    expect((await pixel('clear'))[3]).toBe(0)
  })

  test('w selects no size with a format of its own', async () => {
    const item = await store(await quarters(240, 160).png().toBuffer(), 'image/png')
    const response = await fetch(`${server.url}/media/${item.id}?w=90`)
    expect(response.headers.get('mediabucket-variant')).toBe('small')
  })
})

test.each(['clear', 'tiny', 'white'])(
  'V13 the placeholder is that of the whole picture, whatever size is the first: %s',
  async (name) => {
    const red = { create: { width: 80, height: 60, channels: 3, background: '#e02020' } } as const
    const bytes = await sharp({ create: { ...red.create, width: 240, channels: 4, background: '#0000' } })
      .composite([{ input: red, left: 0, top: 0 }])
      .png()
      .toBuffer()
    const item = await store(bytes, 'image/png')
    await get(item.id, name)
    const hash = await until('it is recorded', async () => {
      const response = await server.request(`/api/media/${item.id}`)
      return (await readItem(response)).thumbhash
    })
    const { w, h, rgba } = thumbHashToRGBA(Buffer.from(hash, 'base64'))
    expect(w / h).toBeGreaterThan(3)
    const opacityAt = (x: number) => rgba[(Math.floor(h / 2) * w + x) * 4 + 3] ?? 0
    expect(opacityAt(2)).toBeGreaterThan(180)
    expect(opacityAt(w - 3)).toBeLessThan(60)
  },
)

test.each(['plain', 'tiny', 'link'])(
  'V6, V13 a picture of which the decoder only warns has variants and a placeholder, whatever size is the first: %s',
  async (name) => {
    const noise = Uint8Array.from({ length: 300 * 200 * 3 }, (_, index) => (index * 7_919) ^ (index >> 3))
    const picture = await sharp(noise, { raw: { width: 300, height: 200, channels: 3 } })
      .jpeg()
      .toBuffer()
    // A marker in the middle of the picture ends the data before it.
    const at = Math.floor(picture.length / 2)
    const marker = Buffer.from([0xff, 0xd3])
    const item = await store(
      Buffer.concat([picture.subarray(0, at), marker, picture.subarray(at)]),
      'image/jpeg',
    )
    await get(item.id, name)
    await until('it has a placeholder', async () => {
      const response = await server.request(`/api/media/${item.id}`)
      return (await readItem(response)).thumbhash
    })
  },
)

/** The mean difference of two pictures, as they are shown in front of grey, for each channel of each pixel. */
async function difference(one: Buffer, other: Buffer): Promise<number> {
  const [a, b] = await Promise.all(
    [one, other].map((bytes) => sharp(bytes).flatten({ background: '#888888' }).raw().toBuffer()),
  )
  if (a === undefined || b === undefined || a.length !== b.length) return Number.POSITIVE_INFINITY
  return a.reduce((sum, value, at) => sum + Math.abs(value - (b[at] ?? 0)), 0) / a.length
}

const frameOf = (bytes: Buffer, page: number): Sharp => sharp(bytes, { page })

describe('V20 an animated picture', () => {
  const delays = [40, 100, 250, 60]
  const made = {
    'image/gif': async () => (await animation(4, 80)).gif({ delay: delays, loop: 3 }).toBuffer(),
    'image/webp': async () =>
      (await animation(4, 80)).webp({ delay: delays, loop: 3, lossless: true }).toBuffer(),
    'image/apng': async () => animatedPng(delays, 3),
  } as const

  test.each(['image/gif', 'image/webp', 'image/apng'] as const)(
    '%s keeps its frames, their times and the number of repetitions in sizes that say so',
    async (type) => {
      const bytes = await made[type]()
      const item = await store(bytes, type === 'image/apng' ? 'image/png' : type)
      for (const [name, width, height] of [
        ['moving', 40, 40],
        ['gif', 30, 20],
      ] as const) {
        const { metadata, bytes: shown } = await get(item.id, name, avif)
        expect([metadata.pages, metadata.width, metadata.pageHeight]).toEqual([4, width, height])
        expect(metadata.delay).toEqual(delays)
        expect(metadata.loop).toBe(3)
        const fit = name === 'gif' ? 'cover' : 'fill'
        for (const page of [0, 1, 2, 3]) {
          const source = type === 'image/apng' ? sharp(await shownFrame(page)) : frameOf(bytes, page)
          const reference = await source.resize({ width, height, fit }).png().toBuffer()
          const frame = await frameOf(shown, page).png().toBuffer()
          expect(await difference(frame, reference)).toBeLessThan(6)
        }
      }
      // All other sizes show the first frame.
      for (const name of ['plain', 'still', 'clear', 'link'])
        expect((await get(item.id, name)).metadata.pages ?? 1).toBe(1)
    },
  )

  test('with more than 500 frames, or for longer than a minute, is shown as its first frame', async () => {
    const many = await (await animation(501, 8))
      .gif({ delay: Array.from({ length: 501 }, () => 20) })
      .toBuffer()
    const long = await (await animation(2, 8)).webp({ delay: [30_000, 30_001], lossless: true }).toBuffer()
    for (const [bytes, type] of [
      [many, 'image/gif'],
      [long, 'image/webp'],
    ] as const) {
      const item = await store(bytes, type)
      const { metadata, bytes: shown } = await get(item.id, 'moving')
      expect(metadata.pages ?? 1).toBe(1)
      expect(
        await difference(await sharp(shown).png().toBuffer(), await frameOf(bytes, 0).png().toBuffer()),
      ).toBeLessThan(6)
    }
  })

  test('a picture that is not animated is shown as it is, and a damaged animation as its first frame', async () => {
    const still = await store(await quarters(100, 60).jpeg().toBuffer(), 'image/jpeg')
    expect((await get(still.id, 'moving')).metadata).toMatchObject({ format: 'webp', width: 40, height: 24 })
    const bytes = await made['image/apng']()
    // The second frame is outside of the canvas.
    const at = bytes.indexOf('fcTL', bytes.indexOf('fcTL') + 4)
    bytes.writeUInt32BE(79, at + 4 + 12)
    const damaged = await store(bytes, 'image/png')
    expect((await get(damaged.id, 'moving')).metadata.pages ?? 1).toBe(1)
  })

  test('V1 all frames show the same part, which attracts the eye in the first one', async () => {
    const [width, height] = [160, 40]
    const scenes = [140, 100, 60, 20].map((left) =>
      Buffer.from(
        `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="#888"/>
        <rect x="132" width="4" height="100%" fill="white"/><circle cx="${left}" cy="20" r="12" fill="#e02020"/></svg>`,
      ),
    )
    const pngs = await Promise.all(scenes.map((scene) => sharp(scene).ensureAlpha().png().toBuffer()))
    const bytes = await sharp(pngs, { join: { animated: true } })
      .gif({ delay: [100, 110, 120, 130] })
      .toBuffer()
    const { authorization } = await bucketWith(server, '--crop', 'attention')
    const file = { name: 'a.gif', type: 'image/gif', authorization }
    const item = await upload(server, Uint8Array.from(bytes), file)
    const { bytes: shown, metadata } = await get(item.id, 'gif')
    expect([metadata.width, metadata.pageHeight]).toEqual([30, 20])
    const lineOf = async (page: number) => {
      const row = await frameOf(shown, page)
        .removeAlpha()
        .extract({ left: 0, top: 1, width: 30, height: 1 })
        .raw()
        .toBuffer()
      return Array.from({ length: 30 }, (_, x) => row[x * 3] ?? 0).findIndex((red) => red > 200)
    }
    const first = await lineOf(0)
    expect(first).toBeGreaterThanOrEqual(0)
    for (let page = 1; page < (metadata.pages ?? 1); page += 1) expect(await lineOf(page)).toBe(first)
  })

  test('V1 the frames move also if they show the last row of a picture whose scaled height is between two numbers', async () => {
    // 52 × 39 pixels in 30 × 20: the scaled height is 22.5.
    const scenes = [20, 24].map((x) =>
      Buffer.from(
        `<svg xmlns="http://www.w3.org/2000/svg" width="52" height="39"><rect width="100%" height="100%" fill="#888"/>
        <circle cx="${x}" cy="36" r="4" fill="#e02020"/></svg>`,
      ),
    )
    const pngs = await Promise.all(scenes.map((scene) => sharp(scene).ensureAlpha().png().toBuffer()))
    const bytes = await sharp(pngs, { join: { animated: true } })
      .gif({ delay: [100, 110] })
      .toBuffer()
    const { authorization } = await bucketWith(server, '--crop', 'attention')
    const item = await upload(server, Uint8Array.from(bytes), {
      name: 'a.gif',
      type: 'image/gif',
      authorization,
    })
    const { metadata } = await get(item.id, 'gif')
    expect([metadata.pages, metadata.width, metadata.pageHeight]).toEqual([2, 30, 20])
  })

  test('renders each size once', async () => {
    const item = await store(await made['image/gif'](), 'image/gif')
    const before = await renderCount(server)
    for (let round = 0; round < 3; round += 1) for (const name of ['moving', 'gif']) await get(item.id, name)
    expect(await renderCount(server)).toBe(before + 2)
    const { rows } = storedVariants(server)
    expect(rows.filter((name) => name.startsWith(item.id)).map((name) => name.split('.')[1])).toEqual([
      'contain-40x40-3-animated',
      'cover-30x20-3-gif-animated',
    ])
  })
})
