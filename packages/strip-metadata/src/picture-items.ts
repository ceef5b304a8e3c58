import { type Box, BoxEdits, childrenOf, dataOf, type LoadedBoxes } from './boxes.ts'
import { jpegEdits } from './jpeg.ts'
import {
  type ByteSource,
  type Content,
  type Edit,
  gapsBetween,
  partOf,
  type Range,
  requireProfile,
  UnreadableFile,
} from './pieces.ts'
import { emptyBlock } from './tiff-directory.ts'

/** The boxes of a list of pictures that are kept. Those of the properties are in another list. */
const kept: ReadonlySet<string> = new Set([
  ...['hdlr', 'pitm', 'iinf', 'iloc', 'iref', 'iprp', 'idat', 'grpl', 'ipro'],
])

/** The kinds of items that are pictures. All others are metadata: `Exif`, `mime` (XMP), `uri `. */
const pictureKinds: ReadonlySet<string> = new Set([
  ...['hvc1', 'hev1', 'av01', 'avc1', 'vvc1', 'jpeg', 'j2k1', 'unci', 'lhv1', 'lhe1', 'evc1', 'jxl1'],
  ...['grid', 'iovl', 'iden', 'tmap', 'tili', 'mski'],
])

/** The properties that decide how pictures look. Others are, for example, names, tags and times. */
const keptProperties: ReadonlySet<string> = new Set([
  ...['ispe', 'pixi', 'colr', 'pasp', 'clap', 'irot', 'imir', 'auxC', 'rloc', 'rref', 'iscl', 'lsel', 'tols'],
  ...['hvcC', 'av1C', 'avcC', 'vvcC', 'lhvC', 'j2kH', 'evcC', 'a1op', 'a1lx', 'oinf', 'prfr', 'cmpd'],
  ...['uncC', 'cmpC', 'icef', 'splz', 'cpat', 'clli', 'mdcv', 'cclv', 'amve', 'reve', 'ndwt', 'hdrg', 'ster'],
])

/** Kinds of colours that are a profile. */
const profileKinds: ReadonlySet<string> = new Set(['prof', 'rICC'])

const xmpType = 'application/rdf+xml'
const emptyXmp = Buffer.from('<x:xmpmeta xmlns:x="adobe:ns:meta/"/>')
const emptyExif = Buffer.concat([Buffer.alloc(4), emptyBlock])

/** What follows in a packet of XMP; zeros in a longer one. */
const spaces = Buffer.alloc(65_536, ' ')

/** Whether a `meta` box of the file lists pictures. Others are metadata. */
export function isPictureList(loaded: LoadedBoxes, list: Box): boolean {
  try {
    const handler = childrenOf(loaded, list, 4).find(({ type }) => type === 'hdlr')
    return handler !== undefined && dataOf(loaded, handler).toString('latin1', 8, 12) === 'pict'
  } catch {
    // QuickTime has another form of this box.
    return false
  }
}

/**
 * Removes the metadata of HEIC and AVIF pictures: the content of all items that are no pictures, names, unknown properties, and the metadata
 * in pictures that are JPEG files.
 */
