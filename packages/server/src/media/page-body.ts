import { joinCrc32 } from '../core/crc32.ts'
import { type Deflated, deflated, type LinkRibbon } from './link-ribbon.ts'
import type { PagePart } from './page-parts.ts'

/** What is sent for a page: how many bytes, and the bytes in order. The ribbon's blocks are shared, never copied. */
export interface PageBody {
  readonly length: number
  /** How many of the bytes this body holds for itself alone. */
  readonly own: number
  readonly chunks: () => Iterable<Buffer>
}

export function plainBody(ribbon: LinkRibbon, parts: readonly PagePart[]): PageBody {
  const lengths = parts.map((part) => (typeof part === 'number' ? ribbon.blockLength(part) : part.length))
  return {
    length: sum(lengths),
    own: sum(parts.map((part) => (typeof part === 'number' ? 0 : part.length))),
    *chunks() {
      for (const part of parts) yield typeof part === 'number' ? ribbon.block(part) : part
    },
  }
}

/** RFC 1952: magic, deflate, no flags, no time, no extra flags, unknown system. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
/** An empty final block of fixed codes: ends the deflate stream that the parts before it left open. */
const end = Buffer.from([3, 0])

/** The same bytes as one gzip stream, joined from parts that were compressed apart. */
export async function gzipBody(ribbon: LinkRibbon, parts: readonly PagePart[]): Promise<PageBody> {
  const pieces: Deflated[] = []
  for (const part of parts) {
    pieces.push(typeof part === 'number' ? await ribbon.deflatedBlock(part) : await deflated(part))
  }
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(pieces.reduce((crc, piece) => joinCrc32(crc, piece.crc, piece.crcShift), 0))
  trailer.writeUInt32LE(sum(pieces.map(({ plainLength }) => plainLength)) % 2 ** 32, 4)
  const chunks = [header, ...pieces.map(({ bytes }) => bytes), end, trailer]
  const ownParts = pieces.filter((_, index) => typeof parts[index] !== 'number')
  return { length: sum(chunks.map(({ length }) => length)), own: sum(ownParts.map(({ bytes }) => bytes.length)), chunks: () => chunks }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
