import { type Box, BoxEdits, childOf, childrenOf, dataOf, type LoadedBoxes } from './boxes.ts'
import { type Content, maxTable, type NeededRange, UnreadableFile } from './pieces.ts'
import { cleanSampleEntries, hasExactSizes } from './sample-entries.ts'

/** The boxes that are kept in each box. Those without a row are kept whole, except `stsd`. */
const keptIn: Readonly<Record<string, ReadonlySet<string>>> = {
  moov: new Set(['mvhd', 'iods', 'trak', 'mvex', 'pssh', 'ctab', 'clip']),
  mvex: new Set(['mehd', 'trex', 'leva']),
  trak: new Set(['tkhd', 'edts', 'tref', 'mdia', 'tapt', 'load', 'txas', 'matt', 'clip', 'trgr']),
  mdia: new Set(['mdhd', 'hdlr', 'minf', 'elng']),
  minf: new Set(['vmhd', 'smhd', 'hmhd', 'sthd', 'nmhd', 'gmhd', 'hdlr', 'dinf', 'stbl']),
  dinf: new Set(['dref']),
  edts: new Set(['elst']),
  tapt: new Set(['clef', 'prof', 'enof']),
  clip: new Set(['crgn']),
  matt: new Set(['kmat']),
  trgr: new Set(['msrc', 'ster', 'cstg']),
  gmhd: new Set(['gmin', 'text']),
  stbl: new Set([
    ...['stsd', 'stts', 'ctts', 'cslg', 'stss', 'stps', 'stsh', 'stsz', 'stz2', 'stsc', 'stco', 'co64'],
    ...['sdtp', 'sgpd', 'sbgp', 'subs', 'saiz', 'saio', 'senc', 'padb', 'stdp'],
  ]),
}

const listsOfTrack: ReadonlySet<string> = new Set(['edts', 'tapt', 'clip', 'matt', 'trgr'])

/**
 * Handlers of tracks with pictures, sounds and captions. Tracks of other handlers are removed with their samples: timed metadata, such as the
 * positions of action cameras and drones, and time codes, which are the time of day on many cameras. `text` and `sbtl` are among them, because
 * drones write their position as subtitles.
 */
const keptHandlers: ReadonlySet<string> = new Set(['vide', 'soun', 'auxv', 'pict', 'clcp', 'subt'])

/** The form of a file, from its other boxes. */
interface Form {
  readonly isFragmented: boolean
  readonly isQuickTime: boolean
}

/** Removes the metadata of a movie: unknown boxes, tracks without pictures and sounds, times of creation, names. */
export function planMovie(loaded: LoadedBoxes, movie: Box, { isFragmented, isQuickTime }: Form): Content {
  const edits = new BoxEdits(loaded)
  const children = childrenOf(loaded, movie)
  if (children.some(({ type }) => type === 'cmov')) throw damaged('its header is compressed')
  const tracks = children
    .filter(({ type }) => type === 'trak')
    .map((box) => readTrack(loaded, box, isQuickTime))
  const isKept = ({ handler }: Track) => keptHandlers.has(handler)
  const [kept, removed] = [tracks.filter(isKept), tracks.filter((track) => !isKept(track))]
  if (kept.length === 0) throw damaged('it has no pictures and no sounds')
  if (isFragmented && removed.length > 0) throw damaged('it has fragments of timed metadata or time codes')

  for (const box of freeOthers(loaded, edits, movie)) {
    if (box.type === 'mvhd') clearTimes(loaded, edits, box)
    if (box.type === 'mvex' || box.type === 'clip') freeOthers(loaded, edits, box)
  }
  for (const { box } of removed) edits.free(box)
  const removedIds = new Set(removed.map(({ id }) => id))
  for (const track of kept) cleanTrack(loaded, edits, track, removedIds)
  return { edits: edits.edits, needed: neededRanges(kept, removed) }
}

interface Track {
  readonly box: Box
  readonly id: number
  readonly handler: string
  readonly isQuickTime: boolean
  readonly chunks: TrackChunks
}

function readTrack(loaded: LoadedBoxes, box: Box, isQuickTime: boolean): Track {
  const [header, media] = ['tkhd', 'mdia'].map((type) => childOf(loaded, box, type))
  const handler = media && childOf(loaded, media, 'hdlr')
  const information = media && childOf(loaded, media, 'minf')
  const table = information && childOf(loaded, information, 'stbl')
  const formats = table && childOf(loaded, table, 'stsd')
  if (!header || !handler || !formats) throw damaged('a track is incomplete')
  const [headerData, handlerData] = [dataOf(loaded, header), dataOf(loaded, handler)]
  const idPosition = headerData[0] === 1 ? 20 : 12
  if (headerData.byteLength < idPosition + 4) throw damaged('a header is too short')
  const type = handlerData.toString('latin1', 8, 12)
  return {
    box,
    id: headerData.readUInt32BE(idPosition),
    handler: type,
    isQuickTime,
    chunks: chunksOf(loaded, table, hasExactSizes(loaded, formats, type, isQuickTime)),
  }
}

