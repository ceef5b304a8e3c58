import { constants, crc32, deflateSync } from 'node:zlib'
import { UnreadableFile } from '@mediabucket/strip-metadata'
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { film } from '../../../test/harness/films.ts'
import { noise } from '../../../test/harness/pictures.ts'
import { packetsOf, secret, withoutMetadata } from './samples.ts'

interface Chunk {
  readonly type: string
  readonly data: Buffer
}

const hidden = Buffer.from(`${secret} text of 32 letters, or more`)
const u32 = (value: number) => Buffer.of(value >>> 24, value >>> 16, value >>> 8, value)
const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

const pngOf = (chunks: readonly Chunk[]): Buffer =>
  Buffer.concat([
    signature,
    ...chunks.flatMap(({ type, data }) => {
      const named = Buffer.concat([Buffer.from(type), data])
      return [u32(data.length), named, u32(crc32(named))]
    }),
  ])

function chunksOf(png: Buffer): Chunk[] {
  const chunks: Chunk[] = []
  for (let start = 8; start < png.length; ) {
    const end = start + 8 + png.readUInt32BE(start)
    chunks.push({ type: png.toString('latin1', start + 4, start + 8), data: png.subarray(start + 8, end) })
    start = end + 4
  }
  return chunks
}

const header = (width: number, height: number, depth: number, colours: number, interlace: number): Chunk => ({
  type: 'IHDR',
  data: Buffer.concat([u32(width), u32(height), Buffer.of(depth, colours, 0, 0, interlace)]),
})
const pixels = (data: Buffer): Chunk => ({ type: 'IDAT', data })
const end: Chunk = { type: 'IEND', data: Buffer.alloc(0) }

/** The rows of black pixels with their filters, as the specification of PNG computes them (8.1 and 9). */
function blackRows(width: number, height: number, bits: number, isInterlaced: boolean): Buffer {
  const passes = isInterlaced
    ? ['0088', '4088', '0448', '2044', '0224', '1022', '0112'].map((pass) => [...pass].map(Number))
    : [[0, 0, 1, 1]]
  let bytes = 0
  for (const [x = 0, y = 0, right = 1, down = 1] of passes) {
    let columns = 0
    for (let at = x; at < width; at += right) columns += 1
    for (let at = y; at < height && columns > 0; at += down) bytes += 1 + Math.ceil((columns * bits) / 8)
  }
  return Buffer.alloc(bytes)
}

/** Each form of pixels: the depth, the type of the colours, and the bits of a pixel. */
const forms = [
  ...[1, 2, 4, 8, 16].map((depth) => [depth, 0, depth] as const),
  ...[8, 16].flatMap((depth) =>
    [2, 4, 6].map((type) => [depth, type, depth * (type === 2 ? 3 : type === 4 ? 2 : 4)] as const),
  ),
]

const refused = (png: Buffer) =>
  expect(withoutMetadata(png, 'image/png')).rejects.toBeInstanceOf(UnreadableFile)

