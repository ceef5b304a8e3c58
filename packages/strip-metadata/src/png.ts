import { crc32, createInflate } from 'node:zlib'
import { append, type ByteSource, type Piece, requireProfile, UnreadableFile } from './pieces.ts'
import { PngFrames } from './png-frames.ts'
import { formOf, PngPixels } from './png-pixels.ts'
import { orientationBlock, orientationOf } from './tiff-directory.ts'

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** Chunks that decide the pixels and their colours. `mDCv` and `cLLi` are the former names of `mDCV` and `cLLI`. */
const kept: ReadonlySet<string> = new Set([
  ...['IHDR', 'PLTE', 'IDAT', 'IEND', 'tRNS', 'acTL', 'fcTL', 'fdAT'],
  ...['cHRM', 'cICP', 'cLLI', 'cLLi', 'gAMA', 'iCCP', 'mDCV', 'mDCv', 'sBIT', 'sRGB'],
  ...['bKGD', 'pHYs'],
])

/** Chunks of which a file has more than one. Decoders read the first one of the others. */
const repeated: ReadonlySet<string> = new Set(['IDAT', 'fcTL', 'fdAT'])

/** Bytes of the data of a chunk. */
const lengths: Readonly<Record<string, number>> = {
  ...{ IHDR: 13, IEND: 0, acTL: 8, fcTL: 26, cHRM: 32, cICP: 4, cLLI: 8, cLLi: 8, gAMA: 4 },
  ...{ mDCV: 24, mDCv: 24, pHYs: 9, sRGB: 1 },
}

/** Those of chunks that depend on the type of the colours: grey, RGB, a palette, grey and RGB with transparency. */
const lengthsByColours: Readonly<Record<string, Readonly<Record<number, number>>>> = {
  sBIT: { 0: 1, 2: 3, 3: 3, 4: 2, 6: 4 },
  bKGD: { 0: 2, 2: 6, 3: 1, 4: 2, 6: 6 },
  tRNS: { 0: 2, 2: 6 },
}

/** Chunks that decoders ignore if they have another length: the next one of the type counts. */
const ignored: ReadonlySet<string> = new Set([
  ...['bKGD', 'cHRM', 'cICP', 'cLLI', 'cLLi', 'gAMA', 'mDCV', 'mDCv', 'pHYs', 'sBIT', 'sRGB'],
])

/** Where the depth and the type of the colours are in the header. */
const [depthAt, coloursAt] = [8, 9]
const palette = 3

/** The largest chunk of a colour profile, and the largest profile. Bytes. */
const maxProfile = 16 * 1024 * 1024

/** The largest Exif chunk whose orientation is read. Bytes. */
const maxExif = 1024 * 1024

/**
 * A PNG file with the chunks that decide the picture, and the orientation. What follows the picture is left out.
 */
export async function planPng(source: ByteSource): Promise<Piece[]> {
  if (!(await source.read(0, 8)).equals(signature)) throw damaged('no signature')
  const pieces: Piece[] = []
  append(pieces, { from: 0, to: 8 })
  const pixels = new PngPixels(source, pieces)
  let frames: PngFrames | null = null
  const found = new Set<string>()
  let header: Buffer = Buffer.alloc(0)
  for (let start = 8; ; ) {
    const head = await source.read(start, 8)
    const length = head.readUInt32BE(0)
    const type = head.toString('latin1', 4, 8)
    const end = start + 12 + length
    if (end > source.size) throw damaged('a chunk ends after the file')
    if ((type === 'IHDR') !== (start === 8)) throw damaged('the header is not the first chunk')
    if (type === 'IHDR') {
      if (length !== lengths['IHDR']) throw damaged('a chunk has a wrong length')
      header = await source.read(start + 8, length)
      await pixels.begin(formOf(header))
    }
    const isFirst = !found.has(type) || repeated.has(type)
    found.add(type)
    if (type === 'eXIf' && length <= maxExif && isFirst) {
      const orientation = orientationOf(await source.read(start + 8, length))
      await pixels.finishPending()
      if (orientation !== 1) append(pieces, { bytes: encoded('eXIf', orientationBlock(orientation)) })
    }
    if (ignored.has(type) && isFirst && !hasItsLength(type, length, header)) found.delete(type)
    else if (kept.has(type) && isFirst && isUsed(type, found, header, frames !== null)) {
      if (type === 'IDAT') frames?.addPicture()
      if (type === 'fdAT') frames?.addPixels(await source.read(start + 8, 4))
      if (type === 'IDAT' || type === 'fdAT') await pixels.add({ type, start, end })
      else {
        const piece = await pieceOf(source, { type, start, end, header })
        if (type === 'acTL') frames = new PngFrames(await source.read(start + 8, length), formOf(header))
        const frame = type === 'fcTL' ? frames?.control(await source.read(start + 8, length)) : null
        await (frame ? pixels.begin(frame) : type === 'IEND' ? pixels.end() : pixels.finishPending())
        append(pieces, piece)
      }
    }
    if (type === 'IEND') break
    start = end
  }
  if (!found.has('IDAT')) throw damaged('no pixels')
  frames?.end()
  return pieces
}