export async function planPictureItems(source: ByteSource, loaded: LoadedBoxes, list: Box): Promise<Content> {
  const edits = new BoxEdits(loaded)
  const boxes = new Map(childrenOf(loaded, list, 4).map((box) => [box.type, box]))
  if (boxes.size < childrenOf(loaded, list, 4).length) throw damaged('it has a box twice')
  for (const box of boxes.values())
    if (kept.has(box.type)) edits.trim(box)
    else edits.free(box)
  const [information, locations, data = null] = ['iinf', 'iloc', 'idat'].map((type) => boxes.get(type))
  if (!information || !locations) throw damaged('it has no items')
  const [handler, properties] = [boxes.get('hdlr'), boxes.get('iprp')]
  if (handler) edits.clear({ start: handler.data + 12, end: handler.end })
  if (properties) cleanProperties(loaded, edits, properties)

  const items = readItems(loaded, edits, information)
  const { places, length } = readItemPlaces(dataOf(loaded, locations), data, source.size)
  edits.clear({ start: locations.data + length, end: locations.end })
  const pictures: Range[] = []
  const jpegs = new Map<string, Range>()
  const others: OtherItem[] = []
  for (const [id, ranges] of places) {
    const { kind, isXmp } = items.get(id) ?? { kind: '', isXmp: false }
    if (!pictureKinds.has(kind))
      for (const { start, end } of ranges) {
        if (start < end) others.push({ start, end, kind, isXmp })
      }
    else if (ranges.some(({ start, end }) => start === end)) throw damaged('a picture has no length')
    else if (kind !== 'jpeg') pictures.push(...ranges)
    else for (const range of ranges) jpegs.set(`${range.start} ${range.end}`, range)
    if (kind === 'jpeg' && ranges.length > 1) throw damaged('a JPEG picture is in parts')
  }
  if (pictures.length + jpegs.size === 0) throw damaged('it has no pictures')
  // Without overlaps, what is read and cleared is not longer than the file.
  requireApart(pictures, [...others, ...jpegs.values()])
  const cleared = others.flatMap(emptied)
  for (const range of jpegs.values())
    for (const { start, end, bytes } of await jpegEdits(partOf(source, range)))
      cleared.push({ start: range.start + start, end: range.start + end, bytes })
  const needed = [...pictures, ...jpegs.values(), ...others]
  const unused = data === null ? [] : gapsBetween(needed, { start: data.data, end: data.end })
  for (const gap of unused) edits.clear(gap)
  return { edits: [...edits.edits, ...cleared], needed }
}

/** The items that are no pictures, and where their parts are. */
export function findMetadataItems(
  loaded: LoadedBoxes,
  list: Box,
  fileSize: number,
): (Item & { readonly ranges: readonly Range[] })[] {
  const boxes = new Map(childrenOf(loaded, list, 4).map((box) => [box.type, box]))
  const [information, locations, data = null] = ['iinf', 'iloc', 'idat'].map((type) => boxes.get(type))
  if (!information || !locations) return []
  const items = readItems(loaded, new BoxEdits(loaded), information)
  const { places } = readItemPlaces(dataOf(loaded, locations), data, fileSize)
  return [...places].flatMap(([id, ranges]) => {
    const item = items.get(id)
    return item && !pictureKinds.has(item.kind) ? [{ ranges, ...item }] : []
  })
}

interface Item {
  readonly kind: string
  readonly isXmp: boolean
}

/** The items by their ids. Clears their names. */
function readItems(loaded: LoadedBoxes, edits: BoxEdits, information: Box): Map<number, Item> {
  const items = new Map<number, Item>()
  const version = dataOf(loaded, information)[0] ?? 0
  for (const box of childrenOf(loaded, information, version === 0 ? 6 : 8)) {
    const entry = dataOf(loaded, box)
    const entryVersion = entry[0] ?? 0
    if (box.type !== 'infe' || entryVersion < 2 || entryVersion > 3)
      throw damaged('an item has an unknown form')
    const idSize = entryVersion === 2 ? 2 : 4
    const name = 4 + idSize + 2 + 4
    if (entry.byteLength < name) throw damaged('an item is too short')
    const kind = entry.toString('latin1', name - 4, name)
    const nameEnd = entry.indexOf(0, name)
    if (nameEnd > name) edits.replace(box.data + name, Buffer.alloc(nameEnd - name, ' '))
    // Only these kinds have texts behind their name.
    if (nameEnd >= 0 && kind !== 'mime' && kind !== 'uri ')
      edits.clear({ start: box.data + nameEnd + 1, end: box.end })
    const isXmp = kind === 'mime' && nameEnd >= 0 && entry.toString('latin1', nameEnd + 1).startsWith(xmpType)
    items.set(entry.readUIntBE(4, idSize), { kind, isXmp })
  }
  return items
}

/** A part of an item that is no picture. */
interface OtherItem extends Range, Item {}

/** Content of the same length that says nothing: readers of pictures refuse Exif items without a header. */
function emptied({ start, end, kind, isXmp }: OtherItem): Edit[] {
  const content = kind === 'Exif' ? emptyExif : isXmp ? emptyXmp : Buffer.alloc(0)
  const rest = content.byteLength <= end - start ? start + content.byteLength : start
  const bytes = isXmp && end - rest <= spaces.byteLength ? spaces.subarray(0, end - rest) : null
  return [
    { start, end: rest, bytes: content },
    { start: rest, end, bytes },
  ].filter((edit) => edit.start < edit.end)
}

