import { jpegEdits } from './jpeg.ts'
import {
  applyEdits,
  type ByteSource,
  type Edit,
  gapsBetween,
  maxLiterals,
  maxTable,
  type Piece,
  partOf,
  type Range,
  requireProfile,
  UnreadableFile,
} from './pieces.ts'
import {
  damaged,
  directoriesOf,
  placeOf,
  readFormat,
  readNumbers,
  sizesOf,
  type TiffDirectory,
  type TiffEntry,
  type TiffFormat,
} from './tiff-directory.ts'

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

/** The tag of the description of a picture, and the type of texts. */
const description = 270
const text = 2

/** Bytes of a description of ImageJ in which the number of pictures is searched. */
const maxDescription = 1_000

/** Pairs of tags: the positions of the pixels, and their lengths. */
const dataTags = [
  [273, 279],
  [324, 325],
] as const
/** The position and the length of a thumbnail, which is a JPEG file. */
const thumbnailTags = [513, 514] as const

/** Tables of an obsolete form of JPEG, of unknown length, which decoders find by their positions. */
const unsupported: ReadonlySet<number> = new Set([519, 520, 521])

/**
 * A TIFF or BigTIFF file in which everything is zero that no picture needs. Positions stay the same. The directories lose the other
 * entries. A RAW file stays as it is.
 */
export async function planTiff(source: ByteSource): Promise<Piece[]> {
  const format = await readFormat(source)
  if (await isRaw(source, format)) return [{ from: 0, to: source.size }]
  const needed: Range[] = [{ start: 0, end: format.headerSize }]
  const edits: Edit[] = []
  /** By their positions, because pictures can share their parts. */
  const jpegs = new Map<number, { readonly range: Range; readonly hasPicture: boolean }>()
  let [literals, directories, pictures] = [0, 0, 0]
  for await (const directory of directoriesOf(source, format)) {
    directories += 1
    pictures = Math.max(pictures, await picturesOfImageJ(source, format, directory))
    if (directory.entries.some(({ tag }) => unsupported.has(tag))) throw damaged('an obsolete form of JPEG')
    const wanted = directory.entries.filter(({ tag }) => kept.has(tag))
    if (wanted.length === 0) throw damaged('a directory without a picture')
    const edit = directoryEdit(source, format, directory, wanted)
    edits.push(edit)
    literals += edit.end - edit.start
    const layout = await readLayout(source, format, wanted)
    for (const entry of wanted) {
      const { range, count, size, isInline } = placeOf(source, format, entry)
      const used = Math.min(count, mostNumbers(entry.tag, layout))
      // Decoders disagree on them.
      if (used < count && perSample.has(entry.tag))
        throw damaged('a number for samples that it does not have')
      if (!isInline) needed.push({ start: range.start, end: range.start + used * size })
      if (entry.tag === colourProfile) requireProfile(await source.read(range.start, range.end - range.start))
      if (entry.tag === jpegTables && !isInline) jpegs.set(range.start, { range, hasPicture: false })
    }
    for (const { range, isJpeg } of await dataRanges(source, format, wanted, layout)) {
      needed.push(range)
      if (isJpeg) jpegs.set(range.start, { range, hasPicture: true })
    }
    if (literals > maxLiterals || needed.length > maxTable) throw damaged('too many parts')
  }
  if (pictures > directories) throw damaged('pictures without directories')
  for (const { range, hasPicture } of jpegs.values())
    for (const { start, end } of await jpegEdits(partOf(source, range), hasPicture))
      edits.push({ start: range.start + start, end: range.start + end, bytes: null })
  const end = [...needed, ...edits].reduce((last, range) => Math.max(last, range.end), 0)
  const gaps = gapsBetween([...needed, ...edits], { start: 0, end })
  return applyEdits([...edits, ...gaps.map((gap) => ({ ...gap, bytes: null }))], end)
}

/** The number of pictures of a stack, which ImageJ writes after each other with one directory; 0 for other files. */
async function picturesOfImageJ(
  source: ByteSource,
  format: TiffFormat,
  { entries }: TiffDirectory,
): Promise<number> {
  const entry = entries.find(({ tag, type }) => tag === description && type === text)
  if (!entry) return 0
  const { start, end } = placeOf(source, format, entry).range
  const value = (await source.read(start, Math.min(end - start, maxDescription))).toString('latin1')
  return value.startsWith('ImageJ=') ? Number(/^images=(\d+)/m.exec(value)?.[1] ?? 0) : 0
}

