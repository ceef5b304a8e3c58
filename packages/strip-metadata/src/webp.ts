import {
  append,
  type ByteSource,
  lengthOf,
  type Piece,
  type Range,
  requireProfile,
  UnreadableFile,
} from './pieces.ts'
import { orientationBlock, orientationOf } from './tiff-directory.ts'

/** Chunks that decide the picture. `EXIF` and `XMP ` are among the others. */
const kept: ReadonlySet<string> = new Set(['VP8X', 'ICCP', 'ANIM', 'ANMF', 'ALPH', 'VP8 ', 'VP8L'])
const keptInFrame: ReadonlySet<string> = new Set(['ALPH', 'VP8 ', 'VP8L'])

/** Chunks that have the pixels: of a picture in one of two forms, or of a frame. */
const pixels: ReadonlySet<string> = new Set(['VP8 ', 'VP8L', 'ANMF'])
const ofPicture: ReadonlySet<string> = keptInFrame
const ofAnimation: ReadonlySet<string> = new Set(['ANIM', 'ANMF'])

/** Bytes of the chunk of an animation, with its header. */
const animationLength = 14

/** Bits of the flags of `VP8X`. */
const usedFlags = 0x3e
const hasProfile = 0x20
const isAnimated = 0x02
const hasExif = 0x08
const hasXmp = 0x04

/** Bytes of a frame before its chunks. */
const frameHeader = 16

/** The largest chunk `EXIF` whose orientation is read. Bytes. */
const maxExif = 1024 * 1024

/** Both forms of pixels are one kind, of which decoders read the first one. */
const kindOf = (type: string): string => (type === 'VP8L' ? 'VP8 ' : type)

interface Chunk {
  readonly type: string
  readonly start: number
  /** The position after its data, without the padding. */
  readonly end: number
}

/** A WebP file with the chunks that decide the picture, the colour profile and the orientation. */
export async function planWebp(source: ByteSource): Promise<Piece[]> {
  const header = await source.read(0, 12)
  if (header.toString('latin1', 0, 4) !== 'RIFF' || header.toString('latin1', 8, 12) !== 'WEBP')
    throw damaged('no header')
  const end = 8 + header.readUInt32LE(4)
  // The last chunk of some files has no padding.
  if (end > source.size + 1) throw damaged('it ends too early')
  const chunks = await chunksIn(source, { start: 12, end: Math.min(end, source.size) })
  const exif = chunks.find(({ type }) => type === 'EXIF')
  const orientation = exif ? await orientationIn(source, exif) : 1
  const isExtended = chunks[0]?.type === 'VP8X'
  const flags = isExtended ? await readFlags(source, chunks[0]) : 0
  const used = usedChunks(isExtended ? chunks : chunks.slice(0, 1), flags)
  if (!used.some(({ type }) => pixels.has(type))) throw damaged('no picture')
  const body: Piece[] = []
  for (const chunk of used) {
    const { type, start, end } = chunk
    if (type === 'VP8X') await addFlags(source, body, chunk, orientation !== 1)
    else if (type === 'ANMF') await addFrame(source, body, chunk)
    else if (type === 'ANIM' && end - start > animationLength)
      append(body, { bytes: Buffer.concat([chunkHeader(type, 6), await source.read(start + 8, 6)]) })
    else {
      if (type === 'ICCP') requireProfile(await source.read(start + 8, end - start - 8))
      addChunk(body, chunk)
    }
  }
  if (isExtended && orientation !== 1) {
    const block = orientationBlock(orientation)
    append(body, { bytes: Buffer.concat([chunkHeader('EXIF', block.byteLength), block]) })
  }
  const size = body.reduce((sum, piece) => sum + lengthOf(piece), 0)
  const head = Buffer.concat([chunkHeader('RIFF', 4 + size), Buffer.from('WEBP')])
  // A file that needs no change is one copy.
  const pieces: Piece[] = []
  append(pieces, header.subarray(0, 12).equals(head) ? { from: 0, to: 12 } : { bytes: head })
  for (const piece of body) append(pieces, piece)
  return pieces
}

