import { UnreadableFile } from './pieces.ts'

/** Bytes of boxes of one length: without a version, or in version 0, and in version 1. */
const fixed: Readonly<Record<string, readonly [number, number?]>> = {
  ...{ mvhd: [100, 112], tkhd: [84, 96], mdhd: [24, 36], mehd: [8, 12], cslg: [24, 44], tfdt: [8, 12] },
  ...{ vmhd: [12], smhd: [8], hmhd: [20], nmhd: [4], sthd: [4], trex: [24], mfhd: [8], gmin: [16] },
  ...{ clef: [12], prof: [12], enof: [12], load: [16] },
  // Properties of pictures.
  ...{ ispe: [12], irot: [1], imir: [1], pasp: [8], clap: [32], clli: [4], mdcv: [24] },
  ...{ amve: [8], gama: [4], fiel: [2], btrt: [12], enda: [2], pitm: [6, 8] },
}

/** Tables of entries after their version, their flags and their number: bytes of an entry in version 0, and in version 1. */
const tables: Readonly<Record<string, readonly [number, number?]>> = {
  ...{ stts: [8], ctts: [8], stss: [4], stps: [4], stsh: [8], stsc: [12], stco: [4], co64: [8] },
  elst: [12, 20],
}

/** Colours by numbers, in files of MP4 and of QuickTime. */
const colours: Readonly<Record<string, number>> = { nclx: 11, nclc: 10 }

/**
 * How many bytes of the data of a box decoders use; null if that is not known, or if the box is too short for it. What follows these bytes can be
 * anything.
 */
export function usedLength(type: string, data: Buffer): number | null {
  const length = lengthOf(type, data)
  return length === null || length > data.byteLength ? null : length
}

function lengthOf(type: string, data: Buffer): number | null {
  const version = data[0] ?? 0
  const known = Object.hasOwn(fixed, type) ? fixed[type] : undefined
  if (known) return (known.length === 2 && version === 1 ? known[1] : known[0]) ?? null
  if (data.byteLength < 8) return null
  const entry = Object.hasOwn(tables, type) ? tables[type] : undefined
  if (entry) return 8 + data.readUInt32BE(4) * ((version === 1 ? entry[1] : undefined) ?? entry[0])
  if (type === 'pixi') {
    // They declare labels of the channels, which can be any text.
    if (data.readUIntBE(1, 3) !== 0)
      throw new UnreadableFile('the pixel information of a picture is of a later version')
    return 5 + (data[4] ?? 0)
  }
  if (type === 'colr') return colours[data.toString('latin1', 0, 4)] ?? null
  if (type === 'ipma') return associationsLength(data)
  const flags = data.readUIntBE(1, 3)
  if (type === 'tfhd') return 8 + bytesOf(flags, headerFields)
  if (type === 'trun')
    return 8 + bytesOf(flags, runFields) + data.readUInt32BE(4) * bytesOf(flags, sampleFields)
  if (data.byteLength < 12) return null
  if (type === 'stsz') return 12 + (data.readUInt32BE(4) === 0 ? data.readUInt32BE(8) * 4 : 0)
  return type === 'stz2' ? 12 + Math.ceil((data.readUInt32BE(8) * (data[7] ?? 0)) / 8) : null
}

/** Bytes of the fields of fragments that flags declare (ISO 14496-12, 8.8.7 and 8.8.8). */
const headerFields = new Map([
  [0x1, 8],
  [0x2, 4],
  [0x8, 4],
  [0x10, 4],
  [0x20, 4],
])
const runFields = new Map([
  [0x1, 4],
  [0x4, 4],
])
const sampleFields = new Map([0x100, 0x200, 0x400, 0x800].map((flag) => [flag, 4]))

const bytesOf = (flags: number, fields: ReadonlyMap<number, number>): number =>
  [...fields].reduce((sum, [flag, size]) => sum + ((flags & flag) === 0 ? 0 : size), 0)

/** The properties of each item of a file of pictures (ISO 23008-12, 9.3). */
function associationsLength(data: Buffer): number | null {
  const [idSize, size] = [(data[0] ?? 0) < 1 ? 2 : 4, ((data[3] ?? 0) & 1) === 0 ? 1 : 2]
  let at = 8
  for (let items = data.readUInt32BE(4); items > 0; items -= 1) {
    const count = data[at + idSize]
    if (count === undefined) return null
    at += idSize + 1 + count * size
  }
  return at
}