/** Turns unknown properties into free space. They keep their places, because other boxes refer to them by number. */
function cleanProperties(loaded: LoadedBoxes, edits: BoxEdits, properties: Box): void {
  for (const box of childrenOf(loaded, properties)) {
    if (box.type === 'ipma') edits.trim(box)
    else if (box.type !== 'ipco') edits.free(box)
    else
      for (const property of childrenOf(loaded, box)) {
        // The first part of a JPEG file, without which its metadata cannot be found.
        if (property.type === 'jpgC') throw damaged('a JPEG picture is in parts')
        if (!keptProperties.has(property.type)) edits.free(property)
        else edits.trim(property)
        const data = dataOf(loaded, property)
        if (property.type === 'colr' && profileKinds.has(data.toString('latin1', 0, 4)))
          requireProfile(data.subarray(4))
      }
  }
}

function requireApart(pictures: readonly Range[], cleared: readonly Range[]): void {
  const sorted = [
    ...pictures.map((range) => ({ range, isPicture: true })),
    ...cleared.map((range) => ({ range, isPicture: false })),
  ].toSorted((one, other) => one.range.start - other.range.start)
  const ends = { pictures: 0, cleared: 0 }
  for (const { range, isPicture } of sorted) {
    if (range.start < (isPicture ? ends.cleared : Math.max(ends.pictures, ends.cleared)))
      throw damaged('a picture and its metadata overlap')
    if (isPicture) ends.pictures = Math.max(ends.pictures, range.end)
    else ends.cleared = range.end
  }
}

const damaged = (what: string) => new UnreadableFile(`not a file of pictures: ${what}`)

/** Where the bytes of each item are, by its id. Items that consist of parts of other items have none. */
type ItemPlaces = ReadonlyMap<number, readonly Range[]>

/** Bytes in the file, in the box `idat`, and in other items. */
const inFile = 0
const inDataBox = 1
const inItems = 2

const maxExtents = 100_000

/** Reads the box `iloc`, and how many of its bytes are used. Throws UnreadableFile. */
function readItemPlaces(
  table: Buffer,
  data: Box | null,
  fileSize: number,
): { readonly places: ItemPlaces; readonly length: number } {
  const places = new Map<number, Range[]>()
  let position = 0
  const number = (size: number): number => {
    const start = position
    position += size
    if (position > table.byteLength) throw damagedPlaces()
    if (size === 0) return 0
    if (size !== 8) return table.readUIntBE(start, size)
    const value = table.readBigUInt64BE(start)
    if (value > Number.MAX_SAFE_INTEGER) throw damagedPlaces()
    return Number(value)
  }
  const version = number(1)
  if (version > 2) throw damagedPlaces()
  position = 4
  const [sizes, moreSizes] = [number(1), number(1)]
  const [offsetSize, lengthSize, baseSize] = [sizes >> 4, sizes & 15, moreSizes >> 4]
  const indexSize = version === 0 ? 0 : moreSizes & 15
  if (![offsetSize, lengthSize, baseSize, indexSize].every((size) => [0, 4, 8].includes(size)))
    throw damagedPlaces()
  const idSize = version === 2 ? 4 : 2
  let count = 0
  for (let items = number(idSize); items > 0; items -= 1) {
    const id = number(idSize)
    const method = version === 0 ? inFile : number(2) & 15
    if (number(2) !== 0) throw new UnreadableFile('bytes of a picture are in another file')
    const base = number(baseSize)
    const ranges: Range[] = []
    for (let extents = number(2); extents > 0; extents -= 1) {
      count += 1
      if (count > maxExtents) throw damagedPlaces()
      number(indexSize)
      const offset = base + number(offsetSize)
      const length = number(lengthSize)
      if (method === inItems) continue
      if (method !== inFile && method !== inDataBox) throw damagedPlaces()
      const start = method === inFile ? offset : (data?.data ?? fileSize) + offset
      const limit = method === inFile ? fileSize : (data?.end ?? 0)
      if (start + length > limit) throw damagedPlaces()
      ranges.push({ start, end: start + length })
    }
    if (places.has(id)) throw damagedPlaces()
    places.set(id, ranges)
  }
  return { places, length: position }
}

const damagedPlaces = () => new UnreadableFile('not a file of pictures: the table of its items is damaged')
