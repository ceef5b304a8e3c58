import {
  applyEdits,
  type ByteSource,
  type Edit,
  gapsBetween,
  maxLiterals,
  maxTable,
  type Piece,
  type Range,
} from './pieces.ts'
import { isRaw } from './raw-tiff.ts'
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
  [513, 514],
] as const

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
  const ranges: Range[] = []
  for (const [positions, lengths] of dataTags) {
    const [at, of] = [positions, lengths].map((tag) => entries.find((entry) => entry.tag === tag))
    if (!at) continue
    if (!of) throw damaged('pixels of unknown length')
    const starts = await readNumbers(source, format, at)
    const sizes = await readNumbers(source, format, of, starts.length)
    for (const [index, start] of starts.entries()) {
      const length = sizes[index]
      if (length === undefined || start + length > source.size) throw damaged('pixels end after the file')
      ranges.push({ start, end: start + length })
    }
  }
  return ranges
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
