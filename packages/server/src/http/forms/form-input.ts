import { malformed } from './form-errors.ts'

const empty: Buffer = Buffer.alloc(0)
const cr = 0x0d
const lf = 0x0a

/**
 * The bytes of a form that have arrived and are not consumed yet. Holds at most one chunk of the source and the start of
 * a delimiter.
 */
export class FormInput {
  /** Starts with a line break, since the first delimiter may be the first line of the body. */
  #held: Buffer = Buffer.from('\r\n')
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

  /** Waits for more bytes; false at the end of the body. */
  async more(): Promise<boolean> {
    // The source reuses the memory of a chunk when the next one is requested.
    if (this.#held.length > 0) this.#held = Buffer.from(this.#held)
    const { done, value } = await this.#source.next()
    if (done) return false
    const chunk = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    this.#held = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk
    return true
  }

  /**
   * The bytes up to the next delimiter (RFC 2046, section 5.1.1), which is consumed too. Returns false when the body ends
   * first. Throws Fault `form-malformed` where the boundary starts a line after a bare CR or LF.
   */
  async *upToDelimiter(): AsyncGenerator<Buffer, boolean, void> {
    for (;;) {
      const at = this.#findDelimiter()
      if (at >= 0) {
        const bytes = this.#take(at)
        this.#take(this.#delimiter.length)
        if (bytes.length > 0) yield bytes
        return true
      }
      const bytes = this.#take(this.#possibleStart())
      if (bytes.length > 0) yield bytes
      if (await this.more()) continue
      if (this.#held.length > 0) yield this.#take(this.#held.length)
      return false
    }
  }

  #findDelimiter(): number {
    const at = this.#held.indexOf(this.#delimiter)
    const before = at < 0 ? this.#held : this.#held.subarray(0, at)
    const bareLf = before.indexOf(this.#afterBareLf)
    if (bareLf >= 0 || before.indexOf(this.#afterBareCr) >= 0)
      throw malformed('a boundary starts a line after a bare CR or LF; lines end in CRLF')
    return at
  }

  /** Where the last bytes may be the start of a delimiter. */
  #possibleStart(): number {
    const from = Math.max(0, this.#held.length - this.#delimiter.length + 1)
    const starts = [this.#held.indexOf(cr, from), this.#held.indexOf(lf, from)].filter((at) => at >= 0)
    return starts.length > 0 ? Math.min(...starts) : this.#held.length
  }

  /** The rest of a line without its CRLF, which is consumed too; `ended` where the body ends within it. */
  async restOfLine(most: number): Promise<{ text: string; ended: boolean }> {
    for (;;) {
      const end = this.#held.indexOf('\r\n')
      if (end > most || (end < 0 && this.#held.length > most)) throw malformed('a boundary line is too long')
      if (end >= 0) {
        const text = this.#take(end).toString('latin1')
        this.#take('\r\n'.length)
        return { text, ended: false }
      }
      if (!(await this.more())) return { text: this.#take(this.#held.length).toString('latin1'), ended: true }
    }
  }

  /**
   * The header lines of a part up to its blank line; null where the body ends first. The CRLF of the blank line stays, since
   * it starts the delimiter of a part without a body.
   */
  async headerBlock(most: number): Promise<string | null> {
    for (;;) {
      const end = this.#held.indexOf('\r\n\r\n')
      if (end > most || (end < 0 && this.#held.length > most + '\r\n\r\n'.length))
        throw malformed('the headers of a part are too long')
      if (end >= 0) {
        const block = this.#take(end).toString('latin1')
        this.#take('\r\n'.length)
        return block
      }
      if (!(await this.more())) return null
    }
  }

  /** Puts a line break before what follows, so that a delimiter may be the next line. */
  startLine(): void {
    this.#held = Buffer.concat([Buffer.from('\r\n'), this.#held])
  }

  #take(length: number): Buffer {
    const taken = this.#held.subarray(0, length)
    this.#held = length < this.#held.length ? this.#held.subarray(length) : empty
    return taken
  }

  async leave(): Promise<void> {
    await this.#source.return?.()
  }
}