/** A language (BCP 47), which ends with a zero. */
const languageTag = /^[A-Za-z0-9]{1,8}(?:-[A-Za-z0-9]{1,8}){0,8}\0?$/

function cleanTrack(
  loaded: LoadedBoxes,
  edits: BoxEdits,
  track: Track,
  removedIds: ReadonlySet<number>,
): void {
  for (const box of freeOthers(loaded, edits, track.box)) {
    if (box.type === 'tkhd') clearTimes(loaded, edits, box)
    if (box.type === 'tref') freeReferences(loaded, edits, box, removedIds)
    if (listsOfTrack.has(box.type)) freeOthers(loaded, edits, box)
    if (box.type !== 'mdia') continue
    for (const part of freeOthers(loaded, edits, box)) {
      if (part.type === 'mdhd') clearTimes(loaded, edits, part)
      if (part.type === 'hdlr') clearHandlerName(edits, part)
      if (part.type === 'elng' && !languageTag.test(dataOf(loaded, part).toString('latin1', 4)))
        edits.free(part)
      if (part.type === 'minf') cleanMediaInformation(loaded, edits, part, track)
    }
  }
}

/** Removes references, for example to chapters, that name a removed track. */
function freeReferences(
  loaded: LoadedBoxes,
  edits: BoxEdits,
  references: Box,
  removedIds: ReadonlySet<number>,
): void {
  for (const box of childrenOf(loaded, references)) {
    const data = dataOf(loaded, box)
    for (let at = 0; at + 4 <= data.byteLength; at += 4)
      if (removedIds.has(data.readUInt32BE(at))) {
        edits.free(box)
        break
      }
  }
}

function cleanMediaInformation(loaded: LoadedBoxes, edits: BoxEdits, information: Box, track: Track): void {
  for (const box of freeOthers(loaded, edits, information)) {
    if (box.type === 'hdlr') clearHandlerName(edits, box)
    if (box.type === 'gmhd') freeOthers(loaded, edits, box)
    if (box.type === 'dinf')
      for (const reference of freeOthers(loaded, edits, box)) clearReferences(loaded, edits, reference)
    if (box.type !== 'stbl') continue
    for (const table of freeOthers(loaded, edits, box))
      if (table.type === 'stsd') cleanSampleEntries(loaded, edits, table, track)
  }
}

/** Frees the boxes in a box that are not known, and returns the others. */
function freeOthers(loaded: LoadedBoxes, edits: BoxEdits, parent: Box): Box[] {
  return childrenOf(loaded, parent).filter((box) => {
    const isKept = keptIn[parent.type]?.has(box.type) === true
    if (isKept) edits.trim(box)
    else edits.free(box)
    return isKept
  })
}

/** Sets the times of creation and modification to zero, which means unknown. */
function clearTimes(loaded: LoadedBoxes, edits: BoxEdits, box: Box): void {
  const size = dataOf(loaded, box)[0] === 1 ? 16 : 8
  if (box.data + 4 + size > box.end) throw damaged('a header is too short')
  edits.clear({ start: box.data + 4, end: box.data + 4 + size })
}

/** The name of a handler, and its manufacturer in QuickTime, often name the camera. */
function clearHandlerName(edits: BoxEdits, { data, end }: Box): void {
  if (data + 12 < end) edits.clear({ start: data + 12, end })
}

/** Clears what follows the flags: QuickTime stores the name of the disk and the path of the file there. */
function clearReferences(loaded: LoadedBoxes, edits: BoxEdits, references: Box): void {
  for (const box of childrenOf(loaded, references, 8)) {
    const isOwnFile = ((dataOf(loaded, box)[3] ?? 0) & 1) === 1
    if (!isOwnFile) throw damaged('its data is in another file')
    edits.clear({ start: box.data + 4, end: box.end })
  }
}

/** The bytes of the kept tracks. A chunk of unknown length ends where the next chunk of any track begins. */
function neededRanges(kept: readonly Track[], removed: readonly Track[]): NeededRange[] {
  const starts = [...kept, ...removed]
    .flatMap(({ chunks }) => chunks.map(({ start }) => start))
    .toSorted((one, other) => one - other)
  const after = (start: number): number => {
    let [low, high] = [0, starts.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((starts[middle] ?? 0) > start) high = middle
      else low = middle + 1
    }
    return starts[low] ?? Number.POSITIVE_INFINITY
  }
  return kept.flatMap(({ chunks }) =>
    chunks.map(({ start, end }) => ({ start, end: end ?? after(start), isOpen: end === null })),
  )
}

