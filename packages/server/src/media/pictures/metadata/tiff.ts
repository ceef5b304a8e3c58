import {
  applyEdits,
  type ByteSource,
  type Edit,
  gapsBetween,
  type Piece,
  type Range,
  UnreadableFile,
} from './pieces.ts'

/**
 * Tags that decide the pixels, their colours and the orientation. Among the others are descriptions, names, dates, the camera, Exif, GPS,
 * IPTC, XMP, the coordinates of GeoTIFF, and private tags.
 */
const kept: ReadonlySet<number> = new Set([
  ...[254, 255, 256, 257, 258, 259, 262, 263, 264, 265, 266, 273, 274, 277, 278, 279, 280, 281, 282, 283],
  ...[284, 286, 287, 290, 291, 292, 293, 296, 297, 301, 317, 318, 319, 320, 321, 322, 323, 324],
  ...[325, 326, 327, 328, 330, 332, 334, 336, 338, 339, 340, 341, 342, 347, 512, 513, 514, 515, 517, 518],
  ...[529, 530, 531, 532, 559, 32995, 32996, 32997, 32998, 34675, 50674],
])

/** Pairs of tags: the positions of the pixels, and their lengths. */
const dataTags = [
  [273, 279],
  [324, 325],
  [513, 514],
] as const

/** Directories of one picture each. */
const subDirectories = 330

/** Tables of an obsolete form of JPEG, of unknown length, which decoders find by their positions. */
const unsupported: ReadonlySet<number> = new Set([519, 520, 521])

/** Bytes of a value of each type; other types are of later specifications, and no kept tag has them. */
const typeSizes: ReadonlyMap<number, number> = new Map([
  ...([1, 2, 6, 7].map((type) => [type, 1]) as [number, number][]),
  ...([3, 8].map((type) => [type, 2]) as [number, number][]),
  ...([4, 9, 11, 13].map((type) => [type, 4]) as [number, number][]),
  ...([5, 10, 12, 16, 17, 18].map((type) => [type, 8]) as [number, number][]),
])

const maxDirectories = 10_000
const maxEntries = 65_536

interface Entry {
  readonly tag: number
  readonly type: number
  readonly count: number
  /** The entry itself. */
  readonly bytes: Buffer
  readonly value: Range
  /** Whether the value is in the entry. */
  readonly isInline: boolean
}

/**
 * A TIFF or BigTIFF file in which everything is zero that no picture needs. Positions stay the same. The directories lose the other
 * entries.
 */
export async function planTiff(source: ByteSource): Promise<Piece[]> {
  const format = await readFormat(source)
  const needed: Range[] = [{ start: 0, end: format.headerSize }]
  const edits: Edit[] = []
  const waiting = [format.first]
  const visited = new Set<number>()
  for (let position = waiting.pop(); position !== undefined; position = waiting.pop()) {
    if (position === 0 || visited.has(position)) continue
    if (visited.size >= maxDirectories) throw damaged('too many directories')
    visited.add(position)
    const { entries, next } = await readDirectory(source, format, position)
    const wanted = entries.filter(({ tag }) => kept.has(tag))
    if (wanted.length === 0) throw damaged('a directory without a picture')
    edits.push(directoryEdit(format, position, wanted, next))
    for (const { value, isInline } of wanted) if (!isInline) needed.push(value)
    for (const range of await dataRanges(source, format, wanted)) needed.push(range)
    const inner = wanted.find(({ tag }) => tag === subDirectories)
    waiting.push(next, ...(inner ? await readNumbers(source, format, inner) : []))
  }
  if (visited.size === 0) throw damaged('no directory')
  const end = [...needed, ...edits].reduce((last, range) => Math.max(last, range.end), 0)
  const gaps = gapsBetween([...needed, ...edits], { start: 0, end })
  return applyEdits([...edits, ...gaps.map((gap) => ({ ...gap, bytes: null }))], end)
}

/** How numbers are stored. */
interface Format {
  readonly isLittle: boolean
  readonly isBig: boolean
  readonly headerSize: number
  /** The position of the first directory. */
  readonly first: number
}

async function readFormat(source: ByteSource): Promise<Format> {
  const header = await source.read(0, 8)
  const order = header.toString('latin1', 0, 2)
  if (order !== 'II' && order !== 'MM') throw damaged('no byte order')
  const isLittle = order === 'II'
  const version = numberAt({ isLittle }, header, 2, 2)
  if (version !== 42 && version !== 43) throw damaged('no version')
  const isBig = version === 43
  const first = isBig
    ? numberAt({ isLittle }, await source.read(8, 8), 0, 8)
    : numberAt({ isLittle }, header, 4, 4)
  return { isLittle, isBig, headerSize: isBig ? 16 : 8, first }
}

