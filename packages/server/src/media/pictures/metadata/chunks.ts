import { type Box, childOf, dataOf, type LoadedBoxes } from './boxes.ts'
import { maxTable, UnreadableFile } from './pieces.ts'

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
  if (sizes && compactSizes) throw damaged()
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
  if (short && long) throw damaged()
  if (short) {
    const count = requireShort(countIn(short, 4, 8, 4))
    return Array.from({ length: count }, (_, at) => short.readUInt32BE(8 + at * 4))
  }
  if (!long) throw damaged()
  const count = requireShort(countIn(long, 4, 8, 8))
  return Array.from({ length: count }, (_, at) => {
    const start = long.readBigUInt64BE(8 + at * 8)
    if (start > Number.MAX_SAFE_INTEGER) throw damaged()
    return Number(start)
  })
}

function readRuns(table: Buffer | null): { readonly firstChunk: number; readonly samples: number }[] {
  if (!table) throw damaged()
  const count = requireShort(countIn(table, 4, 8, 12))
  let last = 0
  const runs = Array.from({ length: count }, (_, at) => {
    const [firstChunk, samples] = [table.readUInt32BE(8 + at * 12), table.readUInt32BE(12 + at * 12)]
    // Decoders repair other tables, each in its own way.
    if (at === 0 ? firstChunk !== 1 : firstChunk <= last) throw damaged()
    if (samples === 0) throw damaged()
    last = firstChunk
    return { firstChunk, samples }
  })
  if (runs.length === 0) throw damaged()
  return runs
}

/** The size of all samples; 0 if each has its own. */
function readCommonSize(sizes: Buffer | null): number {
  if (!sizes) return 0
  if (sizes.byteLength < 12) throw damaged()
  return sizes.readUInt32BE(4)
}

/** The size of each sample in bytes. */
function readSizes(sizes: Buffer | null, compact: Buffer | null): (sample: number) => number {
  const at = (read: () => number): number => {
    try {
      return read()
    } catch {
      throw damaged()
    }
  }
  if (sizes) {
    countIn(sizes, 8, 12, 4)
    return (sample) => at(() => sizes.readUInt32BE(12 + sample * 4))
  }
  if (!compact || compact.byteLength < 12) throw damaged()
  const bits = compact[7] ?? 0
  if (bits === 16) return (sample) => at(() => compact.readUInt16BE(12 + sample * 2))
  if (bits === 8) return (sample) => at(() => compact.readUInt8(12 + sample))
  if (bits !== 4) throw damaged()
  return (sample) => at(() => (compact.readUInt8(12 + (sample >> 1)) >> (sample % 2 === 0 ? 4 : 0)) & 15)
}

/** The number of entries at `position`, which must fit into the table. */
function countIn(table: Buffer, position: number, header: number, entry: number): number {
  if (table.byteLength < header) throw damaged()
  const count = table.readUInt32BE(position)
  if (header + count * entry > table.byteLength) throw damaged()
  return count
}

/** Of the tables that are read into arrays. */
function requireShort(count: number): number {
  if (count > maxTable) throw damaged()
  return count
}

const damaged = () => new UnreadableFile('not a video: a table of samples is damaged')
