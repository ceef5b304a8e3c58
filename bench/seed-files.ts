import { crc32, deflateSync } from 'node:zlib'
import { rgbaToThumbHash } from 'thumbhash'

/** Width and height of the generated pictures, in pixels. All are multiples of 6. */
const shapes = [
  [48, 36],
  [36, 48],
  [96, 54],
  [42, 42],
  [36, 54],
  [54, 36],
  [72, 24],
] as const
/** Colours of a picture. */
const colours = 16
/** Pictures that follow one another have different palettes, up to this number. */
const palettes = 1_009

type Rgb = readonly [red: number, green: number, blue: number]

/** A small file with the properties that the service would detect. */
export interface SeededFile {
  readonly filename: string | null
  readonly contentType: string
  readonly extension: string | null
  readonly bytes: Uint8Array
  /** Of an image, in pixels. */
  readonly width: number | null
  readonly height: number | null
  readonly thumbhash: Uint8Array | null
}

/**
 * Ten files: seven bitmaps, of which the service renders no thumbnails, a text, a sound, and one of an unknown type. Or only pictures, of
 * which it renders them. No two have the same bytes.
 */
export const createFiles = (isPictures: boolean): ((number: number) => SeededFile) =>
  isPictures ? createPictures() : mixedFile

const plain = { width: null, height: null, thumbhash: null }

function mixedFile(number: number): SeededFile {
  const file = (filename: string | null, contentType: string, extension: string | null, text: string) => ({
    ...{ ...plain, filename, contentType, extension, bytes: Buffer.from(text) },
  })
  if (number % 10 === 3) return file(`invoice-${number}.txt`, 'text/plain', 'txt', `Invoice ${number}\n`)
  if (number % 10 === 5)
    return file(`clip-${number}.mp3`, 'audio/mpeg', 'mp3', `ID3\x04\0\0\0\0\0\0${number}`)
  if (number % 10 === 9) return file(null, 'application/octet-stream', null, `\0${number}`)
  return {
    ...{ ...plain, filename: `Photo ${number}.bmp`, contentType: 'image/bmp', extension: 'bmp' },
    ...{ bytes: bitmapOf(number % 2 ** 24), width: 4, height: 3 },
  }
}

/** A bitmap of 4 × 3 pixels in one colour of 24 bits. */
function bitmapOf(colour: number): Buffer {
  const bytes = Buffer.alloc(90)
  bytes.write('BM')
  bytes.writeUInt32LE(bytes.length, 2)
  bytes.writeUInt32LE(54, 10)
  bytes.writeUInt32LE(40, 14)
  bytes.writeInt32LE(4, 18)
  bytes.writeInt32LE(3, 22)
  bytes.writeUInt16LE(1, 26)
  bytes.writeUInt16LE(24, 28)
  for (let at = 54; at < bytes.length; at += 3) bytes.writeUIntLE(colour, at, 3)
  return bytes
}

/** PNG pictures of about 300 bytes, whose shape and colours vary with their number. No two are equal. */
function createPictures(): (number: number) => SeededFile {
  const frames = shapes.map(([width, height]) => ({ width, height, ...partsOf(width, height) }))
  const palettesMade = new Map<number, Rgb[]>()
  const placeholders = new Map<string, Uint8Array>()
  return (number) => {
    const frame = frames[number % frames.length]
    if (frame === undefined) throw new Error('there are no shapes')
    const { width, height, head, tail } = frame
    const palette = palettesMade.get(number % palettes) ?? paletteOf(number % palettes)
    palettesMade.set(number % palettes, palette)
    const placeholder = `${number % frames.length} ${number % palettes}`
    const thumbhash = placeholders.get(placeholder) ?? thumbHashOf(width, height, palette)
    placeholders.set(placeholder, thumbhash)
    // The last colour differs for each number below 2^24. One pixel has it.
    const own = [...palette.slice(0, -1), rgbOf((number * 0x9e3779b1) % 2 ** 24)]
    const bytes = Buffer.concat([head, chunkOf('PLTE', Buffer.from(own.flat())), tail])
    return {
      ...{ filename: `Picture ${number + 1}.png`, contentType: 'image/png', extension: 'png', bytes },
      ...{ width, height, thumbhash },
    }
  }
}

/** The colour of a pixel, from 0: a gradient from the upper left to the lower right corner. */
const colourAt = (x: number, y: number, width: number, height: number): number =>
  x === width - 1 && y === height - 1
    ? colours - 1
    : Math.floor(((colours - 1) * (x + y)) / (width + height - 1))

/** A gradient between two colours. */
function paletteOf(number: number): Rgb[] {
  const first = rgbOf((number * 0x9e3779b1) % 2 ** 24)
  const last = rgbOf((number * 0x85ebca6b) % 2 ** 24)
  const between = (share: number) => (value: number, index: number) =>
    Math.round(value + ((last[index] ?? 0) - value) * share)
  return Array.from({ length: colours }, (_, step) => {
    const [red = 0, green = 0, blue = 0] = first.map(between(step / (colours - 1)))
    return [red, green, blue] as const
  })
}

const rgbOf = (value: number): Rgb => [
  Math.floor(value / 65_536) % 256,
  Math.floor(value / 256) % 256,
  value % 256,
]

/** What precedes and follows the palette in a PNG file of this size with 4 bits per pixel. */
function partsOf(width: number, height: number) {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([4, 3], 8)
  const rows = Array.from({ length: height }, (_, y) => {
    const row = Buffer.alloc(1 + width / 2)
    for (let x = 0; x < width; x += 2)
      row[1 + x / 2] = colourAt(x, y, width, height) * 16 + colourAt(x + 1, y, width, height)
    return row
  })
  return {
    head: Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunkOf('IHDR', header)]),
    tail: Buffer.concat([
      chunkOf('IDAT', deflateSync(Buffer.concat(rows))),
      chunkOf('IEND', Buffer.alloc(0)),
    ]),
  }
}

function chunkOf(type: string, data: Buffer): Buffer {
  const chunk = Buffer.alloc(12 + data.length)
  chunk.writeUInt32BE(data.length, 0)
  chunk.write(type, 4, 'latin1')
  chunk.set(data, 8)
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + data.length)), 8 + data.length)
  return chunk
}

/** Computed from a sixth of the pixels of each side. */
function thumbHashOf(width: number, height: number, palette: readonly Rgb[]): Uint8Array {
  const [columns, rows] = [width / 6, height / 6]
  const pixels = Array.from({ length: columns * rows }, (_, index) => {
    const colour = palette[colourAt(index % columns, Math.floor(index / columns), columns, rows)]
    return [...(colour ?? [0, 0, 0]), 255]
  })
  return rgbaToThumbHash(columns, rows, pixels.flat())
}