/** Bytes of a position, of the number of entries, and of an entry. */
const sizesOf = ({ isBig }: Format) =>
  isBig ? { pointer: 8, count: 8, entry: 20 } : { pointer: 4, count: 2, entry: 12 }

async function readDirectory(
  source: ByteSource,
  format: Format,
  position: number,
): Promise<{ entries: Entry[]; next: number }> {
  const sizes = sizesOf(format)
  const count = numberAt(format, await source.read(position, sizes.count), 0, sizes.count)
  if (count > maxEntries) throw damaged('too many entries')
  const start = position + sizes.count
  const bytes = await source.read(start, count * sizes.entry + sizes.pointer)
  const entries = Array.from({ length: count }, (_, at) => {
    const entry = bytes.subarray(at * sizes.entry, (at + 1) * sizes.entry)
    return readEntry(source, format, entry, start + at * sizes.entry)
  })
  return { entries, next: numberAt(format, bytes, count * sizes.entry, sizes.pointer) }
}

function readEntry(source: ByteSource, format: Format, bytes: Buffer, position: number): Entry {
  const { pointer } = sizesOf(format)
  const tag = numberAt(format, bytes, 0, 2)
  const type = numberAt(format, bytes, 2, 2)
  const count = numberAt(format, bytes, 4, pointer)
  if (unsupported.has(tag)) throw damaged('an obsolete form of JPEG')
  if (!kept.has(tag)) return { tag, type, count, bytes, value: { start: 0, end: 0 }, isInline: true }
  const size = typeSizes.get(type)
  if (size === undefined) throw damaged('a value of an unknown type')
  const inline = 4 + pointer
  const isInline = count * size <= pointer
  const start = isInline ? position + inline : numberAt(format, bytes, inline, pointer)
  const end = start + count * size
  if (end > source.size) throw damaged('a value ends after the file')
  return { tag, type, count, bytes, value: { start, end }, isInline }
}

/** The directory with only these entries. */
function directoryEdit(format: Format, start: number, entries: readonly Entry[], next: number): Edit {
  const sizes = sizesOf(format)
  const bytes = Buffer.concat([
    encoded(format, entries.length, sizes.count),
    ...entries.map((entry) => entry.bytes),
    encoded(format, next, sizes.pointer),
  ])
  return { start, end: start + bytes.byteLength, bytes }
}

/** Where the pixels are. */
async function dataRanges(source: ByteSource, format: Format, entries: readonly Entry[]): Promise<Range[]> {
  const ranges: Range[] = []
  for (const [positions, lengths] of dataTags) {
    const [at, of] = [positions, lengths].map((tag) => entries.find((entry) => entry.tag === tag))
    if (!at) continue
    if (!of) throw damaged('pixels of unknown length')
    const ends = await readNumbers(source, format, of)
    for (const [index, start] of (await readNumbers(source, format, at)).entries()) {
      const length = ends[index]
      if (length === undefined || start + length > source.size) throw damaged('pixels end after the file')
      ranges.push({ start, end: start + length })
    }
  }
  return ranges
}

async function readNumbers(
  source: ByteSource,
  format: Format,
  { type, count, value }: Entry,
): Promise<number[]> {
  const size = typeSizes.get(type) ?? 0
  const bytes = await source.read(value.start, value.end - value.start)
  return Array.from({ length: count }, (_, at) => numberAt(format, bytes, at * size, size))
}

function numberAt({ isLittle }: Pick<Format, 'isLittle'>, bytes: Buffer, at: number, size: number): number {
  if (size === 8) {
    const value = isLittle ? bytes.readBigUInt64LE(at) : bytes.readBigUInt64BE(at)
    if (value > Number.MAX_SAFE_INTEGER) throw damaged('a number is too large')
    return Number(value)
  }
  return isLittle ? bytes.readUIntLE(at, size) : bytes.readUIntBE(at, size)
}

function encoded({ isLittle }: Format, value: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  if (size === 8) {
    if (isLittle) bytes.writeBigUInt64LE(BigInt(value))
    else bytes.writeBigUInt64BE(BigInt(value))
  } else if (isLittle) bytes.writeUIntLE(value, 0, size)
  else bytes.writeUIntBE(value, 0, size)
  return bytes
}

const damaged = (what: string) => new UnreadableFile(`not a TIFF file: ${what}`)
