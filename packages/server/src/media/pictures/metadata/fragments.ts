import { type Box, BoxEdits, childOf, childrenOf, dataOf, type LoadedBoxes } from './boxes.ts'
import { type Content, type Range, UnreadableFile } from './pieces.ts'

const kept: ReadonlySet<string> = new Set([
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
export type DefaultSizes = ReadonlyMap<number, number>

export function readDefaultSizes(loaded: LoadedBoxes, movie: Box): DefaultSizes {
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
export function planFragment(loaded: LoadedBoxes, fragment: Box, defaults: DefaultSizes): Content {
  const edits = new BoxEdits(loaded)
  const needed: Range[] = []
  for (const box of childrenOf(loaded, fragment)) {
    if (!kept.has(box.type)) edits.free(box)
    if (box.type !== 'traf') continue
    const parts = childrenOf(loaded, box)
    for (const part of parts) if (!kept.has(part.type)) edits.free(part)
    const types = new Set(parts.map(({ type }) => type))
    if (types.has('saio') && !types.has('senc')) throw damaged('keys are between its samples')
    const header = parts.find(({ type }) => type === 'tfhd')
    if (!header) throw damaged('a fragment has no header')
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
  if (data.byteLength < length) throw damaged('a fragment is too short')
  return data
}

const damaged = (what: string) => new UnreadableFile(`not a video: ${what}`)