const damaged = (what: string) => new UnreadableFile(`not a video: ${what}`)

/** The chunks of a track; `end` is null if the sizes of its samples are those of QuickTime's sounds, which mean something else. */
export type TrackChunks = readonly { readonly start: number; readonly end: number | null }[]

/** Where the samples of a track are, from its sample table. `isExact` if sizes are in bytes, also one size of all samples. Throws UnreadableFile. */
export function chunksOf(loaded: LoadedBoxes, table: Box, isExact: boolean): TrackChunks {
  const data = (type: string): Buffer | null => {
    const box = childOf(loaded, table, type)
    return box && dataOf(loaded, box)
  }
  const starts = readStarts(data('stco'), data('co64'))
  if (starts.length === 0) return []
  const runs = readRuns(data('stsc'))
  const [sizes, compactSizes] = [data('stsz'), data('stz2')]
  if (sizes && compactSizes) throw damagedTable()
  const commonSize = readCommonSize(sizes)
  const sizeOf = commonSize === 0 ? readSizes(sizes, compactSizes) : null
  let [run, sample] = [0, 0]
  return starts.map((start, index) => {
    while (run + 1 < runs.length && (runs[run + 1]?.firstChunk ?? 0) <= index + 1) run += 1
    const count = runs[run]?.samples ?? 0
    if (sizeOf === null) return { start, end: isExact ? start + count * commonSize : null }
    let end = start
    for (const last = sample + count; sample < last; sample += 1) end += sizeOf(sample)
    return { start, end }
  })
}

function readStarts(short: Buffer | null, long: Buffer | null): number[] {
  if (short && long) throw damagedTable()
  if (short) {
    const count = requireShort(countIn(short, 4, 8, 4))
    return Array.from({ length: count }, (_, at) => short.readUInt32BE(8 + at * 4))
  }
  if (!long) throw damagedTable()
  const count = requireShort(countIn(long, 4, 8, 8))
  return Array.from({ length: count }, (_, at) => {
    const start = long.readBigUInt64BE(8 + at * 8)
    if (start > Number.MAX_SAFE_INTEGER) throw damagedTable()
    return Number(start)
  })
}

function readRuns(table: Buffer | null): { readonly firstChunk: number; readonly samples: number }[] {
  if (!table) throw damagedTable()
  const count = requireShort(countIn(table, 4, 8, 12))
  let last = 0
  const runs = Array.from({ length: count }, (_, at) => {
    const [firstChunk, samples] = [table.readUInt32BE(8 + at * 12), table.readUInt32BE(12 + at * 12)]
    // Decoders repair other tables, each in its own way.
    if (at === 0 ? firstChunk !== 1 : firstChunk <= last) throw damagedTable()
    if (samples === 0) throw damagedTable()
    last = firstChunk
    return { firstChunk, samples }
  })
  if (runs.length === 0) throw damagedTable()
  return runs
}

/** The size of all samples; 0 if each has its own. */
function readCommonSize(sizes: Buffer | null): number {
  if (!sizes) return 0
  if (sizes.byteLength < 12) throw damagedTable()
  return sizes.readUInt32BE(4)
}

/** The size of each sample in bytes. */
function readSizes(sizes: Buffer | null, compact: Buffer | null): (sample: number) => number {
  const at = (read: () => number): number => {
    try {
      return read()
    } catch {
      throw damagedTable()
    }
  }
  if (sizes) {
    countIn(sizes, 8, 12, 4)
    return (sample) => at(() => sizes.readUInt32BE(12 + sample * 4))
  }
  if (!compact || compact.byteLength < 12) throw damagedTable()
  const bits = compact[7] ?? 0
  if (bits === 16) return (sample) => at(() => compact.readUInt16BE(12 + sample * 2))
  if (bits === 8) return (sample) => at(() => compact.readUInt8(12 + sample))
  if (bits !== 4) throw damagedTable()
  return (sample) => at(() => (compact.readUInt8(12 + (sample >> 1)) >> (sample % 2 === 0 ? 4 : 0)) & 15)
}

/** The number of entries at `position`, which must fit into the table. */
function countIn(table: Buffer, position: number, header: number, entry: number): number {
  if (table.byteLength < header) throw damagedTable()
  const count = table.readUInt32BE(position)
  if (header + count * entry > table.byteLength) throw damagedTable()
  return count
}

/** Of the tables that are read into arrays. */
function requireShort(count: number): number {
  if (count > maxTable) throw damagedTable()
  return count
}

const damagedTable = () => new UnreadableFile('not a video: a table of samples is damaged')
