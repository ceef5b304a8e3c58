import { constants, crc32, createInflate } from 'node:zlib'
import { append, type ByteSource, type Piece, type Range, UnreadableFile } from './pieces.ts'

/** The size and the form of the pixels of a picture or of a frame. */
export interface PixelForm {
  readonly width: number
  readonly height: number
  /** Bits of a pixel. */
  readonly bits: number
  readonly isInterlaced: boolean
}

/** A chunk of compressed pixels. */
export interface PixelChunk extends Range {
  readonly type: 'IDAT' | 'fdAT'
}

/** Numbers of a pixel by the type of the colours: grey, RGB, a palette, grey and RGB with transparency. */
const samples: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }

/** The form that the header of a file states. Throws UnreadableFile. */
export function formOf(header: Buffer): PixelForm {
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const [depth, colours, interlace] = [header.readUInt8(8), header.readUInt8(9), header.readUInt8(12)]
  const bits = depth * (samples[colours] ?? 0)
  if (width === 0 || height === 0 || bits === 0 || interlace > 1) throw damaged('a header without pixels')
  return { width, height, bits, isInterlaced: interlace === 1 }
}

/** The pixels of each pass of Adam7: the first column and row, and the distances to the next ones. */
const passes: readonly (readonly [x: number, y: number, right: number, down: number])[] = [
  ...([
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
  ] as const),
  ...([
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
  ] as const),
]
const onePass: typeof passes = [[0, 0, 1, 1]]

/** Bytes of the rows of a picture, each with the byte of its filter. */
function rowBytes({ width, height, bits, isInterlaced }: PixelForm): number {
  let total = 0
  for (const [x, y, right, down] of isInterlaced ? passes : onePass) {
    const [columns, rows] = [Math.ceil((width - x) / right), Math.ceil((height - y) / down)]
    if (columns > 0 && rows > 0) total += rows * (1 + Math.ceil((columns * bits) / 8))
  }
  return total
}

/** Bytes that are decompressed at once; also the chunks of them that wait for it, and the output of one step. */
const maxBatch = 256 * 1024
const maxPending = 1_000

/** Decompressed bytes of all pictures of a file: more than the largest picture that is compared. */
const maxTotal = 4 * 1024 * 1024 * 1024

/**
 * Appends the chunks of compressed pixels up to the end of their streams. Decoders stop there, so other bytes may follow. The decompressed
 * bytes are only counted: a stream with more than its rows have is refused.
 */
export class PngPixels {
  readonly #source: ByteSource
  readonly #pieces: Piece[]
  #stream: PixelStream | null = null
  #total = 0
  #parts: Buffer[] = []
  #partBytes = 0
  /** Chunks that are not yet appended, with the position of their data in the stream. */
  #pending: (PixelChunk & { readonly at: number })[] = []
  /** Bytes of chunks of the stream. */
  #added = 0

  constructor(source: ByteSource, pieces: Piece[]) {
    this.#source = source
    this.#pieces = pieces
  }

