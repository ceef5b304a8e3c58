import { type ByteSource, maxTable, type Range, UnreadableFile } from './pieces.ts'

/** Bytes of a value of each type; other types are of later specifications, and no kept tag has them. */
const typeSizes: ReadonlyMap<number, number> = new Map([
  // Texts of Exif 3.0 can have the type 129.
  ...([1, 2, 6, 7, 129].map((type) => [type, 1]) as [number, number][]),
  ...([3, 8].map((type) => [type, 2]) as [number, number][]),
  ...([4, 9, 11, 13].map((type) => [type, 4]) as [number, number][]),
  ...([5, 10, 12, 16, 17, 18].map((type) => [type, 8]) as [number, number][]),
])

/** The tag of directories of one picture each. */
const subDirectories = 330

const maxDirectories = 10_000
const maxEntries = 65_536

/** How numbers are stored. */
export interface TiffFormat {
  readonly isLittle: boolean
  readonly isBig: boolean
  readonly headerSize: number
  /** The position of the first directory. */
  readonly first: number
}

export interface TiffEntry {
  readonly tag: number
  readonly type: number
  /** The entry itself, and its position. */
  readonly bytes: Buffer
  readonly position: number
}

export interface TiffDirectory {
  readonly position: number
  readonly entries: readonly TiffEntry[]
  /** The position of the next directory; 0 if there is none. */
  readonly next: number
}

