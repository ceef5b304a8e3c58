import { type Box, loadBox } from './boxes.ts'
import { hasExifPrefix, searchExif } from './exif-times.ts'
import { jpegPartsOf, startOfScan } from './jpeg.ts'
import { boxesOf, searchMovie } from './movie-times.ts'
import { findMetadataItems, isPictureList } from './picture-items.ts'
import { type ByteSource, createMemorySource, partOf, type Range, UnreadableFile } from './pieces.ts'
import type { RemovableFormat } from './plan-removal.ts'
import { searchPng } from './png-times.ts'
import { type SearchLimits, searchXmp, TimeSearch } from './time-search.ts'
import type { TakenTime } from './time-text.ts'

/** What a file states about the time at which it was taken. */
export interface TakenReading {
  /** Null if it is unknown. */
  readonly taken: TakenTime | null
  /** Why a part that may state a time could not be read; null if all of them were read. */
  readonly fault: string | null
}

/** These keep a hostile file from taking more than some milliseconds, so that a server can read it between requests. */
const quickLimits: SearchLimits = { parts: 2_000, loaded: 256 * 1024, items: 8, followsPixels: false }

/** As much as a plan follows to remove the metadata. */
const fullLimits: SearchLimits = {
  ...{ parts: 1_000_000, loaded: 16 * 1024 * 1024, items: 1_000, followsPixels: true },
}

/** Boxes with which files of boxes begin. */
const firstBoxes: ReadonlySet<string> = new Set(['ftyp', 'moov', 'mdat', 'wide', 'free', 'skip', 'pnot'])

const signatures = {
  jpeg: /^\xff\xd8\xff/,
  png: /^\x89PNG\r\n/,
  webp: /^RIFF.{4}WEBP/s,
  tiff: /^(?:II[*+]\0|MM\0[*+])/,
} as const

function formatOf(head: Uint8Array): RemovableFormat | null {
  const start = Buffer.from(head.subarray(0, 12)).toString('latin1')
  for (const format of ['jpeg', 'png', 'webp', 'tiff'] as const)
    if (signatures[format].test(start)) return format
  return firstBoxes.has(start.slice(4, 8)) ? 'boxes' : null
}

/** False if `readTakenTime` finds nothing in a file that begins with these bytes. */
export const mayHaveTakenTime = (head: Uint8Array): boolean => formatOf(head) !== null

const searches: Readonly<Record<RemovableFormat, (source: ByteSource, search: TimeSearch) => Promise<void>>> =
  {
    jpeg: searchJpeg,
    png: searchPng,
    webp: searchWebp,
    tiff: searchExif,
    boxes: searchBoxes,
  }

/**
 * Reads when the picture or the video was taken. `now` is in milliseconds since 1970: later times than a day after it are none, as are times
 * before 1826, and the zeros of clocks that were never set. Without `format`, only the parts of the file are searched that have the time in
 * nearly all files. With the format that `planRemoval` returns, all are. Throws only what `source` throws.
 */
export async function readTakenTime(
  source: ByteSource,
  now: number,
  format?: RemovableFormat,
): Promise<TakenReading> {
  const search = new TimeSearch(now, format === undefined ? quickLimits : fullLimits)
  await search.attempt(async () => {
    const found = format ?? formatOf(await source.read(0, Math.min(12, source.size)))
    if (found !== null) await searches[found](source, search)
  })
  return { taken: search.best, fault: search.fault }
}

const xmpPrefix = 'http://ns.adobe.com/xap/1.0/\0'
const extensionPrefix = 'http://ns.adobe.com/xmp/extension/\0'
/** Characters of the identifier of an extension, which its length and the position of a part follow. */
const identifierLength = 32
const extensionHeader = extensionPrefix.length + identifierLength + 8

/** Bytes of a JPEG file that are searched for a marker at a time. Those of a fill before it are few. */
const markerRead = 4_096

async function searchJpeg(source: ByteSource, search: TimeSearch): Promise<void> {
  let parts = 0
  let identifier: string | undefined
  const extension: Range[] = []
  const readSome = (position: number) =>
    source.read(position, Math.max(1, Math.min(markerRead, source.size - position)))
  for await (const { marker, data, end } of jpegPartsOf({ ...source, readSome })) {
    parts += 1
    if (marker === startOfScan) break
    if (parts > search.limits.parts) throw new UnreadableFile('it has too many segments')
    if (marker !== 0xe1) continue
    const start = (await source.read(data, Math.min(extensionHeader, end - data))).toString('latin1')
    await search.attempt(async () => {
      if (hasExifPrefix(start)) await searchExif(partOf(source, { start: data, end }), search)
      else if (start.startsWith(xmpPrefix)) {
        const packet = { start: data + xmpPrefix.length, end }
        identifier ??= (await searchXmp(source, packet, search)).get('extension')
      } else if (start.startsWith(extensionPrefix)) extension.push({ start: data, end })
    })
  }
  if (identifier !== undefined && extension.length > 0)
    await searchExtension(source, { identifier, parts: extension }, search)
}

