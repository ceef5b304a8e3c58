import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { combineCrc32 } from '../../core/crc32.ts'
import { type Deflated, deflatedNow, type PageLinkCache } from './page-link-cache.ts'
import type { PagePart } from './page-parts.ts'

const gzipped = promisify(gzip)

/** What is sent for a page. The pageLinkCache's links are shared by all bodies, never copied. */
export interface PageBody {
  /** Bytes. */
  readonly length: number
  /** How many of the bytes this body holds for itself alone. */
  readonly own: number
  /** Where the bytes are one run, they as Latin-1 text: Node writes it together with the head, in one piece. */
  readonly whole: string | null
  readonly chunks: () => Iterable<Buffer>
}

export function plainBody(pageLinkCache: PageLinkCache, parts: readonly PagePart[]): PageBody {
  const [only, ...others] = parts
  if (typeof only === 'string' && others.length === 0) return oneRun(only)
  return {
    length: sum(
      parts.map((part) =>
        typeof part === 'string' ? part.length : pageLinkCache.length(part.from, part.to),
      ),
    ),
    own: sum(parts.map((part) => (typeof part === 'string' ? part.length : 0))),
    whole: null,
    *chunks() {
      for (const part of parts) {
        if (typeof part === 'string') yield Buffer.from(part, 'latin1')
        else yield* pageLinkCache.plain(part.from, part.to)
      }
    },
  }
}

/** RFC 1952: magic, deflate, no flags, no time, no extra flags, unknown system. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
/** An empty final block: ends the deflate stream that the parts before it left open. */
const end = Buffer.from([3, 0])

/** The same bytes as one gzip stream, joined from parts that were compressed apart. */
export async function gzipBody(pageLinkCache: PageLinkCache, parts: readonly PagePart[]): Promise<PageBody> {
  const [only, ...others] = parts
  if (typeof only === 'string' && others.length === 0) return oneRun((await gzipped(only)).toString('latin1'))
  const pieces: Deflated[] = []
  let own = 0
  let gathered: Buffer[] = []
  /** What lies between two shared blocks is compressed together. */
  const compressGathered = () => {
    if (gathered.length === 0) return
    const piece = deflatedNow(Buffer.concat(gathered))
    gathered = []
    own += piece.bytes.length
    pieces.push(piece)
  }
  for (const part of parts) {
    for (const piece of typeof part === 'string'
      ? [Buffer.from(part)]
      : pageLinkCache.blocks(part.from, part.to)) {
      if (Buffer.isBuffer(piece)) {
        gathered.push(piece)
      } else {
        compressGathered()
        const block = await piece
        if (!block.shared) own += block.bytes.length
        pieces.push(block)
      }
    }
  }
  compressGathered()
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(pieces.reduce((crc, piece) => combineCrc32(crc, piece.crc, piece.crcShift), 0))
  trailer.writeUInt32LE(sum(pieces.map(({ plainLength }) => plainLength)) % 2 ** 32, 4)
  const chunks = [header, ...pieces.map(({ bytes }) => bytes), end, trailer]
  return { length: sum(chunks.map(({ length }) => length)), own, whole: null, chunks: () => chunks }
}

function oneRun(whole: string): PageBody {
  return { length: whole.length, own: whole.length, whole, chunks: () => [Buffer.from(whole, 'latin1')] }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
