import { createHash } from 'node:crypto'
import { S3Error } from './s3-errors.ts'
import type { ChunkSignatures } from './signature-v4.ts'

// The content coding `aws-chunked`: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html

/** A line with the length of a chunk has a signature of 64 digits. Bytes. */
const maxLine = 256

/** All lines of a trailer together. Bytes. */
const maxTrailer = 4_096

export interface ChunkedBody {
  /** Of the bytes without the coding, as the request declares it. */
  readonly length: number
  /** Null if chunks are not signed. */
  readonly signatures: ChunkSignatures | null
  /** The header that the trailer has, in lower case; empty if the trailer has none, and null if no trailer follows the last chunk. */
  readonly trailer: string | null
  /** Receives the headers of the trailer, in lower case. */
  readonly onTrailer: (headers: ReadonlyMap<string, string>) => void
}

const malformed = () => new S3Error('IncompleteBody', 'The aws-chunked coding of the body is malformed.')

/**
 * Decodes a body as it arrives. What it yields is valid until the next one is requested. Throws S3Error `IncompleteBody` and
 * `SignatureDoesNotMatch`, in any case before it ends.
 */
export async function* decodeChunks(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { length, signatures, trailer, onTrailer }: ChunkedBody,
): AsyncGenerator<Uint8Array, void, void> {
  const input = new Input(source)
  const pieces = new SmallPieces()
  let left = length
  for (;;) {
    const { size, signature } = parseChunkLine(await input.line(maxLine), signatures !== null)
    if (size > left) throw malformed()
    left -= size
    const digest = signatures === null ? null : createHash('sha256')
    for (let missing = size; missing > 0; ) {
      const bytes = await input.some(missing)
      missing -= bytes.byteLength
      digest?.update(bytes)
      if (pieces.take(bytes)) continue
      yield* pieces.joined()
      yield bytes
    }
    if (digest !== null && signatures?.accepts(signature, digest.digest('hex')) !== true)
      throw new S3Error('SignatureDoesNotMatch', 'The signature of a chunk does not match.')
    if (size === 0) break
    if ((await input.line(0)) !== '') throw malformed()
  }
  if (left > 0) throw malformed()
  yield* pieces.joined()
  onTrailer(await readTrailer(input, signatures, trailer))
  if (!(await input.isAtEnd())) throw malformed()
}

function parseChunkLine(
  line: string,
  isSigned: boolean,
): { readonly size: number; readonly signature: string } {
  const [, digits = '', signature] =
    /^([\da-fA-F]{1,12})(?:;chunk-signature=([\da-f]{64}))?$/.exec(line) ?? []
  if (digits === '' || (signature !== undefined) !== isSigned) throw malformed()
  return { size: Number.parseInt(digits, 16), signature: signature ?? '' }
}

/** Its lines, which end with an empty one. Clients leave the last line out if there is no trailer. A signature is the last line. */
async function readTrailer(
  input: Input,
  signatures: ChunkSignatures | null,
  expected: string | null,
): Promise<ReadonlyMap<string, string>> {
  const headers = new Map<string, string>()
  let [signed, size, isSigned] = ['', 0, false]
  while (!(await input.isAtEnd())) {
    const line = await input.line(maxTrailer)
    // Some clients end the lines of a signed trailer with LF and CRLF.
    const text = line.trim()
    if (text === '') {
      if (headers.size > 0 || expected === null || expected === '') break
      continue
    }
    size += line.length + 2
    const colon = text.indexOf(':')
    if (colon < 1 || size > maxTrailer || expected === null || isSigned) throw malformed()
    const name = text.slice(0, colon).toLowerCase()
    const value = text.slice(colon + 1).trim()
    if (name === 'x-amz-trailer-signature' && signatures !== null) {
      if (!signatures.acceptsTrailer(value, signed)) throw wrongTrailer()
      isSigned = true
    } else if (name !== expected || headers.has(name)) throw malformed()
    else {
      headers.set(name, value)
      signed += `${name}:${value}\n`
    }
  }
  if (signatures !== null && expected !== null && !isSigned) throw wrongTrailer()
  return headers
}

const wrongTrailer = () =>
  new S3Error('SignatureDoesNotMatch', 'The signature of the trailer is missing or does not match.')

/** A piece of so many bytes is not copied. */
const largePiece = 4_096

/** Small pieces of a body, joined: each piece that is yielded costs a write to the disk, however short it is. */
class SmallPieces {
  #bytes = Buffer.of()
  #length = 0

  /** Copies a piece if it is small, and if there is room for it. */
  take(piece: Uint8Array): boolean {
    if (piece.byteLength >= largePiece) return false
    if (this.#bytes.byteLength === 0) this.#bytes = Buffer.allocUnsafe(4 * largePiece)
    if (this.#length + piece.byteLength > this.#bytes.byteLength) return false
    this.#bytes.set(piece, this.#length)
    this.#length += piece.byteLength
    return true
  }

  /** What was taken, as one piece; none if nothing was. */
  joined(): readonly Uint8Array[] {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#bytes = Buffer.of()
    this.#length = 0
    return taken.byteLength === 0 ? [] : [taken]
  }
}

/** The bytes of a source that were not read yet. */
class Input {
  readonly #source: AsyncIterator<Uint8Array> | Iterator<Uint8Array>
  #bytes: Uint8Array = new Uint8Array()
  #isEnded = false

  constructor(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
    this.#source = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  }

  /** Whether all bytes were read. */
  async isAtEnd(): Promise<boolean> {
    while (this.#bytes.byteLength === 0 && !this.#isEnded) {
      const { done, value } = await this.#source.next()
      if (done === true) this.#isEnded = true
      else this.#bytes = value
    }
    return this.#bytes.byteLength === 0
  }

  /** Some of the next bytes, one at least and `most` at most. */
  async some(most: number): Promise<Uint8Array> {
    if (await this.isAtEnd()) throw malformed()
    const bytes = this.#bytes.subarray(0, most)
    this.#bytes = this.#bytes.subarray(bytes.byteLength)
    return bytes
  }

  /** The text up to the next CRLF, which is read too, of `most` bytes at most. */
  async line(most: number): Promise<string> {
    let text = ''
    while (text.length <= most + 2) {
      if (await this.isAtEnd()) throw malformed()
      const end = this.#bytes.indexOf(lineFeed) + 1
      const part = await this.some(end > 0 ? end : most + 3)
      text += Buffer.from(part.buffer, part.byteOffset, part.byteLength).toString('latin1')
      if (text.length <= most + 2 && text.endsWith('\r\n')) return text.slice(0, -2)
    }
    throw malformed()
  }
}

const lineFeed = 10