describe('X2 bytes behind the compressed pixels of a PNG file', () => {
  const parts = async (compressionLevel = 6) => {
    const png = await noise(24).png({ compressionLevel }).toBuffer()
    const chunks = chunksOf(png)
    expect(chunks.map(({ type }) => type)).toEqual(['IHDR', 'pHYs', 'IDAT', 'IEND'])
    const data = chunks[2]?.data ?? Buffer.alloc(0)
    const by = (...compressed: Buffer[]) => pngOf([...chunks.slice(0, 2), ...compressed.map(pixels), end])
    return { png, data, by }
  }

  test('are removed in the same chunk', async () => {
    const { png, data, by } = await parts()
    expect((await withoutMetadata(by(Buffer.concat([data, hidden])), 'image/png')).equals(png)).toBe(true)
  })

  test('are removed in further chunks, wherever the stream is cut', async () => {
    const { data, by } = await parts()
    const empty = Buffer.alloc(0)
    for (const at of [0, 1, 2, 100, data.length - 5, data.length - 1, data.length]) {
      const [first, second] = [data.subarray(0, at), data.subarray(at)]
      const stored = await withoutMetadata(
        by(first, empty, Buffer.concat([second, hidden]), hidden, empty, hidden),
        'image/png',
      )
      expect([at, stored.equals(by(first, empty, ...(second.length > 0 ? [second] : [])))]).toEqual([
        at,
        true,
      ])
    }
  })

  test('are removed from many small chunks and from large ones', async () => {
    const large = await noise(900).png({ compressionLevel: 0 }).toBuffer()
    const chunks = chunksOf(large)
    const data = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map((chunk) => chunk.data))
    expect(data.length).toBeGreaterThan(2_000_000)
    const by = (...compressed: Buffer[]) =>
      pngOf([
        ...chunks.filter(({ type }) => type !== 'IDAT' && type !== 'IEND'),
        ...compressed.map(pixels),
        end,
      ])
    for (const size of [700, 65_536, 1_000_003, data.length]) {
      const split = Array.from({ length: Math.ceil(data.length / size) }, (_, nth) =>
        data.subarray(nth * size, (nth + 1) * size),
      )
      const sent = by(...split.slice(0, -1), Buffer.concat([split.at(-1) ?? data, hidden]), hidden)
      expect([size, (await withoutMetadata(sent, 'image/png')).equals(by(...split))]).toEqual([size, true])
    }
  })

  test('X4 that are compressed too are refused, as is a stream that is damaged', async () => {
    const { data, by } = await parts()
    const rows = blackRows(24, 24, 24, false)
    await withoutMetadata(by(deflateSync(rows, { level: 0 })), 'image/png')
    for (const level of [0, 9]) {
      await refused(by(deflateSync(Buffer.concat([rows, hidden]), { level })))
      await refused(
        by(deflateSync(Buffer.concat([rows, hidden]), { level, finishFlush: constants.Z_SYNC_FLUSH })),
      )
      await refused(by(deflateSync(Buffer.concat([rows, Buffer.of(0)]), { level })))
    }
    await refused(by(Buffer.concat([data.subarray(0, -4), hidden])))
    await refused(by(hidden))
  })

  test('X4 that fill the memory when they are decompressed are refused before', async () => {
    const { by } = await parts()
    await refused(by(deflateSync(Buffer.alloc(300 * 1024 * 1024))))
  })

  test.each([false, true])(
    'the rows of all forms of pixels are kept, and no byte more (interlaced: %s)',
    async (isInterlaced) => {
      for (const [depth, colours, bits] of forms)
        for (const [width, height] of [
          [1, 1],
          [2, 3],
          [3, 2],
          [5, 5],
          [8, 8],
          [9, 17],
          [33, 4],
        ] as const) {
          const rows = blackRows(width, height, bits, isInterlaced)
          const by = (compressed: Buffer) =>
            pngOf([header(width, height, depth, colours, isInterlaced ? 1 : 0), pixels(compressed), end])
          const plain = by(deflateSync(rows))
          await sharp(plain, { failOn: 'warning' }).raw().toBuffer()
          expect((await withoutMetadata(plain, 'image/png')).equals(plain)).toBe(true)
          await refused(by(deflateSync(Buffer.concat([rows, Buffer.of(65)]))))
        }
    },
  )

  test('X4 pictures of more than 4 GiB of pixels are refused', async () => {
    const compressed = pixels(deflateSync(Buffer.alloc(100)))
    const by = (height: number) => pngOf([header(65_535, height, 8, 0, 0), compressed, end])
    await withoutMetadata(by(65_536), 'image/png')
    await refused(by(65_537))
  })

  test('a picture that ends too early stays as it is', async () => {
    const { data, by } = await parts()
    for (const compressed of [data.subarray(0, -20), deflateSync(Buffer.alloc(100))])
      expect((await withoutMetadata(by(compressed), 'image/png')).equals(by(compressed))).toBe(true)
  })
})