export async function readFormat(source: ByteSource): Promise<TiffFormat> {
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

/** All directories, also those in directories, each once. Throws UnreadableFile. */
export async function* directoriesOf(source: ByteSource, format: TiffFormat): AsyncGenerator<TiffDirectory> {
  const waiting = [format.first]
  const visited = new Set<number>()
  let [entries, links] = [0, 0]
  for (let position = waiting.pop(); position !== undefined; position = waiting.pop()) {
    if (position === 0 || visited.has(position)) continue
    if (visited.size >= maxDirectories) throw damaged('too many directories')
    visited.add(position)
    const directory = await readDirectory(source, format, position)
    entries += directory.entries.length
    if (entries > maxTable) throw damaged('too many entries')
    yield directory
    const inner = directory.entries.find(({ tag }) => tag === subDirectories)
    waiting.push(directory.next)
    if (!inner) continue
    links += placeOf(source, format, inner).count
    if (links > maxDirectories) throw damaged('too many directories')
    waiting.push(...(await readNumbers(source, format, inner)))
  }
  if (visited.size === 0) throw damaged('no directory')
}

/** Bytes of a position, of the number of entries, and of an entry. */
export const sizesOf = ({ isBig }: Pick<TiffFormat, 'isBig'>) =>
  isBig ? { pointer: 8, count: 8, entry: 20 } : { pointer: 4, count: 2, entry: 12 }

/** One directory. Throws UnreadableFile. */
export async function readDirectory(
  source: ByteSource,
  format: TiffFormat,
  position: number,
): Promise<TiffDirectory> {
  const sizes = sizesOf(format)
  const count = await readCount(source, format, position, maxEntries)
  const start = position + sizes.count
  const bytes = await source.read(start, count * sizes.entry + sizes.pointer)
  return {
    position,
    entries: entriesIn(format, bytes, { start, count }),
    next: numberAt(format, bytes, count * sizes.entry, sizes.pointer),
  }
}

/** The entries of a directory that are in the source, which may end before the directory does. Throws UnreadableFile. */
export async function readEntries(
  source: ByteSource,
  format: TiffFormat,
  position: number,
  limit: number,
): Promise<{ readonly entries: readonly TiffEntry[]; readonly isWhole: boolean }> {
  const sizes = sizesOf(format)
  const stated = await readCount(source, format, position, limit)
  const start = position + sizes.count
  const count = Math.min(stated, Math.floor((source.size - start) / sizes.entry))
  const bytes = await source.read(start, count * sizes.entry)
  return { entries: entriesIn(format, bytes, { start, count }), isWhole: count === stated }
}

async function readCount(
  source: ByteSource,
  format: TiffFormat,
  position: number,
  limit: number,
): Promise<number> {
  const { count: size } = sizesOf(format)
  const count = numberAt(format, await source.read(position, size), 0, size)
  if (count > limit) throw damaged('too many entries')
  return count
}

const entriesIn = (
  format: TiffFormat,
  bytes: Buffer,
  { start, count }: { readonly start: number; readonly count: number },
): TiffEntry[] => {
  const { entry: size } = sizesOf(format)
  return Array.from({ length: count }, (_, at) => {
    const entry = bytes.subarray(at * size, (at + 1) * size)
    const [tag, type] = [numberAt(format, entry, 0, 2), numberAt(format, entry, 2, 2)]
    return { tag, type, bytes: entry, position: start + at * size }
  })
}

/** Where the value of an entry is, and whether that is in the entry. Throws UnreadableFile. */
export function placeOf(
  source: ByteSource,
  format: TiffFormat,
  { type, bytes, position }: TiffEntry,
): { readonly range: Range; readonly count: number; readonly size: number; readonly isInline: boolean } {
  const { pointer } = sizesOf(format)
  const count = numberAt(format, bytes, 4, pointer)
  const size = typeSizes.get(type)
  if (size === undefined) throw damaged('a value of an unknown type')
  const isInline = count * size <= pointer
  const start = isInline ? position + 4 + pointer : numberAt(format, bytes, 4 + pointer, pointer)
  const end = start + count * size
  if (end > source.size) throw damaged('a value ends after the file')
  return { range: { start, end }, count, size, isInline }
}

/** The numbers of an entry, at most `limit`. */
export async function readNumbers(
  source: ByteSource,
  format: TiffFormat,
  entry: TiffEntry,
  limit = Number.POSITIVE_INFINITY,
): Promise<number[]> {
  const { range, count: total, size } = placeOf(source, format, entry)
  const count = Math.min(total, limit)
  if (count > maxTable) throw damaged('too many numbers')
  const bytes = await source.read(range.start, count * size)
  return Array.from({ length: count }, (_, at) => numberAt(format, bytes, at * size, size))
}

function numberAt(
  { isLittle }: Pick<TiffFormat, 'isLittle'>,
  bytes: Buffer,
  at: number,
  size: number,
): number {
  if (size === 8) {
    const value = isLittle ? bytes.readBigUInt64LE(at) : bytes.readBigUInt64BE(at)
    if (value > Number.MAX_SAFE_INTEGER) throw damaged('a number is too large')
    return Number(value)
  }
  return isLittle ? bytes.readUIntLE(at, size) : bytes.readUIntBE(at, size)
}

export const damaged = (what: string) => new UnreadableFile(`not a TIFF file: ${what}`)

/** The orientation in an Exif block (TIFF structure), 1 to 8; 1, the default, if there is none or the block is damaged. */
export function orientationOf(block: Buffer): number {
  const isPrefixed = block.toString('latin1', 0, exifPrefix.length) === exifPrefix
  const tiff = isPrefixed ? block.subarray(exifPrefix.length) : block
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  if (!isLittle && tiff.toString('latin1', 0, 2) !== 'MM') return 1
  const number = (at: number, size: number) =>
    isLittle ? tiff.readUIntLE(at, size) : tiff.readUIntBE(at, size)
  try {
    const directory = number(4, 4)
    const count = number(directory, 2)
    for (let entry = 0; entry < count; entry += 1) {
      const at = directory + 2 + entry * 12
      if (number(at, 2) !== orientationTag) continue
      const size = integerSizes.get(number(at + 2, 2))
      const value = size === undefined ? 1 : number(at + 8, size)
      return value >= 1 && value <= 8 ? value : 1
    }
  } catch {
    // The block ends before.
  }
  return 1
}

/** What precedes the TIFF structure in JPEG files, and in some WebP files. */
export const exifPrefix = 'Exif\0\0'

const orientationTag = 0x0112

/** Bytes of the integers that decoders accept for an orientation, by their types. Exif has SHORT (3); some programs write BYTE or LONG. */
const integerSizes: ReadonlyMap<number, number> = new Map([
  ...([1, 6].map((type) => [type, 1]) as [number, number][]),
  ...([3, 8].map((type) => [type, 2]) as [number, number][]),
  ...([4, 9].map((type) => [type, 4]) as [number, number][]),
])

/** An Exif block with the orientation and nothing else. */
export const orientationBlock = (orientation: number): Buffer =>
  Buffer.from([
    ...[0x4d, 0x4d, 0, 42, 0, 0, 0, 8],
    ...[0, 1, orientationTag >> 8, orientationTag & 0xff, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0],
    ...[0, 0, 0, 0],
  ])

/** An Exif block without entries. */
export const emptyBlock: Uint8Array = Buffer.from([0x4d, 0x4d, 0, 42, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0])
