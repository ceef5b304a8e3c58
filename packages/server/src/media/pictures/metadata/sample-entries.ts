import { type Box, type BoxEdits, childrenOf, type LoadedBoxes } from './boxes.ts'

/** Positions in the sample entry of a video (ISO 14496-12, 12.1.3), after the header of its box. */
const vendor = { start: 12, end: 16 }
const compressorName = { start: 42, end: 74 }

/** Bytes of a sample entry before its boxes. */
const minVideoEntry = 78

/** Clears the name of the encoder in the formats of a video track, which often names the camera. */
export function clearEncoderNames(loaded: LoadedBoxes, edits: BoxEdits, table: Box, isVideo: boolean): void {
  if (!isVideo) return
  for (const { data, end } of childrenOf(loaded, table, 8)) {
    if (end - data < minVideoEntry) continue
    for (const part of [vendor, compressorName])
      edits.clear({ start: data + part.start, end: data + part.end })
  }
}
