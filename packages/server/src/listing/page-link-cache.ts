import { promisify } from 'node:util'
import { constants, crc32, deflateRaw, deflateRawSync } from 'node:zlib'
import { crc32Shift } from '../core/crc32.ts'
import { pageUrl } from '../core/page.ts'

// A page links to every page (docs/interface.md L7), so the size of a response grows with the bucket. The link to a page
// that is not the current one is the same in every response, so its bytes are created once and shared. Within the bound
// of the cache, the only work that grows with the number of pages is writing the bytes.

const deflate = promisify(deflateRaw)

/** Pages in a chunk of plain links, the unit of caching and writing: 350 kB. */
const chunkPages = 4096

/** Pages in a compressed chunk: 40 kB in 3 kB. A response compresses at most two incomplete chunks itself. */
export const compressedChunkPages = 512

/** Raw deflate blocks that end with a full flush, so that they can be concatenated, and the values for gzip's trailer. */
export interface Deflated {
  readonly bytes: Buffer
  readonly plainLength: number
  readonly crc: number
  /** See core/crc32.ts. */
  readonly crcShift: number
}

// The window and tables suit chunks of this length. zlib's defaults take four times as much memory for each.
const deflateSettings = { level: 6, windowBits: 14, memLevel: 7, finishFlush: constants.Z_FULL_FLUSH }

function deflatedOf(view: Buffer, plain: Buffer): Deflated {
  // A copy, because zlib returns a view of 16 kB. allocUnsafeSlow, because small Buffers share a pool of 64 kB.
  const bytes = Buffer.allocUnsafeSlow(view.length)
  view.copy(bytes)
  return { bytes, plainLength: plain.length, crc: crc32(plain), crcShift: crc32Shift(plain.length) }
}

/** Compresses `plain` for the middle of a gzip stream. Synchronous: for no more than two chunks. */
export const deflateChunkSync = (plain: Buffer): Deflated =>
  deflatedOf(deflateRawSync(plain, deflateSettings), plain)

/** A complete chunk. `isShared` is true if the cache holds it for all responses. */
interface CompressedChunk extends Deflated {
  readonly isShared: boolean
}

/** The links to pages `from` to `to`, each followed by a comma; empty if `to` is less than `from`. */
export interface PageLinkCache {
  /** Their length in bytes, computed without creating them. */
  length(from: number, to: number): number
  /** Within the bound, views of cached chunks, not copies. */
  plain(from: number, to: number): Iterable<Buffer>
  /** Complete chunks compressed, incomplete ones plain. */
  compressed(from: number, to: number): Iterable<Promise<CompressedChunk> | Buffer>
  /** Size of the cache. Bytes. */
  size(): number
}

/**
 * `bound`: the maximum of cached plain bytes; the compressed chunks add up to a tenth of it. Links beyond the bound are
 * created for each response.
 */
export function createPageLinkCache(baseUrl: string, bound: number): PageLinkCache {
  const prefix = `{"url":${JSON.stringify(pageUrl({ baseUrl, extensions: true }, 0)).slice(0, -2)}`
  const middle = '","label":"'
  const suffix = '","active":false},'
  const fixed = prefix.length + middle.length + suffix.length
  const plainChunks = new Map<number, Buffer>()
  const compressedChunks = new Map<number, Promise<CompressedChunk>>()
  let size = 0

  /** Bytes of the links to pages 1 to `last`. */
  const upTo = (last: number) => fixed * last + 2 * digitsUpTo(last)

  function createLinks(from: number, to: number): Buffer {
    let text = ''
    for (let page = from; page <= to; page += 1) text += prefix + page + middle + page + suffix
    return Buffer.from(text, 'latin1')
  }

  /** Undefined if the chunk lies beyond the bound. */
  function plainChunk(index: number): Buffer | undefined {
    const first = index * chunkPages + 1
    const last = first + chunkPages - 1
    if (!plainChunks.has(index) && upTo(last) <= bound) {
      plainChunks.set(index, createLinks(first, last))
      size += upTo(last) - upTo(first - 1)
    }
    return plainChunks.get(index)
  }

  function* plain(from: number, to: number) {
    for (let first = from; first <= to; ) {
      const index = Math.floor((first - 1) / chunkPages)
      const last = Math.min((index + 1) * chunkPages, to)
      const start = upTo(index * chunkPages)
      yield plainChunk(index)?.subarray(upTo(first - 1) - start, upTo(last) - start) ??
        createLinks(first, last)
      first = last + 1
    }
  }

  async function compressChunk(index: number): Promise<CompressedChunk> {
    const first = index * compressedChunkPages + 1
    const last = first + compressedChunkPages - 1
    const bytes = Buffer.concat([...plain(first, last)])
    return { ...deflatedOf(await deflate(bytes, deflateSettings), bytes), isShared: upTo(last) <= bound }
  }

  /** Caches the chunk if its plain bytes lie within the bound. */
  function compressedChunk(index: number): Promise<CompressedChunk> {
    const cached = compressedChunks.get(index)
    if (cached) return cached
    const compressing = compressChunk(index)
    if (upTo((index + 1) * compressedChunkPages) <= bound) {
      compressedChunks.set(index, compressing)
      compressing.then(
        ({ bytes }) => {
          size += bytes.length
        },
        () => compressedChunks.delete(index),
      )
    }
    return compressing
  }

  return {
    plain,
    size: () => size,
    length: (from, to) => (to < from ? 0 : upTo(to) - upTo(from - 1)),

    *compressed(from, to) {
      for (let first = from; first <= to; ) {
        const index = Math.floor((first - 1) / compressedChunkPages)
        const last = Math.min((index + 1) * compressedChunkPages, to)
        if (last - first + 1 === compressedChunkPages) yield compressedChunk(index)
        else yield* plain(first, last)
        first = last + 1
      }
    },
  }
}

/** The total number of digits in the numbers from 1 to `last`. */
function digitsUpTo(last: number): number {
  let digits = 0
  for (let first = 1; first <= last; first *= 10) digits += last - first + 1
  return digits
}