  /** The next chunks are of another picture. */
  async begin(form: PixelForm): Promise<void> {
    await this.end()
    const expected = rowBytes(form)
    this.#total += expected
    if (this.#total > maxTotal) throw damaged('too many pixels')
    this.#stream = new PixelStream(expected)
  }

  async add(chunk: PixelChunk): Promise<void> {
    const end = chunk.end - 4
    let position = dataOf(chunk)
    if (position > end) throw damaged('a chunk has a wrong length')
    this.#pending.push({ ...chunk, at: this.#added })
    this.#added += end - position
    while (position < end && this.#stream?.isEnded === false) {
      const bytes = (await this.#source.readSome(position)).subarray(0, end - position)
      this.#parts.push(bytes)
      this.#partBytes += bytes.byteLength
      position += bytes.byteLength
      if (this.#partBytes >= maxBatch) await this.#decompress()
    }
    if (this.#pending.length >= maxPending) await this.finishPending()
  }

  /** Appends the chunks that were added, so that another one can be appended behind them. */
  async finishPending(): Promise<void> {
    await this.#decompress()
    const used = this.#stream?.used ?? 0
    const pending = this.#pending
    this.#pending = []
    for (const chunk of pending) await this.#append(chunk, used - chunk.at)
  }

  /** Ends the stream. Throws UnreadableFile if it has more than the rows of its picture. */
  async end(): Promise<void> {
    await this.finishPending()
    await this.#stream?.end()
    this.#stream = null
    this.#added = 0
  }

  async #decompress(): Promise<void> {
    const bytes = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts)
    this.#parts = []
    this.#partBytes = 0
    if (bytes && bytes.byteLength > 0) await this.#stream?.write(bytes)
  }

  /** Appends a chunk whose first `used` bytes of data are in the stream. */
  async #append(chunk: PixelChunk, used: number): Promise<void> {
    const { type, start, end } = chunk
    const from = dataOf(chunk)
    if (used >= end - 4 - from) return append(this.#pieces, { from: start, to: end })
    if (used <= 0) {
      // The sequence numbers of an animation have no gaps.
      if (type === 'fdAT') throw damaged('a chunk behind the pixels of a frame')
      return
    }
    const head = Buffer.alloc(8)
    head.writeUInt32BE(from + used - start - 8)
    head.write(type, 4, 'latin1')
    append(this.#pieces, { bytes: head })
    append(this.#pieces, { from: start + 8, to: from + used })
    append(this.#pieces, { bytes: await this.#checksum(head.subarray(4), start + 8, from + used) })
  }

  async #checksum(type: Buffer, start: number, end: number): Promise<Buffer> {
    let sum = crc32(type)
    for (let position = start; position < end; ) {
      const bytes = (await this.#source.readSome(position)).subarray(0, end - position)
      sum = crc32(bytes, sum)
      position += bytes.byteLength
    }
    const checksum = Buffer.alloc(4)
    checksum.writeUInt32BE(sum)
    return checksum
  }
}

/** The position of the compressed bytes. Those of a frame follow a sequence number. */
const dataOf = ({ type, start }: PixelChunk) => start + (type === 'fdAT' ? 12 : 8)

/** A stream of zlib whose decompressed bytes are counted and not kept. */
class PixelStream {
  readonly #inflate
  readonly #ended: Promise<void>
  isEnded = false

  /** The stream of at most `expected` bytes is refused as soon as it has more. */
  constructor(expected: number) {
    // Without the flag, the end of the input would be an error for a picture that ends too early, which decoders show.
    const finishFlush = constants.Z_SYNC_FLUSH
    const chunkSize = Math.max(constants.Z_MIN_CHUNK, Math.min(expected + 1, maxBatch))
    const inflate = createInflate({ chunkSize, finishFlush })
    let left = expected
    inflate.on('data', (part: Buffer) => {
      left -= part.byteLength
      if (left < 0) inflate.destroy(damaged('more pixels than the picture has'))
    })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    inflate.once('end', () => {
      this.isEnded = true
      resolve()
    })
    inflate.once('error', reject)
    // An error is also that of the next write, or of the end.
    promise.catch(() => undefined)
    this.#inflate = inflate
    this.#ended = promise
  }

  /** Bytes that belong to the stream. */
  get used(): number {
    return this.#inflate.bytesWritten
  }

  async write(bytes: Buffer): Promise<void> {
    if (this.isEnded) return
    // If the stream ends within the bytes, the write does not end.
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#inflate.write(bytes, (error) => (error ? reject(error) : resolve()))
    await unlessDamaged(Promise.race([promise, this.#ended]))
  }

  async end(): Promise<void> {
    if (!this.isEnded) this.#inflate.end()
    await unlessDamaged(this.#ended)
    this.#inflate.destroy()
  }
}

async function unlessDamaged(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (cause) {
    if (cause instanceof UnreadableFile) throw cause
    throw new UnreadableFile('not a PNG file: the pixels are damaged', { cause })
  }
}

const damaged = (what: string) => new UnreadableFile(`not a PNG file: ${what}`)
