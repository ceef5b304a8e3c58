import {
  type Box,
  BoxEdits,
  boxAt,
  childOf,
  childrenOf,
  dataOf,
  freeType,
  type LoadedBoxes,
  loadBox,
} from './boxes.ts'
import { planMovie } from './movie.ts'
import { isPictureList, planPictureItems } from './picture-items.ts'
import {
  applyEdits,
  type ByteSource,
  type Content,
  type Edit,
  gapsBetween,
  maxTable,
  type NeededRange,
  type Piece,
  type Range,
  UnreadableFile,
} from './pieces.ts'

/** Boxes of the file that have no metadata. */
const kept: ReadonlySet<string> = new Set(['ftyp', 'styp', 'sidx', 'ssix', 'mfra', 'pdin'])

/** Boxes without which no decoder shows or plays anything: of movies, their fragments, pictures, and pictures in the short form. */
const essential: ReadonlySet<string> = new Set(['moov', 'moof', 'meta', 'mini'])

/** Types of a box that may be a movie whose type was changed. */
const renamed: ReadonlySet<string> = new Set(['free', 'hoov'])
const movieChildren: ReadonlySet<string> = new Set(['mvhd', 'cmov'])

/** The brand of the RAW files of Canon (CR3). */
const rawBrand = 'crx '

/** Bytes of a box in memory. An hour of video has about 5 MB. */
const maxLoaded = 128 * 1024 * 1024

/** Bytes of the box of brands. */
const maxBrands = 65_536

const maxBoxes = 200_000

/**
 * An MP4, MOV, HEIC or AVIF file without metadata. Nothing moves: unknown boxes become free space, and bytes that no picture, frame or
 * sound uses become zeros. So all positions in the file stay right. What follows the last box that is needed is left out.
 */
export async function planBoxedFile(source: ByteSource): Promise<Piece[]> {
  const { boxes } = await topBoxes(source)
  const isFragmented = boxes.some(({ type }) => type === 'moof')
  const edits: Edit[] = []
  const needed: NeededRange[] = []
  const used = new Set<Box>()
  const add = (box: Box, content: Content) => {
    used.add(box)
    for (const edit of content.edits) edits.push(edit)
    for (const range of content.needed) needed.push(range)
  }

  for (const box of boxes) if (kept.has(box.type) || box.type === 'mdat') used.add(box)
  const movie = boxes.find(({ type }) => type === 'moov')
  const form = { isFragmented, isQuickTime: await hasQuickTimeBrand(source, boxes) }
  if (movie) {
    const loaded = await loadBox(source, movie, maxLoaded)
    add(movie, planMovie(loaded, movie, form))
    const defaults = readDefaultSizes(loaded, movie)
    const end = boxes.at(-1)?.end ?? 0
    for (const box of boxes) {
      if (box.type !== 'moof') continue
      const fragment = planFragment(await loadBox(source, box, maxLoaded), box, defaults)
      // The last data of a recording that was interrupted is no whole box, and is left out.
      add(box, { ...fragment, needed: fragment.needed.filter(({ start }) => start < end) })
      if (needed.length > maxTable) throw damaged('it has too many parts')
    }
  }
  const pictures = boxes.find(({ type }) => type === 'meta')
  const loaded = pictures && (await loadBox(source, pictures, maxLoaded))
  const hasPictures = pictures && loaded && isPictureList(loaded, pictures)
  if (hasPictures) add(pictures, await planPictureItems(source, loaded, pictures))
  if (!movie && !hasPictures) throw damaged('it has no movie and no pictures')

  const data = boxes.filter(({ type }) => type === 'mdat')
  const ranges = withinBoxes(needed, hasPictures ? [...data, pictures] : data)
  for (const gap of gapsInBoxes(ranges, data)) edits.push({ ...gap, bytes: null })
  for (const box of boxes) if (!used.has(box)) edits.push(...freed(box))
  return applyEdits(edits, boxes.findLast((box) => used.has(box))?.end ?? 0)
}

/** Whether a box of this type can be the first one that matters, also if it does not end in the file. */
export const isEssentialBox = (type: string): boolean => essential.has(type) || renamed.has(type)

