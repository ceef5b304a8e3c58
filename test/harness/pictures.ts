import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { crc32, deflateSync } from 'node:zlib'
import sharp, { type Sharp } from 'sharp'
import { freshMetrics } from './fresh-metrics.ts'
import { childrenOf, commandOf } from './processes.ts'
import type { SharedServer, TestServer } from './server.ts'
import { until } from './until.ts'
import { upload } from './upload.ts'
import { readItem } from './wire.ts'

/** Waits for the dimensions and the ThumbHash of a picture: its first variant records them, if its upload was given no time (V12, V13). */
export async function recordPreview(request: SharedServer['request'], id: string): Promise<void> {
  await until('the ThumbHash', async () => {
    await request(`/media/${id}?variant=thumb`)
    return (await readItem(await request(`/api/media/${id}`))).thumbhash
  })
}

/** The colours of the quarters of `quarters`: top left, top right, bottom left, bottom right. */
const corners = {
  red: [255, 0, 0],
  green: [0, 255, 0],
  blue: [0, 0, 255],
  white: [255, 255, 255],
} as const
type Colour = keyof typeof corners

const plain = (width: number, height: number, colour: Colour) => {
  const [r, g, b] = corners[colour]
  return { create: { width, height, channels: 3 as const, background: { r, g, b } } }
}

/** A picture of four quarters in different colours; both sides are even. */
export function quarters(width: number, height: number): Sharp {
  const half = { width: width / 2, height: height / 2 }
  const quarter = (colour: Colour, left: number, top: number) => ({
    input: plain(half.width, half.height, colour),
    left,
    top,
  })
  return sharp(plain(width, height, 'red')).composite([
    quarter('green', half.width, 0),
    quarter('blue', 0, half.height),
    quarter('white', half.width, half.height),
  ])
}

/** An animated picture whose first frame is blue; equal consecutive frames would be merged. */
export async function animation(frames: number, side = 20): Promise<Sharp> {
  const frame = (colour: Colour) =>
    sharp(plain(side, side, colour))
      .png()
      .toBuffer()
  const [first, ...others] = [await frame('blue'), await frame('red'), await frame('green')]
  const rest = Array.from({ length: frames - 1 }, (_, index) => others[index % 2])
  return sharp([first, ...rest.flatMap((one) => one ?? [])], { join: { animated: true } })
}

/** A small PNG whose header declares this size. */
export function hollowPng(width: number, height: number): Buffer<ArrayBuffer> {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const chunk = (type: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), data])
    const frame = Buffer.alloc(8)
    frame.writeUInt32BE(data.length, 0)
    frame.writeUInt32BE(crc32(named), 4)
    return Buffer.concat([frame.subarray(0, 4), named, frame.subarray(4)])
  }
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.alloc(1000))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** A grey TIFF of 8 × 6 pixels, which its orientation turns, with this many directories of the same picture. */
export function crowdedTiff(directories: number): Buffer<ArrayBuffer> {
  const [width, height, pixels] = [8, 6, 8]
  const entries = [
    ...[256, width, 257, height, 258, 8, 259, 1, 262, 1],
    ...[273, pixels, 274, 6, 277, 1, 278, height, 279, width * height],
  ]
  const [start, size] = [pixels + width * height, 2 + entries.length * 6 + 4]
  const directory = Buffer.alloc(size)
  directory.writeUInt16LE(entries.length / 2)
  for (let at = 0; at < entries.length; at += 2) {
    directory.writeUInt16LE(entries[at] ?? 0, 2 + at * 6)
    // One number of 32 bits.
    directory.set([4, 0, 1], 2 + at * 6 + 2)
    directory.writeUInt32LE(entries[at + 1] ?? 0, 2 + at * 6 + 8)
  }
  const bytes = Buffer.alloc(start + directories * size)
  bytes.write('II*\0')
  bytes.writeUInt32LE(start, 4)
  bytes.fill(directory, start)
  for (let nth = 1; nth < directories; nth += 1)
    bytes.writeUInt32LE(start + nth * size, start + nth * size - 4)
  return bytes
}

/** The nearest named colour at each corner of a picture, and its opacity. */
export async function cornersOf(bytes: Uint8Array) {
  const { data, info } = await sharp(bytes).ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  const at = (x: number, y: number) => {
    const start = (y * info.width + x) * 4
    const pixel = data.subarray(start, start + 3)
    const distance = (colour: readonly number[]) =>
      colour.reduce((sum, value, index) => sum + Math.abs(value - (pixel[index] ?? 0)), 0)
    const [nearest] = Object.entries(corners).toSorted(([, a], [, b]) => distance(a) - distance(b))
    return data[start + 3] === 0 ? 'nothing' : nearest?.[0]
  }
  const [right, bottom] = [info.width - 2, info.height - 2]
  return [at(1, 1), at(right, 1), at(1, bottom), at(right, bottom)]
}

/** Uploads the output of sharp under a name with its type. */
export const uploadPicture = async (server: SharedServer, made: Buffer | Promise<Buffer>, type: string) =>
  upload(server, new Uint8Array(await made), { name: `picture.${type.split('/')[1]}`, type })

export const variantUrl = (server: Pick<SharedServer, 'url'>, id: string, variant = 'thumb'): string =>
  `${server.url}/media/${id}?variant=${variant}`

/** The processes that render variants; not those that read dimensions, which have the normal priority. */
export const renderersOf = ({ process }: Pick<TestServer, 'process'>): number[] =>
  childrenOf(process.pid ?? 0).filter((pid) => /picture-worker\.\w+\0[1-9]/.test(commandOf(pid)))

/** How many variants the server has rendered successfully. */
export async function renderCount(server: Pick<SharedServer, 'url'>): Promise<number> {
  const text = await freshMetrics(server.url)
  const pattern = /^mediabucket_variant_seconds_count\{.*outcome="made"\} (\d+)$/gm
  return [...text.matchAll(pattern)].reduce((sum, [, count]) => sum + Number(count), 0)
}

/** A picture whose `medium` variant is larger than 64 kB, so that it is stored as a file. */
export const noise = (side: number): Sharp =>
  sharp({
    create: {
      width: side,
      height: side,
      channels: 3,
      background: 'black',
      noise: { type: 'gaussian', mean: 128, sigma: 60 },
    },
  })

/** The variants that a server has stored, as `<id>.<key>`: those in `variants.db`, and those in files. */
export function storedVariants({ data }: Pick<SharedServer, 'data'>): { rows: string[]; files: string[] } {
  const directory = join(data, 'variants')
  const files = existsSync(directory)
    ? readdirSync(directory, { recursive: true, encoding: 'utf8' }).flatMap(
        (path) => path.split('/')[1] ?? [],
      )
    : []
  const db = new DatabaseSync(join(data, 'variants.db'), { readOnly: true })
  try {
    return {
      rows: db
        .prepare('SELECT name FROM variants')
        .all()
        .map(({ name }) => String(name)),
      files,
    }
  } finally {
    db.close()
  }
}
