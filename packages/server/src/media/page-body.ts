import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { joinCrc32 } from '../core/crc32.ts'
import { type Deflated, deflated, type LinkRibbon } from './link-ribbon.ts'
import type { PagePart } from './page-parts.ts'

const gzipped = promisify(gzip)

/** What is sent for a page. The ribbon's blocks are shared by all bodies, never copied. */
export interface PageBody {
  /** Bytes. */
  readonly length: number
  /** How many of the bytes this body holds for itself alone. */
  readonly own: number
  /** Where the bytes are one run, they as Latin-1 text: Node writes it together with the head, in one piece. */
  readonly whole: string | null
  readonly chunks: () => Iterable<Buffer>
}

export function plainBody(ribbon: LinkRibbon, parts: readonly PagePart[]): PageBody {
  const [only, ...others] = parts
  if (typeof only === 'object' && others.length === 0) return oneRun(only)
  const own = parts.filter((part) => typeof part !== 'number')
  const blocks = parts.filter((part) => typeof part === 'number')
  return {
    length: sum(own.map(({ length }) => length)) + sum(blocks.map((index) => ribbon.blockLength(index))),
    own: sum(own.map(({ length }) => length)),
    whole: null,
    *chunks() {
      for (const part of parts) yield typeof part === 'number' ? ribbon.block(part) : part
    },
  }
}

function oneRun(bytes: Buffer): PageBody {
  const whole = bytes.toString('latin1')
  return { length: whole.length, own: whole.length, whole, chunks: () => [Buffer.from(whole, 'latin1')] }
}

/** RFC 1952: magic, deflate, no flags, no time, no extra flags, unknown system. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
/** An empty final block: ends the deflate stream that the parts before it left open. */
const end = Buffer.from([3, 0])

/** The same bytes as one gzip stream, joined from parts that were compressed apart. */
export async function gzipBody(ribbon: LinkRibbon, parts: readonly PagePart[]): Promise<PageBody> {
  const [only, ...others] = parts
  if (typeof only === 'object' && others.length === 0) return oneRun(await gzipped(only))
  const pieces: Deflated[] = []
  let own = 0
  for (const part of parts) {
    const piece = await (typeof part === 'number' ? ribbon.deflatedBlock(part) : deflated(part))
    if (typeof part !== 'number') own += piece.bytes.length
    pieces.push(piece)
  }
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(pieces.reduce((crc, piece) => joinCrc32(crc, piece.crc, piece.crcShift), 0))
  trailer.writeUInt32LE(sum(pieces.map(({ plainLength }) => plainLength)) % 2 ** 32, 4)
  const chunks = [header, ...pieces.map(({ bytes }) => bytes), end, trailer]
  return { length: sum(chunks.map(({ length }) => length)), own, whole: null, chunks: () => chunks }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