/** The directory with only these entries, without what follows short values in them. */
function directoryEdit(
  source: ByteSource,
  format: TiffFormat,
  { position, next }: TiffDirectory,
  entries: readonly TiffEntry[],
): Edit {
  const sizes = sizesOf(format)
  const bytes = Buffer.concat([
    encoded(format, entries.length, sizes.count),
    ...entries.map((entry) => {
      const { range, isInline } = placeOf(source, format, entry)
      return isInline ? Buffer.from(entry.bytes).fill(0, range.end - entry.position) : entry.bytes
    }),
    encoded(format, next, sizes.pointer),
  ])
  return { start: position, end: position + bytes.byteLength, bytes }
}

/** Where the pixels are, and whether they are a JPEG file. */
async function dataRanges(
  source: ByteSource,
  format: TiffFormat,
  entries: readonly TiffEntry[],
  layout: Layout,
): Promise<{ readonly range: Range; readonly isJpeg: boolean }[]> {
  const find = (tag: number) => entries.find((entry) => entry.tag === tag)
  const ranges: { readonly range: Range; readonly isJpeg: boolean }[] = []
  for (const [positions, lengths] of [...dataTags, thumbnailTags]) {
    const [at, of] = [find(positions), find(lengths)]
    if (!at) continue
    const isThumbnail = positions === thumbnailTags[0]
    const starts = await readNumbers(source, format, at, isThumbnail ? 1 : layout.parts)
    const stated = of ? await readNumbers(source, format, of, starts.length) : []
    for (const [index, start] of starts.entries()) {
      const length = stated[index] ?? 0
      if (start + length > source.size) throw damaged('pixels end after the file')
      // Writers leave a position out for pixels that are all zero.
      if (start === 0 && length === 0) continue
      const computed = isThumbnail || layout.compression !== uncompressed ? null : partLength(layout, index)
      if (length === 0 && computed === null) throw damaged('pixels of unknown length')
      // Programs disagree on the length of pixels that share their colours.
      const used = layout.subsampling === null ? (computed ?? length) : Math.max(length, computed ?? 0)
      const range = { start, end: Math.min(start + used, source.size) }
      ranges.push({ range, isJpeg: isThumbnail || layout.compression === jpeg })
    }
  }
  return ranges
}

/** Compressions. */
const [uncompressed, obsoleteJpeg, jpeg] = [1, 6, 7]

const colourProfile = 34675

/** The tables of the JPEG files in which the pixels are. */
const jpegTables = 347

/** How pixels are arranged in strips or tiles. */
interface Layout {
  readonly compression: number
  readonly width: number
  readonly height: number
  readonly bits: number
  /** Samples of a pixel, and those that are stored together. */
  readonly allSamples: number
  readonly samples: number
  /** Rows of a strip or tile. */
  readonly rows: number
  /** Null for strips, which are as wide as the picture and end with it. */
  readonly tileWidth: number | null
  /** Strips or tiles. */
  readonly parts: number
  /** Pixels that share their colours, in both directions (YCbCr). */
  readonly subsampling: readonly [number, number] | null
}

/** Decoders compute the length of uncompressed pixels from these tags, because many scanners and cameras state a wrong one. */
async function readLayout(
  source: ByteSource,
  format: TiffFormat,
  entries: readonly TiffEntry[],
): Promise<Layout> {
  const numbers = async (tag: number, count: number): Promise<number[]> => {
    const entry = entries.find((each) => each.tag === tag)
    return entry ? readNumbers(source, format, entry, count) : []
  }
  const number = async (tag: number, otherwise: number) => (await numbers(tag, 1))[0] ?? otherwise
  const compression = await number(259, uncompressed)
  // Decoders of this compression read up to the end of the file, whatever the lengths are.
  if (compression === obsoleteJpeg && entries.some(({ tag }) => tag === 273))
    throw damaged('an obsolete form of JPEG')
  const [width, height] = [await number(256, 0), await number(257, 0)]
  const allSamples = await number(277, 1)
  const isPlanar = (await number(284, 1)) === 2
  const tileWidth = await number(322, 0)
  const [horizontal = 2, vertical = 2] = await numbers(530, 2)
  const isSubsampled = (await number(262, 0)) === 6 && allSamples === 3 && !isPlanar
  const rows = tileWidth > 0 ? await number(323, 0) : Math.min(await number(278, height), height)
  const columns = tileWidth > 0 ? Math.ceil(width / tileWidth) : 1
  const parts = columns * Math.ceil(height / rows) * (isPlanar ? allSamples : 1)
  return {
    ...{ compression, width, height, bits: Math.max(1, ...(await numbers(258, 16))), allSamples },
    samples: isPlanar ? 1 : allSamples,
    ...{ rows, tileWidth: tileWidth > 0 ? tileWidth : null },
    parts: parts > 0 ? parts : Number.POSITIVE_INFINITY,
    subsampling: isSubsampled ? [horizontal, vertical] : null,
  }
}

