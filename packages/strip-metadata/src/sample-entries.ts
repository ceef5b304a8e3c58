import { type Box, type BoxEdits, childrenOf, dataOf, type LoadedBoxes } from './boxes.ts'
import { UnreadableFile } from './pieces.ts'

/** Boxes in the formats of tracks: of decoders, colours, the shape of pictures, the places of speakers, and encryption. */
const kept: ReadonlySet<string> = new Set([
  ...[
    'avcC',
    'avcE',
    'hvcC',
    'hvcE',
    'lhvC',
    'vvcC',
    'evcC',
    'av1C',
    'vpcC',
    'apvC',
    'mvcC',
    'svcC',
    'dvcC',
    'dvvC',
  ],
  ...[
    'dvwC',
    'dvc1',
    'esds',
    'd263',
    'bitr',
    'jpgC',
    'j2kH',
    'jp2h',
    'uncC',
    'cmpd',
    'cmpC',
    'icef',
    'SMI ',
    'glbl',
  ],
  ...[
    'strf',
    'ACLR',
    'ADHR',
    'APRG',
    'ARES',
    'avss',
    'mjqt',
    'mjht',
    'colr',
    'pasp',
    'clap',
    'fiel',
    'gama',
    'btrt',
  ],
  ...[
    'mdcv',
    'clli',
    'SmDm',
    'CoLL',
    'cclv',
    'amve',
    'reve',
    'ndwt',
    'ccst',
    'auxi',
    'st3d',
    'sv3d',
    'svhd',
    'proj',
  ],
  ...[
    'vexu',
    'hfov',
    'sinf',
    'rinf',
    'wave',
    'frma',
    'enda',
    'wfex',
    'chan',
    'chnl',
    'srat',
    'SA3D',
    'SAND',
    'dac3',
  ],
  ...[
    'dec3',
    'dac4',
    'ddts',
    'udts',
    'dmlp',
    'mhaC',
    'mhaP',
    'alac',
    'dOps',
    'dfLa',
    'pcmC',
    'iacb',
    'samr',
    'damr',
  ],
  ...['dawp', 'devc', 'dqcp', 'dsmv', 'QDCA', 'QDCP', 'vttC', 'ftab', 'mime', 'txtC'],
  // The end of a list in QuickTime.
  '\0\0\0\0',
])

/** Those of them that consist of boxes. */
const lists: ReadonlySet<string> = new Set(['wave', 'sv3d'])

const visualHandlers: ReadonlySet<string> = new Set(['vide', 'auxv', 'pict'])

/** Positions in the formats of pictures (ISO 14496-12, 12.1.3) and sounds, after the header of the box. */
const vendor = { start: 12, end: 16 }
const compressorName = { start: 42, end: 74 }
const depth = 74
const paletteId = 76

/** Bytes of formats before their boxes. */
const visualLength = 78
const soundLengths = [28, 44, 64] as const
const textLengths: ReadonlyMap<string, number> = new Map([
  ['wvtt', 8],
  ['c608', 8],
  ['c708', 8],
  ['tx3g', 38],
])

/** Sounds whose samples have sizes in bytes (ISO 14496-12). QuickTime counts those of others in other units. */
const exactSounds: ReadonlySet<string> = new Set([
  ...['mp4a', 'enca', 'ac-3', 'ec-3', 'ac-4', 'Opus', 'fLaC', 'alac', 'samr', 'sawb', 'sawp', 'ipcm', 'fpcm'],
  ...['dtsc', 'dtse', 'dtsh', 'dtsl', 'mha1', 'mhm1'],
])

/** Whether the sizes of samples are in bytes, also if all samples have the same one. */
export function hasExactSizes(
  loaded: LoadedBoxes,
  formats: Box,
  handler: string,
  isQuickTime: boolean,
): boolean {
  if (handler !== 'soun') return true
  if (isQuickTime) return false
  return childrenOf(loaded, formats, 8).every(
    (format) => exactSounds.has(format.type) && soundVersion(loaded, format) === 0,
  )
}

/** Removes what no decoder needs from the formats of a track: unknown boxes, and the name of the encoder, which often names the camera. */
export function cleanSampleEntries(
  loaded: LoadedBoxes,
  edits: BoxEdits,
  formats: Box,
  track: { readonly handler: string; readonly isQuickTime: boolean },
): void {
  const isVisual = visualHandlers.has(track.handler)
  const isSound = track.handler === 'soun'
  for (const format of childrenOf(loaded, formats, 8)) {
    const { data } = format
    const length = isVisual
      ? visualLength + paletteLength(loaded, format)
      : isSound
        ? soundLength(loaded, formats, format, track.isQuickTime)
        : textLengths.get(format.type)
    // Subtitles of other formats, which have texts before their boxes.
    if (length === undefined) continue
    freeUnknown(loaded, edits, format, length, format.type)
    if (isVisual || isSound) edits.clear({ start: data + vendor.start, end: data + vendor.end })
    if (isVisual) edits.clear({ start: data + compressorName.start, end: data + compressorName.end })
  }
}

/** In QuickTime, some decoders have a box with the type of the format. */
function freeUnknown(
  loaded: LoadedBoxes,
  edits: BoxEdits,
  parent: Box,
  skipped: number,
  format: string,
): void {
  for (const box of childrenOf(loaded, parent, skipped)) {
    if (!kept.has(box.type) && box.type !== format) edits.free(box)
    else if (lists.has(box.type)) freeUnknown(loaded, edits, box, 0, format)
    // The name of the program or the camera that made a spherical video.
    else if (box.type === 'svhd' && box.data + 4 < box.end) edits.clear({ start: box.data + 4, end: box.end })
    else edits.trim(box)
  }
}

/** The length of a table of colours, which QuickTime has for up to 8 bits per pixel. */
function paletteLength(loaded: LoadedBoxes, format: Box): number {
  const data = dataOf(loaded, format)
  if (data.byteLength < visualLength + 8) return 0
  const isIndexed = [1, 2, 4, 8].includes(data.readUInt16BE(depth) & 31) && data.readUInt16BE(paletteId) === 0
  const length = 8 + (data.readUInt16BE(visualLength + 6) + 1) * 8
  return isIndexed && visualLength + length <= data.byteLength ? length : 0
}

function soundLength(loaded: LoadedBoxes, formats: Box, format: Box, isQuickTime: boolean): number {
  const version = soundVersion(loaded, format)
  // In later files, version 1 has the same length as version 0.
  const isExtended = isQuickTime || dataOf(loaded, formats)[0] === 0
  const length = soundLengths[version === 1 && !isExtended ? 0 : version]
  if (length === undefined) throw new UnreadableFile('not a video: a sound has an unknown form')
  return length
}

function soundVersion(loaded: LoadedBoxes, format: Box): number {
  const data = dataOf(loaded, format)
  if (data.byteLength < soundLengths[0]) throw new UnreadableFile('not a video: a format is too short')
  return data.readUInt16BE(8)
}