async function chunksIn(source: ByteSource, { start, end }: Range): Promise<Chunk[]> {
  const chunks: Chunk[] = []
  for (let position = start; position + 8 <= end; ) {
    const header = await source.read(position, 8)
    const chunkEnd = position + 8 + header.readUInt32LE(4)
    if (chunkEnd > end) throw damaged('a chunk ends after the file')
    chunks.push({ type: header.toString('latin1', 0, 4), start: position, end: chunkEnd })
    position = padded(chunkEnd)
  }
  return chunks
}

async function readFlags(source: ByteSource, chunk: Chunk | undefined): Promise<number> {
  if (!chunk || chunk.end - chunk.start !== 18) throw damaged('a wrong header')
  return (await source.read(chunk.start + 8, 1)).readUInt8()
}

/** The chunks that decoders use: the first one of each kind, and only those of a picture, or of an animation. */
function usedChunks(chunks: readonly Chunk[], flags: number): Chunk[] {
  const found = new Set<string>()
  const others = (flags & isAnimated) === 0 ? ofAnimation : ofPicture
  return chunks.filter(({ type }) => {
    const isFirst = type === 'ANMF' || !found.has(kindOf(type))
    // Transparency comes before the pixels to which it belongs.
    const isLate = type === 'ALPH' && found.has('VP8 ')
    found.add(kindOf(type))
    if (type === 'ICCP' && (flags & hasProfile) === 0) return false
    return kept.has(type) && isFirst && !isLate && !others.has(type)
  })
}

function addChunk(body: Piece[], { start, end }: Chunk): void {
  append(body, { from: start, to: end })
  if (padded(end) > end) append(body, { zeros: 1 })
}

async function addFlags(source: ByteSource, body: Piece[], chunk: Chunk, isRotated: boolean): Promise<void> {
  const { start, end } = chunk
  const bytes = Buffer.from(await source.read(start, end - start))
  const flags = bytes.readUInt8(8)
  const newFlags = (flags & usedFlags & ~(hasExif | hasXmp)) | (isRotated ? hasExif : 0)
  const isReserved = bytes.readUIntLE(9, 3) !== 0
  if (newFlags === flags && !isReserved) return addChunk(body, chunk)
  bytes.writeUInt8(newFlags, 8)
  bytes.fill(0, 9, 12)
  append(body, { bytes })
}

/** A frame of an animation has chunks of its own. */
async function addFrame(source: ByteSource, body: Piece[], frame: Chunk): Promise<void> {
  const data = frame.start + 8 + frameHeader
  if (data > frame.end) throw damaged('a wrong frame')
  const chunks = await chunksIn(source, { start: data, end: frame.end })
  const used = usedChunks(chunks, 0).filter(({ type }) => keptInFrame.has(type))
  if (!used.some(({ type }) => pixels.has(type))) throw damaged('a frame without pixels')
  const last = used.at(-1)
  if (used.length === chunks.length && last && padded(last.end) === padded(frame.end))
    return addChunk(body, frame)
  const inner: Piece[] = []
  for (const chunk of used) addChunk(inner, chunk)
  const size = inner.reduce((sum, piece) => sum + lengthOf(piece), frameHeader)
  append(body, { bytes: chunkHeader('ANMF', size) })
  append(body, { from: frame.start + 8, to: data })
  for (const piece of inner) append(body, piece)
}

async function orientationIn(source: ByteSource, { start, end }: Chunk): Promise<number> {
  return end - start > maxExif ? 1 : orientationOf(await source.read(start + 8, end - start - 8))
}

const padded = (length: number) => length + (length % 2)

function chunkHeader(type: string, length: number): Buffer {
  const header = Buffer.alloc(8)
  header.write(type, 'latin1')
  header.writeUInt32LE(length, 4)
  return header
}

const damaged = (what: string) => new UnreadableFile(`not a WebP file: ${what}`)