describe('X2 bytes behind the compressed frames of an animated PNG file', () => {
  const changed = (chunks: readonly Chunk[], nth: number, ...by: Chunk[]) =>
    pngOf(chunks.toSpliced(nth, 1, ...by))

  test('are removed in the same chunk, and refused where the sequence numbers of others change', async () => {
    const plain = await film('apng', '32x32', ['-frames:v', '4', '-plays', '0'])
    const chunks = chunksOf(await withoutMetadata(plain, 'image/png'))
    const kept = pngOf(chunks)
    expect(await packetsOf('a.apng', kept, true)).toBe(await packetsOf('a.apng', plain, true))
    const places = chunks.flatMap(({ type }, nth) => (type === 'fdAT' ? [nth] : []))
    expect(places.length).toBeGreaterThan(2)
    for (const nth of places) {
      const { type, data } = chunks[nth] ?? end
      const longer = changed(chunks, nth, { type, data: Buffer.concat([data, hidden]) })
      expect((await withoutMetadata(longer, 'image/png')).equals(kept)).toBe(true)
      await refused(
        changed(chunks, nth, { type, data }, { type, data: Buffer.concat([data.subarray(0, 4), hidden]) }),
      )
      await refused(changed(chunks, nth, { type, data: Buffer.concat([data.subarray(0, 4), hidden]) }))
      const rows = Buffer.concat([Buffer.alloc(33 * 32 * 8), hidden])
      await refused(
        changed(chunks, nth, {
          type,
          data: Buffer.concat([data.subarray(0, 4), deflateSync(rows, { level: 0 })]),
        }),
      )
    }
  })

  test('X4 and frames that no decoder shows are refused', async () => {
    const chunks = chunksOf(
      await withoutMetadata(await film('apng', '32x32', ['-frames:v', '3']), 'image/png'),
    )
    const control = chunks.findLast(({ type }) => type === 'fcTL') ?? end
    const frame = chunks.findLast(({ type }) => type === 'fdAT') ?? end
    const at = chunks.length - 1
    const number = Math.max(
      ...chunks.filter(({ type }) => /^f/.test(type)).map(({ data }) => data.readUInt32BE(0)),
    )
    const numbered = ({ type, data }: Chunk, more: number) => ({
      type,
      data: Buffer.concat([u32(number + more), data.subarray(4)]),
    })
    // More frames than the header of the animation has, a frame without pixels, another sequence number.
    await refused(changed(chunks, at, numbered(control, 1), numbered(frame, 2), end))
    await refused(changed(chunks, at, numbered(control, 1), end))
    const first = chunks.findIndex(({ type }) => type === 'fdAT')
    await refused(changed(chunks, first, numbered(chunks[first] ?? end, 7)))
  })

  test('with the header of the animation behind the picture are removed', async () => {
    const plain = [header(1, 1, 8, 0, 0), pixels(deflateSync(Buffer.alloc(2)))]
    const animation = [
      { type: 'acTL', data: Buffer.concat([u32(1), u32(0)]) },
      { type: 'fcTL', data: Buffer.concat([u32(0), u32(1), u32(1), hidden.subarray(0, 14)]) },
      { type: 'fdAT', data: Buffer.concat([u32(1), hidden]) },
    ]
    const stored = await withoutMetadata(pngOf([...plain, ...animation, end]), 'image/png')
    expect(stored.equals(pngOf([...plain, end]))).toBe(true)
  })

  test('X4 more than 10,000 frames are refused', async () => {
    const by = (frames: number) =>
      pngOf([
        header(1, 1, 8, 0, 0),
        { type: 'acTL', data: Buffer.concat([u32(frames), u32(0)]) },
        { type: 'fcTL', data: Buffer.concat([u32(0), u32(1), u32(1), Buffer.alloc(14)]) },
        pixels(deflateSync(Buffer.alloc(2))),
        end,
      ])
    await withoutMetadata(by(10_000), 'image/png')
    await refused(by(10_001))
  })
})