/** Tags of one number, and those with a number for each sample. */
const singles: ReadonlySet<number> = new Set([
  ...[254, 255, 256, 257, 259, 262, 263, 264, 265, 266, 274, 277, 278, 282, 283, 284, 286, 287, 290],
  ...[292, 293, 296, 317, 322, 323, 328, 332, 334, 512, 513, 514, 515, 531],
])
const perSample: ReadonlySet<number> = new Set([258, 280, 281, 338, 339, 340, 341])
const several: ReadonlyMap<number, number> = new Map([
  ...([297, 318, 321, 336, 530].map((tag) => [tag, 2]) as [number, number][]),
  ...([529].map((tag) => [tag, 3]) as [number, number][]),
  ...([319, 342, 532].map((tag) => [tag, 6]) as [number, number][]),
])
/** Tables with a number for each value of a sample, and of each colour. */
const tables: ReadonlyMap<number, number> = new Map([
  [291, 1],
  [301, 3],
  [320, 3],
])

/** How many numbers of a tag decoders use at most. */
function mostNumbers(tag: number, { allSamples, bits, parts }: Layout): number {
  if (singles.has(tag)) return 1
  if (perSample.has(tag)) return Math.max(1, allSamples)
  if (dataTags.some((tags) => tags.some((each) => each === tag))) return parts
  const colours = tables.get(tag)
  return colours === undefined ? (several.get(tag) ?? Number.POSITIVE_INFINITY) : colours * 2 ** bits
}

/** Bytes of an uncompressed strip or tile by its number. */
function partLength(layout: Layout, index: number): number {
  const { height, bits, samples, tileWidth, subsampling } = layout
  const width = tileWidth ?? layout.width
  const strips = layout.rows > 0 ? Math.ceil(height / layout.rows) : 1
  const rows =
    tileWidth === null ? Math.min(layout.rows, height - (index % strips) * layout.rows) : layout.rows
  if (subsampling === null) return Math.ceil((width * bits * samples) / 8) * rows
  const [horizontal, vertical] = subsampling.map((size) => Math.max(size, 1)) as [number, number]
  const blocks = Math.ceil(width / horizontal) * Math.ceil(rows / vertical)
  return Math.ceil((blocks * (horizontal * vertical + 2) * bits) / 8)
}

function encoded({ isLittle }: TiffFormat, value: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  if (size === 8) {
    if (isLittle) bytes.writeBigUInt64LE(BigInt(value))
    else bytes.writeBigUInt64BE(BigInt(value))
  } else if (isLittle) bytes.writeUIntLE(value, 0, size)
  else bytes.writeUIntBE(value, 0, size)
  return bytes
}

/** What follows the header of files of Phase One and Canon. */
const markers: ReadonlySet<string> = new Set(['IIII', 'MMMM', 'CR\x02\x00'])

/** Tags, and those of their values that only RAW files have; null for all values. */
const rawValues: ReadonlyMap<number, ReadonlySet<number> | null> = new Map([
  // Compressions: Kodak, Sony, packed, Samsung, Nikon, lossy DNG, JPEG XL in DNG, Pentax.
  [259, new Set([262, 32767, 32769, 32770, 32772, 32867, 34713, 34892, 52546, 65000, 65535])],
  // Colours: of a filter on the sensor, and linear.
  [262, new Set([32803, 34892])],
  // The version of DNG.
  [50706, null],
])

const extensions: ReadonlySet<string> = new Set([
  ...[
    '3fr',
    'ari',
    'arw',
    'bay',
    'cap',
    'cr2',
    'dcr',
    'dng',
    'eip',
    'erf',
    'fff',
    'gpr',
    'iiq',
    'k25',
    'kdc',
  ],
  ...[
    'mdc',
    'mef',
    'mos',
    'mrw',
    'nef',
    'nrw',
    'orf',
    'pef',
    'ptx',
    'raw',
    'rw2',
    'rwl',
    'sr2',
    'srf',
    'srw',
  ],
])

/** Whether RAW files have the extension. Those that have the structure of TIFF are often detected as TIFF. */
export const isRawExtension = (extension: string | null): boolean =>
  extension !== null && extensions.has(extension.toLowerCase())

/** Whether a file with the structure of TIFF is a RAW file, whose private tags are needed to show it. */
async function isRaw(source: ByteSource, format: TiffFormat): Promise<boolean> {
  try {
    if (markers.has((await source.read(8, 4)).toString('latin1'))) return true
    for await (const { entries } of directoriesOf(source, format))
      for (const entry of entries) {
        const values = rawValues.get(entry.tag)
        if (values === null) return true
        if (values === undefined) continue
        const [value] = await readNumbers(source, format, entry, 1)
        if (value !== undefined && values.has(value)) return true
      }
  } catch (error) {
    // The plan reports the damage.
    if (!(error instanceof UnreadableFile || error instanceof RangeError)) throw error
  }
  return false
}