/** The rest of a packet of XMP that does not fit into a segment (XMP, part 3, 1.1.3.1). */
async function searchExtension(
  source: ByteSource,
  { identifier, parts }: { readonly identifier: string; readonly parts: readonly Range[] },
  search: TimeSearch,
): Promise<void> {
  const found: { readonly at: number; readonly bytes: Buffer }[] = []
  let size = 0
  for (const { start, end } of parts) {
    const bytes = await source.read(start, end - start)
    if (bytes.byteLength < extensionHeader) continue
    if (bytes.toString('latin1', extensionPrefix.length, extensionHeader - 8) !== identifier) continue
    size += bytes.byteLength
    if (size > search.limits.loaded) throw new UnreadableFile('its XMP is too long')
    found.push({ at: bytes.readUInt32BE(extensionHeader - 4), bytes: bytes.subarray(extensionHeader) })
  }
  const packet = Buffer.concat(found.toSorted((one, other) => one.at - other.at).map(({ bytes }) => bytes))
  await searchXmp(createMemorySource(packet), { start: 0, end: packet.byteLength }, search)
}

async function searchWebp(source: ByteSource, search: TimeSearch): Promise<void> {
  let position = 12
  for (let parts = 0; position + 8 <= source.size; parts += 1) {
    if (parts >= search.limits.parts) throw new UnreadableFile('it has too many chunks')
    const header = await source.read(position, 8)
    const [start, type] = [position + 8, header.toString('latin1', 0, 4)]
    const end = start + header.readUInt32LE(4)
    await search.attempt(async () => {
      if (type === 'EXIF') await searchExif(partOf(source, { start, end }), search)
      if (type === 'XMP ') await searchXmp(source, { start, end }, search)
    })
    position = end + (end % 2)
  }
}

// Files of boxes (ISO 14496-12).

/** The identifier of the box of XMP (XMP, part 3, 1.1.4). */
const xmpBox = 'be7acfcb97a942e89c71999491e3afac'
const identifierSize = 16

async function searchBoxes(source: ByteSource, search: TimeSearch): Promise<void> {
  const visited = new Set<string>()
  for await (const box of boxesOf(source, { start: 0, end: source.size }, search.limits.parts)) {
    if (box.type === 'uuid') await search.attempt(() => searchExtendedBox(source, box, search))
    // Decoders read the first one of each type.
    if (visited.has(box.type)) continue
    visited.add(box.type)
    if (box.type === 'moov') await search.attempt(() => searchMovie(source, box, search))
    if (box.type === 'meta') await search.attempt(() => searchPictures(source, box, search))
  }
}

async function searchExtendedBox(source: ByteSource, { data, end }: Box, search: TimeSearch): Promise<void> {
  if (end - data < identifierSize || (await source.read(data, identifierSize)).toString('hex') !== xmpBox)
    return
  await searchXmp(source, { start: data + identifierSize, end }, search)
}

async function searchPictures(source: ByteSource, list: Box, search: TimeSearch): Promise<void> {
  const loaded = await loadBox(source, list, search.limits.loaded)
  if (!isPictureList(loaded, list)) return
  const items = findMetadataItems(loaded, list, source.size).filter(
    ({ kind, isXmp }) => isXmp || kind === 'Exif',
  )
  for (const { ranges, isXmp } of items.slice(0, search.limits.items))
    await search.attempt(async () => {
      const item = await joined(source, ranges, search.limits.loaded)
      if (isXmp) await searchXmp(item, { start: 0, end: item.size }, search)
      else await searchExif(await blockOf(item), search)
    })
  if (items.length > search.limits.items) throw new UnreadableFile('it has too many items of metadata')
}

/** Parts of a file as one source. */
async function joined(source: ByteSource, ranges: readonly Range[], limit: number): Promise<ByteSource> {
  const [only, ...more] = ranges
  if (only && more.length === 0) return partOf(source, only)
  const size = ranges.reduce((sum, { start, end }) => sum + end - start, 0)
  if (size > limit) throw new UnreadableFile('an item of metadata is too long')
  const parts: Buffer[] = []
  for (const { start, end } of ranges) parts.push(await source.read(start, end - start))
  return createMemorySource(Buffer.concat(parts))
}

/** The TIFF structure of an Exif item, which begins with the number of bytes before that. Some programs write another number. */
async function blockOf(item: ByteSource): Promise<ByteSource> {
  const first = Math.min(4, item.size)
  const skipped = first < 4 ? 0 : (await item.read(0, 4)).readUInt32BE()
  return partOf(item, { start: first + skipped < item.size ? first + skipped : first, end: item.size })
}
