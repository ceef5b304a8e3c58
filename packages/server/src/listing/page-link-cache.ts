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

// The window and tables suit chunks of this length. zlib's defaults take more memory for each.
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
export class PageLinkCache {
  readonly #prefix: string
  readonly #middle = '","label":"'
  readonly #suffix = '","active":false},'
  /** Bytes of a link without its two numbers. */
  readonly #fixed: number
  readonly #bound: number
  readonly #plainChunks = new Map<number, Buffer>()
  readonly #compressedChunks = new Map<number, Promise<CompressedChunk>>()
  #size = 0

  /**
   * `bound`: the maximum of cached plain bytes; the compressed chunks add up to a tenth of it. Links beyond the bound are
   * created for each response.
   */
  constructor(baseUrl: string, bound: number) {
    this.#prefix = `{"url":${JSON.stringify(pageUrl({ baseUrl, extensions: true }, 0)).slice(0, -2)}`
    this.#fixed = this.#prefix.length + this.#middle.length + this.#suffix.length
    this.#bound = bound
  }

  /** Size of the cache. Bytes. */
  size(): number {
    return this.#size
  }

  /** Their length in bytes, computed without creating them. */
  length(from: number, to: number): number {
    return to < from ? 0 : this.#upTo(to) - this.#upTo(from - 1)
  }

  /** Within the bound, views of cached chunks, not copies. */
  *plain(from: number, to: number): Generator<Buffer> {
    for (let first = from; first <= to; ) {
      const index = Math.floor((first - 1) / chunkPages)
      const last = Math.min((index + 1) * chunkPages, to)
      const start = this.#upTo(index * chunkPages)
      yield this.#plainChunk(index)?.subarray(this.#upTo(first - 1) - start, this.#upTo(last) - start) ??
        this.#createLinks(first, last)
      first = last + 1
    }
  }

  /** Complete chunks compressed, incomplete ones plain. */
  *compressed(from: number, to: number): Generator<Promise<CompressedChunk> | Buffer> {
    for (let first = from; first <= to; ) {
      const index = Math.floor((first - 1) / compressedChunkPages)
      const last = Math.min((index + 1) * compressedChunkPages, to)
      if (last - first + 1 === compressedChunkPages) yield this.#compressedChunk(index)
      else yield* this.plain(first, last)
      first = last + 1
    }
  }

  /** Bytes of the links to pages 1 to `last`. */
  #upTo(last: number): number {
    return this.#fixed * last + 2 * digitsUpTo(last)
  }

  #createLinks(from: number, to: number): Buffer {
    const [prefix, middle, suffix] = [this.#prefix, this.#middle, this.#suffix]
    let text = ''
    for (let page = from; page <= to; page += 1) text += prefix + page + middle + page + suffix
    return Buffer.from(text, 'latin1')
  }

  /** Undefined if the chunk lies beyond the bound. */
  #plainChunk(index: number): Buffer | undefined {
    const first = index * chunkPages + 1
    const last = first + chunkPages - 1
    if (!this.#plainChunks.has(index) && this.#upTo(last) <= this.#bound) {
      this.#plainChunks.set(index, this.#createLinks(first, last))
      this.#size += this.#upTo(last) - this.#upTo(first - 1)
    }
    return this.#plainChunks.get(index)
  }

  /** Caches the chunk if its plain bytes lie within the bound. */
  #compressedChunk(index: number): Promise<CompressedChunk> {
    const cached = this.#compressedChunks.get(index)
    if (cached) return cached
    const compressing = this.#compressChunk(index)
    if (this.#upTo((index + 1) * compressedChunkPages) <= this.#bound) {
      this.#compressedChunks.set(index, compressing)
      compressing.then(
        ({ bytes }) => {
          this.#size += bytes.length
        },
        () => this.#compressedChunks.delete(index),
      )
    }
    return compressing
  }

  async #compressChunk(index: number): Promise<CompressedChunk> {
    const first = index * compressedChunkPages + 1
    const last = first + compressedChunkPages - 1
    const bytes = Buffer.concat([...this.plain(first, last)])
    const deflated = deflatedOf(await deflate(bytes, deflateSettings), bytes)
    return { ...deflated, isShared: this.#upTo(last) <= this.#bound }
  }
}

/** The total number of digits in the numbers from 1 to `last`. */
function digitsUpTo(last: number): number {
  let digits = 0
  for (let first = 1; first <= last; first *= 10) digits += last - first + 1
  return digits
}
