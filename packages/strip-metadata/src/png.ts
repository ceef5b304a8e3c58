import { crc32 } from 'node:zlib'
import { append, type ByteSource, type Piece, UnreadableFile } from './pieces.ts'
import { orientationBlock, orientationOf } from './tiff-directory.ts'

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** Chunks that decide the pixels and their colours. `mDCv` and `cLLi` are the former names of `mDCV` and `cLLI`. */
const kept: ReadonlySet<string> = new Set([
  ...['IHDR', 'PLTE', 'IDAT', 'IEND', 'tRNS', 'acTL', 'fcTL', 'fdAT'],
  ...['cHRM', 'cICP', 'cLLI', 'cLLi', 'gAMA', 'iCCP', 'mDCV', 'mDCv', 'sBIT', 'sRGB'],
  ...['bKGD', 'hIST', 'pHYs'],
])

/** The last chunk, which has no data. */
const emptyEnd = Buffer.from('0000000049454e44ae426082', 'hex')

/** The largest Exif chunk whose orientation is read. Bytes. */
const maxExif = 1024 * 1024

/** A PNG file with the chunks that decide the picture, and the orientation. What follows the picture is left out. */
export async function planPng(source: ByteSource): Promise<Piece[]> {
  if (!(await source.read(0, 8)).equals(signature)) throw damaged('no signature')
  const pieces: Piece[] = []
  append(pieces, { from: 0, to: 8 })
  let [hasData, hasExif] = [false, false]
  for (let start = 8; ; ) {
    const header = await source.read(start, 8)
    const length = header.readUInt32BE(0)
    const type = header.toString('latin1', 4, 8)
    const end = start + 12 + length
    if (end > source.size) throw damaged('a chunk ends after the file')
    if ((type === 'IHDR') !== (start === 8)) throw damaged('the header is not the first chunk')
    // A file has one at most; decoders read the first one.
    if (type === 'eXIf' && length <= maxExif && !hasExif) {
      hasExif = true
      const orientation = orientationOf(await source.read(start + 8, length))
      if (orientation !== 1) append(pieces, { bytes: exifChunk(orientation) })
    }
    if (type === 'IEND' && length > 0) append(pieces, { bytes: emptyEnd })
    else if (kept.has(type)) append(pieces, { from: start, to: end })
    hasData ||= type === 'IDAT'
    if (type === 'IEND') break
    start = end
  }
  if (!hasData) throw damaged('no pixels')
  return pieces
}

function exifChunk(orientation: number): Buffer {
  const block = orientationBlock(orientation)
  const chunk = Buffer.alloc(12 + block.byteLength)
  chunk.writeUInt32BE(block.byteLength, 0)
  chunk.write('eXIf', 4, 'latin1')
  block.copy(chunk, 8)
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.byteLength - 4)
  return chunk
}

const damaged = (what: string) => new UnreadableFile(`not a PNG file: ${what}`)