/** Whether decoders read the file, from `position` on, as a movie or pictures, whatever its first boxes are. RAW files are none of these. */
export async function isBoxedFile(source: ByteSource, position: number): Promise<boolean> {
  const { boxes, rest } = await topBoxes(source, position)
  if ((await brandsOf(source, boxes)).includes(rawBrand)) return false
  // Decoders read a last box that is cut off.
  if (rest !== null && isEssentialBox(rest)) return true
  if (boxes.some(({ type }) => essential.has(type))) return true
  for (const { type, data, end } of boxes)
    if (renamed.has(type) && end - data >= 8) {
      const child = (await source.read(data, 8)).toString('latin1', 4)
      if (movieChildren.has(child)) return true
    }
  return false
}

/** Files without brands are older than those of ISO 14496-12. */
async function hasQuickTimeBrand(source: ByteSource, boxes: readonly Box[]): Promise<boolean> {
  const brands = await brandsOf(source, boxes)
  return brands.length === 0 || brands.includes('qt  ')
}

async function brandsOf(source: ByteSource, boxes: readonly Box[]): Promise<string[]> {
  const box = boxes.find(({ type }) => type === 'ftyp')
  if (!box) return []
  const { bytes } = await loadBox(source, box, maxBrands)
  const text = bytes.toString('latin1', box.data - box.start)
  return text.match(/.{1,4}/gs) ?? []
}

function freed({ type, start, data, end }: Box): Edit[] {
  const content = data < end ? [{ start: data, end, bytes: null }] : []
  return type === 'free' ? content : [{ start: start + 4, end: start + 8, bytes: freeType }, ...content]
}

/** The boxes of a file, and the type of what follows them if it is no whole box. Some cameras append a trailer that is no box. */
async function topBoxes(
  source: ByteSource,
  from = 0,
): Promise<{ readonly boxes: Box[]; readonly rest: string | null }> {
  const boxes: Box[] = []
  for (let position = from; position < source.size; ) {
    if (boxes.length >= maxBoxes) throw damaged('it has too many boxes')
    const header = await source.read(position, Math.min(16, source.size - position))
    const box = boxAt(header, position, source.size)
    if (box === null) return { boxes, rest: header.toString('latin1', 4, 8) }
    boxes.push(box)
    position = box.end
  }
  return { boxes, rest: null }
}

/** Requires that each range is in one of the boxes, unless it is empty. Open ranges are cut off at its end. Returns them in order. */
function withinBoxes(needed: readonly NeededRange[], boxes: readonly Box[]): Range[] {
  const places = boxes.toSorted((one, other) => one.start - other.start)
  let at = 0
  return needed
    .filter(({ start, end }) => start < end)
    .toSorted((one, other) => one.start - other.start)
    .map(({ start, end, isOpen = false }) => {
      while (at < places.length && start >= (places[at]?.end ?? 0)) at += 1
      const place = places[at]
      if (!place || start < place.data || (end > place.end && !isOpen))
        throw damaged('bytes of a picture or frame are not in it')
      return { start, end: Math.min(end, place.end) }
    })
}

/** The parts of the boxes that are in none of the ranges. Both are in the order of the file, and no range crosses the end of a box. */
function gapsInBoxes(ranges: readonly Range[], boxes: readonly Box[]): Range[] {
  let at = 0
  return boxes.flatMap(({ data, end }) => {
    while ((ranges[at]?.start ?? end) < data) at += 1
    const first = at
    while ((ranges[at]?.start ?? end) < end) at += 1
    return gapsBetween(ranges.slice(first, at), { start: data, end })
  })
}

const damaged = (what: string) => new UnreadableFile(`not a file of pictures, video or audio: ${what}`)

const keptInFragment: ReadonlySet<string> = new Set([
  ...['mfhd', 'traf', 'tfhd', 'tfdt', 'trun', 'sdtp', 'sbgp', 'sgpd', 'subs', 'saiz', 'saio', 'senc'],
])

/** Flags of `tfhd` and `trun` (ISO 14496-12, 8.8.7 and 8.8.8): which fields follow, and what positions count from. */
const hasBase = 0x1
const hasDescription = 0x2
const hasDefaultDuration = 0x8
const hasDefaultSize = 0x10
const countsFromFragment = 0x20000
const hasOffset = 0x1
const hasFirstFlags = 0x4
const hasDurations = 0x100
const hasSizes = 0x200
const hasFlags = 0x400
const hasTimes = 0x800

