import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { combineCrc32 } from '../../core/crc32.ts'
import { allocateWithHeadRoom, headRoom, withHeadRoom } from '../../core/head-room.ts'
import { type Deflated, deflateChunkSync, type PageLinkCache } from './page-link-cache.ts'
import type { PagePart } from './page-renderer.ts'

const gzipped = promisify(gzip)

/** The body of a page. All bodies share the links of the page-link cache; they are not copied. */
export interface PageBody {
  /** Bytes. */
  readonly length: number
  /** Memory that this body does not share with others. Bytes. */
  readonly own: number
  /** If the page has one part: its ASCII text, or its bytes with `headRoom` in front of them. */
  readonly whole: string | Uint8Array | null
  readonly chunks: () => Iterable<Buffer>
}

/** The body of a page that is not cached remains text, which needs no memory outside of V8's heap. */
export function plainBody(
  pageLinkCache: PageLinkCache,
  parts: readonly PagePart[],
  isCached: boolean,
): PageBody {
  const [only, ...others] = parts
  if (typeof only === 'string' && others.length === 0) return isCached ? oneRun(bytesOf(only)) : oneText(only)
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
/** An empty final block, which ends the deflate stream. */
const end = Buffer.from([3, 0])

/** The same bytes as one gzip stream, concatenated from separately compressed parts. */
export async function gzipBody(pageLinkCache: PageLinkCache, parts: readonly PagePart[]): Promise<PageBody> {
  const [only, ...others] = parts
  if (typeof only === 'string' && others.length === 0) return oneRun(withHeadRoom(await gzipped(only)))
  const compressed: Deflated[] = []
  let own = 0
  let pending: Buffer[] = []
  /** Compresses the bytes between two shared chunks together. */
  const compressPending = () => {
    if (pending.length === 0) return
    const chunk = deflateChunkSync(Buffer.concat(pending))
    pending = []
    own += chunk.bytes.length
    compressed.push(chunk)
  }
  for (const part of parts) {
    for (const bytes of typeof part === 'string'
      ? [Buffer.from(part)]
      : pageLinkCache.compressed(part.from, part.to)) {
      if (Buffer.isBuffer(bytes)) {
        pending.push(bytes)
      } else {
        compressPending()
        const chunk = await bytes
        if (!chunk.isShared) own += chunk.bytes.length
        compressed.push(chunk)
      }
    }
  }
  compressPending()
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(compressed.reduce((crc, chunk) => combineCrc32(crc, chunk.crc, chunk.crcShift), 0))
  trailer.writeUInt32LE(sum(compressed.map(({ plainLength }) => plainLength)) % 2 ** 32, 4)
  const chunks = [header, ...compressed.map(({ bytes }) => bytes), end, trailer]
  return { length: sum(chunks.map(({ length }) => length)), own, whole: null, chunks: () => chunks }
}

function oneRun(whole: Buffer): PageBody {
  return { length: whole.length, own: headRoom + whole.length, whole, chunks: () => [whole] }
}

const oneText = (whole: string): PageBody => ({
  length: whole.length,
  own: whole.length,
  whole,
  chunks: () => [Buffer.from(whole, 'latin1')],
})

/** Pages have ASCII characters only. */
function bytesOf(text: string): Buffer {
  const bytes = allocateWithHeadRoom(text.length)
  bytes.write(text, 'latin1')
  return bytes
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
