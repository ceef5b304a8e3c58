import { malformedForm } from './form-errors.ts'

const empty: Buffer = Buffer.alloc(0)
const cr = 0x0d
const lf = 0x0a

/** The received bytes of a form that are not consumed yet: at most one chunk of the source and the start of a delimiter. */
export class FormInput {
  /** Starts with a line break, because the first delimiter can be the first line of the body. */
  #buffer: Buffer = Buffer.from('\r\n')
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
    if (this.#buffer.length > 0) this.#buffer = Buffer.from(this.#buffer)
    const { done, value } = await this.#source.next()
    if (done) return false
    const chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    this.#buffer = this.#buffer.length > 0 ? Buffer.concat([this.#buffer, chunk]) : chunk
    return true
  }

  /**
   * Yields the bytes up to the next delimiter (RFC 2046, section 5.1.1) and consumes the delimiter. Returns false where the
   * body ends first. Throws Fault `form-malformed` where the boundary starts a line after a bare CR or LF.
   */
  async *readToDelimiter(): AsyncGenerator<Buffer, boolean, void> {
    for (;;) {
      const at = this.#findDelimiter()
      if (at >= 0) {
        const bytes = this.#consume(at)
        this.#consume(this.#delimiter.length)
        if (bytes.length > 0) yield bytes
        return true
      }
      const bytes = this.#consume(this.#partialDelimiterAt())
      if (bytes.length > 0) yield bytes
      if (await this.readMore()) continue
      if (this.#buffer.length > 0) yield this.#consume(this.#buffer.length)
      return false
    }
  }

  #findDelimiter(): number {
    const at = this.#buffer.indexOf(this.#delimiter)
    const before = at < 0 ? this.#buffer : this.#buffer.subarray(0, at)
    const bareLf = before.indexOf(this.#afterBareLf)
    if (bareLf >= 0 || before.indexOf(this.#afterBareCr) >= 0)
      throw malformedForm('a boundary starts a line after a bare CR or LF; lines end in CRLF')
    return at
  }

  /** The position from which the last bytes may be the start of a delimiter. */
  #partialDelimiterAt(): number {
    const from = Math.max(0, this.#buffer.length - this.#delimiter.length + 1)
    const starts = [this.#buffer.indexOf(cr, from), this.#buffer.indexOf(lf, from)].filter((at) => at >= 0)
    return starts.length > 0 ? Math.min(...starts) : this.#buffer.length
  }

  /** Consumes the rest of a line and its CRLF. `ended` is true where the body ends before the CRLF. */
  async readLine(maxLength: number): Promise<{ text: string; ended: boolean }> {
    for (;;) {
      const end = this.#buffer.indexOf('\r\n')
      if (end > maxLength || (end < 0 && this.#buffer.length > maxLength))
        throw malformedForm('a boundary line is too long')
      if (end >= 0) {
        const text = this.#consume(end).toString('latin1')
        this.#consume('\r\n'.length)
        return { text, ended: false }
      }
      if (!(await this.readMore()))
        return { text: this.#consume(this.#buffer.length).toString('latin1'), ended: true }
    }
  }

  /**
   * Consumes the header lines of a part; returns null where the body ends first. The CRLF of the blank line stays, because
   * it belongs to the delimiter where the part has no body.
   */
  async readHeaderBlock(maxLength: number): Promise<string | null> {
    for (;;) {
      const end = this.#buffer.indexOf('\r\n\r\n')
      if (end > maxLength || (end < 0 && this.#buffer.length > maxLength + '\r\n\r\n'.length))
        throw malformedForm('the headers of a part are too long')
      if (end >= 0) {
        const block = this.#consume(end).toString('latin1')
        this.#consume('\r\n'.length)
        return block
      }
      if (!(await this.readMore())) return null
    }
  }

  /** Inserts a line break, so that the next line can be a delimiter. */
  insertLineBreak(): void {
    this.#buffer = Buffer.concat([Buffer.from('\r\n'), this.#buffer])
  }

  #consume(length: number): Buffer {
    const taken = this.#buffer.subarray(0, length)
    this.#buffer = length < this.#buffer.length ? this.#buffer.subarray(length) : empty
    return taken
  }

  /** Ends the source. */
  async close(): Promise<void> {
    await this.#source.return?.()
  }
}