/** The size of samples of each track, by its id, unless a fragment states another one. */
type DefaultSizes = ReadonlyMap<number, number>

function readDefaultSizes(loaded: LoadedBoxes, movie: Box): DefaultSizes {
  const list = childOf(loaded, movie, 'mvex')
  const tracks = list ? childrenOf(loaded, list).filter(({ type }) => type === 'trex') : []
  return new Map(
    tracks.map((box) => {
      const data = requireLength(dataOf(loaded, box), 20)
      return [data.readUInt32BE(4), data.readUInt32BE(16)]
    }),
  )
}

/** A fragment of a movie without unknown boxes, and where its samples are. */
function planFragment(loaded: LoadedBoxes, fragment: Box, defaults: DefaultSizes): Content {
  const edits = new BoxEdits(loaded)
  const needed: Range[] = []
  for (const box of childrenOf(loaded, fragment)) {
    if (!keptInFragment.has(box.type)) edits.free(box)
    else edits.trim(box)
    if (box.type !== 'traf') continue
    const parts = childrenOf(loaded, box)
    for (const part of parts)
      if (keptInFragment.has(part.type)) edits.trim(part)
      else edits.free(part)
    const types = new Set(parts.map(({ type }) => type))
    if (types.has('saio') && !types.has('senc')) throw damagedFragment('keys are between its samples')
    const header = parts.find(({ type }) => type === 'tfhd')
    if (!header) throw damagedFragment('a fragment has no header')
    const track = readHeader(dataOf(loaded, header), defaults)
    // Without a position, the samples follow those of the track before.
    let position =
      track.base ?? (track.isFromFragment ? fragment.start : (needed.at(-1)?.end ?? fragment.start))
    const base = position
    for (const part of parts)
      if (part.type === 'trun') {
        const run = readRun(dataOf(loaded, part), track.size)
        const start = run.offset === null ? position : base + run.offset
        position = start + run.length
        needed.push({ start, end: position })
      }
  }
  return { edits: edits.edits, needed }
}

/** The position that the samples of a track count from, if it has one, and the size of samples. */
function readHeader(data: Buffer, defaults: DefaultSizes) {
  const flags = requireLength(data, 8).readUInt32BE(0) & 0xffffff
  let at = 8
  const field = (flag: number, size: number): number | null => {
    if ((flags & flag) === 0) return null
    at += size
    return at - size
  }
  const base = field(hasBase, 8)
  field(hasDescription, 4)
  field(hasDefaultDuration, 4)
  const size = field(hasDefaultSize, 4)
  requireLength(data, at)
  return {
    base: base === null ? null : Number(data.readBigUInt64BE(base)),
    isFromFragment: (flags & countsFromFragment) !== 0,
    size: size === null ? (defaults.get(data.readUInt32BE(4)) ?? 0) : data.readUInt32BE(size),
  }
}

/** The length of consecutive samples in bytes, and their position, if it is stated. */
function readRun(
  data: Buffer,
  defaultSize: number,
): { readonly offset: number | null; readonly length: number } {
  const flags = requireLength(data, 8).readUInt32BE(0) & 0xffffff
  const lengthOf = (...fields: readonly number[]) => 4 * fields.filter((flag) => (flags & flag) !== 0).length
  const first = 8 + lengthOf(hasOffset, hasFirstFlags)
  const entry = lengthOf(hasDurations, hasSizes, hasFlags, hasTimes)
  const count = data.readUInt32BE(4)
  requireLength(data, first + count * entry)
  const offset = (flags & hasOffset) === 0 ? null : data.readInt32BE(8)
  if ((flags & hasSizes) === 0) return { offset, length: count * defaultSize }
  let length = 0
  for (let at = first + lengthOf(hasDurations); at < first + count * entry; at += entry)
    length += data.readUInt32BE(at)
  return { offset, length }
}

function requireLength(data: Buffer, length: number): Buffer {
  if (data.byteLength < length) throw damagedFragment('a fragment is too short')
  return data
}

const damagedFragment = (what: string) => new UnreadableFile(`not a video: ${what}`)
