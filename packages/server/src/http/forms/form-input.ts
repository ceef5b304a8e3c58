import { Fault } from '../../core/fault.ts'

/** `why` completes a sentence after a colon. */
export const malformedForm = (why: string) => new Fault('form-malformed', `The form cannot be read: ${why}.`)

export const incompleteForm = () => new Fault('upload-incomplete', 'The form ended before its last boundary.')

const empty: Buffer = Buffer.alloc(0)
const cr = 0x0d
const lf = 0x0a

/**
 * The received bytes of a form that are not consumed yet: at most a chunk of the source and what preceded it, which the callers limit. The
 * `take` methods are synchronous, because most parts of small files arrive within one chunk. They return null if they
 * need more bytes. The returned bytes are valid until the next `readMore`.
 */
export class FormInput {
  /** Starts with a line break, because the first delimiter can be the first line of the body. */
  #buffer: Buffer = Buffer.from('\r\n')
  /** The position of the first byte that is not consumed. */
  #at = 0
  readonly #source: AsyncIterator<Uint8Array>
  readonly #delimiter: Buffer
  readonly #afterBareLf: Buffer
  readonly #afterBareCr: Buffer

  constructor(source: AsyncIterable<Uint8Array>, boundary: string) {
    this.#source = source[Symbol.asyncIterator]()
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
    this.#afterBareLf = Buffer.from(`\n--${boundary}`, 'latin1')
    this.#afterBareCr = Buffer.from(`\r--${boundary}`, 'latin1')
  }

  /** Reads the next chunk. Returns false at the end of the body. */
  async readMore(): Promise<boolean> {
    // The source frees the memory of a chunk when the next one is requested.
    this.#buffer = this.#at < this.#buffer.length ? Buffer.from(this.#buffer.subarray(this.#at)) : empty
    this.#at = 0
    const { done, value } = await this.#source.next()
    if (done) return false
    const chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    this.#buffer = this.#buffer.length > 0 ? Buffer.concat([this.#buffer, chunk]) : chunk
    return true
  }

  /** The number of bytes that have arrived and are not consumed. */
  get length(): number {
    return this.#buffer.length - this.#at
  }

  /** Returns what `take` returns. If it is null, nothing is consumed. */
  takeIfComplete<T>(take: () => T | null): T | null {
    const at = this.#at
    const taken = take()
    if (taken === null) this.#at = at
    return taken
  }

  /**
   * Takes the bytes up to the next delimiter (RFC 2046, section 5.1.1) and consumes the delimiter. Null if it has not
   * arrived, and if the bytes are malformed, which readToDelimiter reports.
   */
  takeToDelimiter(): Buffer | null {
    const end = this.#buffer.indexOf(this.#afterBareLf, this.#at) - '\r'.length
    if (end < this.#at || this.#buffer[end] !== cr) return null
    const bytes = this.#buffer.subarray(this.#at, end)
    if (bytes.includes(this.#afterBareCr)) return null
    this.#at = end + this.#delimiter.length
    return bytes
  }

  /** Whether the boundary starts a line after a bare CR or LF in the bytes before `end`. */
  #hasBareLineBreak(end: number): boolean {
    const bytes = this.#buffer.subarray(this.#at, end)
    return bytes.indexOf(this.#afterBareLf) >= 0 || bytes.indexOf(this.#afterBareCr) >= 0
  }

  /**
   * Yields the bytes up to the next delimiter as they arrive, and consumes the delimiter. Returns false where the body ends
   * first. Throws Fault `form-malformed` where the boundary starts a line after a bare CR or LF.
   */
  async *readToDelimiter(): AsyncGenerator<Buffer, boolean, void> {
    for (;;) {
      const last = this.takeToDelimiter()
      if (last !== null) {
        if (last.length > 0) yield last
        return true
      }
      if (this.#hasBareLineBreak(this.#buffer.length))
        throw malformedForm('a boundary starts a line after a bare CR or LF; lines end in CRLF')
      const bytes = this.#take(this.#partialDelimiterAt())
      if (bytes.length > 0) yield bytes
      if (await this.readMore()) continue
      const rest = this.takeRest()
      if (rest.length > 0) yield rest
      return false
    }
  }

  /** The position from which the last bytes may be the start of a delimiter. */
  #partialDelimiterAt(): number {
    const from = Math.max(this.#at, this.#buffer.length - this.#delimiter.length + 1)
    const starts = [this.#buffer.indexOf(cr, from), this.#buffer.indexOf(lf, from)].filter((at) => at >= 0)
    return starts.length > 0 ? Math.min(...starts) : this.#buffer.length
  }

  /** Takes the rest of a line and its CRLF. Null if the CRLF has not arrived. */
  takeLine(maxLength: number): string | null {
    const end = this.#buffer.indexOf('\r\n', this.#at)
    const length = (end < 0 ? this.#buffer.length : end) - this.#at
    if (length > maxLength) throw malformedForm('a boundary line is too long')
    if (end < 0) return null
    return this.#takeText(end)
  }

  /**
   * Takes the header lines of a part. Null if the blank line after them has not arrived. The CRLF of the blank line stays,
   * because it belongs to the delimiter where the part has no body.
   */
  takeHeaderBlock(maxLength: number): string | null {
    const end = this.#buffer.indexOf('\r\n\r\n', this.#at)
    const length = (end < 0 ? this.#buffer.length - '\r\n\r\n'.length : end) - this.#at
    if (length > maxLength) throw malformedForm('the headers of a part are too long')
    if (end < 0) return null
    return this.#takeText(end)
  }

  /** Takes all bytes that have arrived. */
  takeRest(): Buffer {
    return this.#take(this.#buffer.length)
  }

  /** Inserts a line break, so that the next line can be a delimiter. */
  insertLineBreak(): void {
    this.#buffer = Buffer.concat([Buffer.from('\r\n'), this.takeRest()])
    this.#at = 0
  }

  /** Takes the text before `end`, and the CRLF there. */
  #takeText(end: number): string {
    const text = this.#buffer.toString('latin1', this.#at, end)
    this.#at = end + '\r\n'.length
    return text
  }

  #take(end: number): Buffer {
    const taken = this.#buffer.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  /** Ends the source. */
  async close(): Promise<void> {
    await this.#source.return?.()
  }
}
