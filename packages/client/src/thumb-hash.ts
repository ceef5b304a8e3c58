/** Pixels of a placeholder: red, green, blue and opacity of each, from 0 to 255, row by row. */
export interface Pixels {
  readonly width: number
  readonly height: number
  readonly rgba: Uint8Array
}

/** A cosine with these frequencies. */
interface Wave {
  readonly x: number
  readonly y: number
  readonly amplitude: number
}

interface Channel {
  readonly average: number
  readonly waves: readonly Wave[]
}

/** The frequencies of a channel, without that of its average: those above the diagonal, row by row. */
function frequencies(columns: number, rows: number): Pick<Wave, 'x' | 'y'>[] {
  const found: Pick<Wave, 'x' | 'y'>[] = []
  for (let y = 0; y < rows; y += 1)
    for (let x = y === 0 ? 1 : 0; x * rows < columns * (rows - y); x += 1) found.push({ x, y })
  return found
}

/**
 * Decodes a ThumbHash (https://evanw.github.io/thumbhash/) into a picture whose longer side has `longest` pixels. Null if it is none.
 */
export function thumbHashPixels(base64: string, longest = 32): Pixels | null {
  const hash = bytesOfBase64(base64)
  if (hash === null || hash.length < 5) return null
  const bits = (start: number, count: number) => {
    let value = 0
    for (let bit = 0; bit < count; bit += 1)
      value |= (((hash[(start + bit) >> 3] ?? 0) >> ((start + bit) & 7)) & 1) << bit
    return value
  }
  const hasAlpha = bits(23, 1) === 1
  const isLandscape = bits(39, 1) === 1
  const [shorter, longer] = [bits(24, 3), hasAlpha ? 5 : 7]
  const [columns, rows] = isLandscape ? [longer, shorter] : [shorter, longer]
  if (shorter === 0) return null

  // Four bits for each wave, after the header.
  let position = hasAlpha ? 48 : 40
  const channel = (average: number, scale: number, columns: number, rows: number): Channel => ({
    average,
    waves: frequencies(columns, rows).map(({ x, y }) => {
      const amplitude = (bits(position, 4) / 7.5 - 1) * scale
      position += 4
      return { x, y, amplitude }
    }),
  })
  const light = channel(bits(0, 6) / 63, bits(18, 5) / 31, Math.max(3, columns), Math.max(3, rows))
  const yellow = channel(bits(6, 6) / 31.5 - 1, (bits(27, 6) / 63) * 1.25, 3, 3)
  const red = channel(bits(12, 6) / 31.5 - 1, (bits(33, 6) / 63) * 1.25, 3, 3)
  const alpha = hasAlpha ? channel(bits(40, 4) / 15, bits(44, 4) / 15, 5, 5) : null

  const ratio = columns / rows
  const width = Math.max(1, Math.round(ratio > 1 ? longest : longest * ratio))
  const height = Math.max(1, Math.round(ratio > 1 ? longest / ratio : longest))
  const rgba = new Uint8Array(width * height * 4)
  for (let y = 0, at = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1, at += 4) {
      const valueHere = (one: Channel) => valueAt(one, (x + 0.5) / width, (y + 0.5) / height)
      const [l, p, q] = [valueHere(light), valueHere(yellow), valueHere(red)]
      const b = l - (2 / 3) * p
      const r = (3 * l - b + q) / 2
      rgba.set([r, r - q, b, alpha === null ? 1 : valueHere(alpha)].map(toByte), at)
    }
  return { width, height, rgba }
}

/** The value of a channel at a point; both coordinates are from 0 to 1. */
function valueAt({ average, waves }: Channel, left: number, top: number): number {
  let value = average
  for (const { x, y, amplitude } of waves)
    value += 2 * amplitude * Math.cos(Math.PI * left * x) * Math.cos(Math.PI * top * y)
  return value
}

const toByte = (value: number): number => Math.max(0, Math.floor(255 * Math.min(1, value)))

function bytesOfBase64(text: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
  } catch {
    return null
  }
}

/** Enough for the frequencies of a ThumbHash; a larger picture only makes the page longer. */
const urlSize = 16

/** A ThumbHash as a `data:` URL of a PNG, for a background; null if it is none. */
export function thumbHashUrl(base64: string): string | null {
  const pixels = thumbHashPixels(base64, urlSize)
  return pixels && `data:image/png;base64,${btoa(String.fromCharCode(...png(pixels)))}`
}

/** An uncompressed PNG (W3C PNG, zlib of RFC 1950 with one stored block of RFC 1951). */
function png({ width, height, rgba }: Pixels): Uint8Array {
  const lines: number[] = []
  // Each line begins with its filter, 0 for none.
  for (let y = 0; y < height; y += 1) lines.push(0, ...rgba.subarray(y * width * 4, (y + 1) * width * 4))
  const { length } = lines
  const block = [0x78, 0x01, 0x01, ...littleEndian(length), ...littleEndian(length ^ 0xffff)]
  return Uint8Array.from([
    ...[0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
    ...chunk('IHDR', [...bigEndian(width), ...bigEndian(height), 8, 6, 0, 0, 0]),
    ...chunk('IDAT', [...block, ...lines, ...bigEndian(adler32(lines))]),
    ...chunk('IEND', []),
  ])
}

function chunk(type: string, data: readonly number[]): number[] {
  const named = [...Array.from(type, (char) => char.charCodeAt(0)), ...data]
  return [...bigEndian(data.length), ...named, ...bigEndian(crc32(named))]
}

const bigEndian = (value: number): number[] => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255)
const littleEndian = (value: number): number[] => [value & 255, (value >> 8) & 255]

function crc32(bytes: readonly number[]): number {
  let crc = -1
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return ~crc
}

function adler32(bytes: readonly number[]): number {
  let [a, b] = [1, 0]
  for (const byte of bytes) {
    a = (a + byte) % 65_521
    b = (b + a) % 65_521
  }
  return ((b << 16) | a) >>> 0
}