/** Chunks of animations, which are not shown without their header; and those that come before the pixels. */
const ofAnimation: ReadonlySet<string> = new Set(['fcTL', 'fdAT'])
const last: ReadonlySet<string> = new Set([...ofAnimation, 'IDAT', 'IEND'])

/** Whether decoders use a chunk at this place in a file of these colours. `found` has the types up to it. */
function isUsed(type: string, found: ReadonlySet<string>, header: Buffer, isAnimated: boolean): boolean {
  const colours = header.readUInt8(coloursAt)
  if (ofAnimation.has(type)) return isAnimated
  if (!last.has(type) && found.has('IDAT')) return false
  if (type === 'PLTE') return colours === palette
  return type !== 'tRNS' || colours <= palette
}

interface Chunk {
  readonly type: string
  readonly start: number
  readonly end: number
  /** The data of the header of the file. */
  readonly header: Buffer
}

/** The chunk. Throws UnreadableFile if it has another length than its type: decoders ignore it or what is behind its data. */
async function pieceOf(source: ByteSource, { type, start, end, header }: Chunk): Promise<Piece> {
  const [from, length] = [start + 8, end - start - 12]
  const whole = { from: start, to: end }
  if (type === 'IEND') return length === 0 ? whole : { bytes: encoded(type, Buffer.alloc(0)) }
  if (type === 'iCCP') return profilePiece(await source.read(from, requireAtMost(length, maxProfile)), whole)
  const colours = 2 ** Math.min(header.readUInt8(depthAt), 8)
  // Decoders ignore colours of a palette that the depth does not have.
  if (type === 'PLTE' && length > 3 * colours)
    return { bytes: encoded(type, await source.read(from, 3 * colours)) }
  if (!hasItsLength(type, length, header) || (type === 'tRNS' && length > colours))
    throw damaged('a chunk has a wrong length')
  return whole
}

function hasItsLength(type: string, length: number, header: Buffer): boolean {
  const defined = lengths[type] ?? lengthsByColours[type]?.[header.readUInt8(coloursAt)]
  return defined === undefined || length === defined
}

/** The profile under a name that says nothing, and without what follows its compressed bytes. */
async function profilePiece(data: Buffer, whole: Piece): Promise<Piece> {
  const nameEnd = data.indexOf(0)
  if (nameEnd < 1 || nameEnd > 79) throw damaged('a profile has no name')
  const { length, profile } = await inflated(data.subarray(nameEnd + 2))
  requireProfile(profile)
  const compressed = data.subarray(nameEnd + 1, nameEnd + 2 + length)
  const named = Buffer.concat([profileName, compressed])
  return named.equals(data) ? whole : { bytes: encoded('iCCP', named) }
}

const profileName = Buffer.from('icc\0')

/** The bytes that a stream of zlib compresses, and its length. */
async function inflated(bytes: Buffer): Promise<{ readonly length: number; readonly profile: Buffer }> {
  const stream = createInflate()
  const parts: Buffer[] = []
  let size = 0
  stream.end(bytes)
  try {
    for await (const part of stream) {
      parts.push(part)
      size += part.byteLength
      if (size > maxProfile) throw damaged('a profile is too long')
    }
  } catch (cause) {
    throw new UnreadableFile('not a PNG file: a profile is damaged', { cause })
  }
  return { length: stream.bytesWritten, profile: Buffer.concat(parts) }
}

function requireAtMost(length: number, most: number): number {
  if (length > most) throw damaged('a chunk is too long')
  return length
}

function encoded(type: string, data: Buffer): Buffer {
  const chunk = Buffer.alloc(12 + data.byteLength)
  chunk.writeUInt32BE(data.byteLength, 0)
  chunk.write(type, 4, 'latin1')
  data.copy(chunk, 8)
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.byteLength - 4)
  return chunk
}

const damaged = (what: string) => new UnreadableFile(`not a PNG file: ${what}`)
