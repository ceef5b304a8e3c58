import {
  applyEdits,
  type ByteSource,
  type Edit,
  gapsBetween,
  maxLiterals,
  maxTable,
  type Piece,
  type Range,
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
  let [literals, directories, pictures] = [0, 0, 0]
  for await (const directory of directoriesOf(source, format)) {
    directories += 1
    pictures = Math.max(pictures, await picturesOfImageJ(source, format, directory))
    if (directory.entries.some(({ tag }) => unsupported.has(tag))) throw damaged('an obsolete form of JPEG')
    const wanted = directory.entries.filter(({ tag }) => kept.has(tag))
    if (wanted.length === 0) throw damaged('a directory without a picture')
    const edit = directoryEdit(format, directory, wanted)
    edits.push(edit)
    literals += edit.end - edit.start
    for (const entry of wanted) {
      const { range, isInline } = placeOf(source, format, entry)
      if (!isInline) needed.push(range)
    }
    for (const range of await dataRanges(source, format, wanted)) needed.push(range)
    if (literals > maxLiterals || needed.length > maxTable) throw damaged('too many parts')
  }
  if (pictures > directories) throw damaged('pictures without directories')
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

/** The directory with only these entries. */
function directoryEdit(
  format: TiffFormat,
  { position, next }: TiffDirectory,
  entries: readonly TiffEntry[],
): Edit {
  const sizes = sizesOf(format)
  const bytes = Buffer.concat([
    encoded(format, entries.length, sizes.count),
    ...entries.map((entry) => entry.bytes),
    encoded(format, next, sizes.pointer),
  ])
  return { start: position, end: position + bytes.byteLength, bytes }
}

/** Where the pixels are. */
async function dataRanges(
  source: ByteSource,
  format: TiffFormat,
  entries: readonly TiffEntry[],
): Promise<Range[]> {
  const find = (tag: number) => entries.find((entry) => entry.tag === tag)
  const layout = await readLayout(source, format, entries)
  const ranges: Range[] = []
  for (const [positions, lengths] of [...dataTags, thumbnailTags]) {
    const [at, of] = [find(positions), find(lengths)]
    if (!at) continue
    const starts = await readNumbers(source, format, at)
    const stated = of ? await readNumbers(source, format, of, starts.length) : []
    for (const [index, start] of starts.entries()) {
      const length = stated[index] ?? 0
      if (start + length > source.size) throw damaged('pixels end after the file')
      // Writers leave a position out for pixels that are all zero.
      if (start === 0 && length === 0) continue
      const isThumbnail = positions === thumbnailTags[0]
      const computed = isThumbnail || layout === null ? null : partLength(layout, index)
      if (length === 0 && computed === null) throw damaged('pixels of unknown length')
      const end = Math.min(start + Math.max(length, computed ?? 0), source.size)
      ranges.push({ start, end })
    }
  }
  return ranges
}

/** How the bytes of uncompressed pixels are arranged in strips or tiles. */
interface Layout {
  readonly width: number
  readonly height: number
  readonly bits: number
  /** Samples of a pixel that are stored together. */
  readonly samples: number
  /** Rows of a strip or tile. */
  readonly rows: number
  /** Null for strips, which are as wide as the picture and end with it. */
  readonly tileWidth: number | null
  /** Pixels that share their colours, in both directions (YCbCr). */
  readonly subsampling: readonly [number, number] | null
}

/**
 * Null if the pixels are compressed: then their length cannot be computed. Decoders compute the length of uncompressed pixels from these tags,
 * because many scanners and cameras state a wrong one.
 */
async function readLayout(
  source: ByteSource,
  format: TiffFormat,
  entries: readonly TiffEntry[],
): Promise<Layout | null> {
  const numbers = async (tag: number, count: number): Promise<number[]> => {
    const entry = entries.find((each) => each.tag === tag)
    return entry ? readNumbers(source, format, entry, count) : []
  }
  const number = async (tag: number, otherwise: number) => (await numbers(tag, 1))[0] ?? otherwise
  const compression = await number(259, 1)
  // Decoders of this compression read up to the end of the file, whatever the lengths are.
  if (compression === 6 && entries.some(({ tag }) => tag === 273)) throw damaged('an obsolete form of JPEG')
  if (compression !== 1) return null
  const [width, height] = [await number(256, 0), await number(257, 0)]
  const samples = await number(277, 1)
  const isPlanar = (await number(284, 1)) === 2
  const tileWidth = await number(322, 0)
  const [horizontal = 2, vertical = 2] = await numbers(530, 2)
  const isSubsampled = (await number(262, 0)) === 6 && samples === 3 && !isPlanar
  return {
    ...{ width, height, bits: Math.max(1, ...(await numbers(258, 16))) },
    samples: isPlanar ? 1 : samples,
    rows: tileWidth > 0 ? await number(323, 0) : Math.min(await number(278, height), height),
    tileWidth: tileWidth > 0 ? tileWidth : null,
    subsampling: isSubsampled ? [horizontal, vertical] : null,
  }
}

/** Bytes of a strip or tile by its number. */
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
