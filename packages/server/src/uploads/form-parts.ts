import { Fault } from '../core/faults.ts'
import { essenceOf } from '../core/stored-type.ts'
import { dispositionFilename, parseParameters } from '../http/headers.ts'
import type { SentFile } from './new-items.ts'

/** A part of a multipart body. */
export interface Part {
  /** The header lines, decoded as Latin-1, without the last line break. */
  readonly headers: string
  /** All bytes if they have arrived already, otherwise their source, which can be left unread. Valid until the next parts are requested. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array>
}

/** The limit for the headers of a part, for the rest of a boundary line, and for the text before and after all parts. Bytes. */
const maxHeaderSize = 16_384

/** The most that a form adds to the bodies of its parts, for each part and around them. Bytes. */
export const maxPartOverhead: number = 2 * maxHeaderSize + 256

/**
 * Yields the parts of a multipart body (RFC 2046, section 5.1.1) as they arrive: together those that have arrived completely, and each
 * other part alone. Requesting the next parts skips the unread rest of this one. The body is read to its end, so that a part after
 * the last boundary is found. If fewer than `minStreamed` bytes of a part have arrived, it waits for one more chunk, which may complete it.
 * Only for one, because each chunk is searched together with what preceded it. Throws Fault `form-malformed`, `parts-too-many` and `upload-incomplete`, and the errors of the source.
 */
export async function* readParts(
  source: AsyncIterable<Uint8Array>,
  boundary: string,
  maxParts: number,
  minStreamed = 4_096,
): AsyncGenerator<readonly Part[], void, void> {
  const input = new FormInput(source, boundary)
  let count = 0
  let hasWaited = false
  const countPart = () => {
    count += 1
    if (count > maxParts)
      throw new Fault('parts-too-many', `A form may have at most ${maxParts} parts.`, {
        members: { maximum: maxParts, unit: 'parts' },
      })
  }
  try {
    if (!(await input.readMore())) return
    if (!(await skipToDelimiter(input))) throw malformedForm('the body does not contain its boundary')
    for (;;) {
      const whole: Part[] = []
      for (let part = takePart(input); part !== null; part = takePart(input)) {
        countPart()
        whole.push(part)
        hasWaited = false
      }
      if (whole.length > 0) yield whole
      if (!hasWaited && input.length < minStreamed) {
        hasWaited = true
        if (await input.readMore()) continue
      }
      hasWaited = false
      if (isClosing(input.takeLine(maxHeaderSize) ?? (await readLine(input)))) break
      countPart()
      const headers = input.takeHeaderBlock(maxHeaderSize) ?? (await readHeaderBlock(input))
      const state: BodyState = { ended: false, blankLine }
      yield [{ headers, body: readBody(input, state) }]
      while (!state.ended) for await (const _ of readBody(input, state));
    }
    input.insertLineBreak()
    if (await skipToDelimiter(input)) throw malformedForm('a boundary follows the closing boundary')
  } finally {
    await input.close()
  }
}

/** The length of the line break before the body of a part. */
const blankLine = '\r\n'.length

/** Takes the next part. Takes nothing if it has not arrived completely, and at the closing delimiter. */
const takePart = (input: FormInput): Part | null =>
  input.takeIfComplete(() => {
    const line = input.takeLine(maxHeaderSize)
    const headers = line === null || isClosing(line) ? null : input.takeHeaderBlock(maxHeaderSize)
    const body = headers === null ? null : input.takeToDelimiter()
    return headers === null || body === null ? null : { headers, body: body.subarray(blankLine) }
  })

interface BodyState {
  ended: boolean
  /** The number of bytes of the line break before the body that are not skipped yet. */
  blankLine: number
}

async function* readBody(input: FormInput, state: BodyState): AsyncGenerator<Buffer, void, void> {
  if (state.ended) return
  const source = input.readToDelimiter()
  for (;;) {
    const { done, value } = await source.next()
    if (done) {
      if (!value) throw incompleteForm()
      state.ended = true
      return
    }
    const bytes = value.subarray(state.blankLine)
    state.blankLine -= value.length - bytes.length
    if (bytes.length > 0) yield bytes
  }
}

/** Whether the rest of a delimiter line is that of the closing one: `--`, then transport padding. Throws Fault `form-malformed`. */
function isClosing(line: string): boolean {
  if (line === '') return false
  if (/^--[ \t]*$/.test(line)) return true
  if (!/^[ \t]*$/.test(line)) throw malformedForm('a boundary line has other characters after the boundary')
  return false
}

/** As takeLine, with bytes that arrive later. Only the closing delimiter needs no CRLF. */
async function readLine(input: FormInput): Promise<string> {
  while (await input.readMore()) {
    const line = input.takeLine(maxHeaderSize)
    if (line !== null) return line
  }
  const rest = input.takeRest().toString('latin1')
  if (/^-?[ \t]*\r?$|^--[ \t]*\r$/.test(rest)) throw incompleteForm()
  return rest
}

/** As takeHeaderBlock, with bytes that arrive later. */
async function readHeaderBlock(input: FormInput): Promise<string> {
  while (await input.readMore()) {
    const block = input.takeHeaderBlock(maxHeaderSize)
    if (block !== null) return block
  }
  throw incompleteForm()
}

const partHeader = 'content-disposition'

/**
 * Skips the preamble or the epilogue (RFC 2046 requires to ignore them). Returns whether a delimiter follows. Throws Fault
 * `form-malformed` where the skipped text looks like a part.
 */
async function skipToDelimiter(input: FormInput): Promise<boolean> {
  const source = input.readToDelimiter()
  let length = 0
  for (let tail = ''; ; ) {
    const { done, value } = await source.next()
    if (done) return value
    length += value.length
    if (length > maxHeaderSize)
      throw malformedForm('the text before the first boundary or after the last one is too long')
    const text = tail + value.toString('latin1').toLowerCase()
    if (text.includes(partHeader))
      throw malformedForm('there is a part before the first boundary or after the last one')
    tail = text.slice(-partHeader.length)
  }
}

/**
 * The headers of nearly all file parts: those that browsers and curl send for a name without quotes, percent signs, backslashes and
 * characters outside ASCII.
 */
const plainFile =
  /^content-disposition: form-data; name="[ !#$&-[\]-~]+"; filename="([ !#$&-[\]-~]+)"\r\ncontent-type: ([\w.+-]+\/[\w.+-]+)$/i

/**
 * Reads the header lines of a part, which are Latin-1, without the last line break (RFC 7578, section 4). Returns null where the part
 * is a field. Throws Fault `form-malformed`.
 */
export function readFileHeaders(block: string, boundary: string): SentFile | null {
  // The complete parser takes a fifteenth of the time of a small file in a form. A test compares both.
  const [, filename, declaredType] = plainFile.exec(block) ?? []
  return filename !== undefined && declaredType !== undefined
    ? { filename, declaredType }
    : parseFileHeaders(block, boundary)
}

/** The name of a part, whose headers have been read. */
export const readFieldName = (block: string, boundary: string): string | undefined =>
  parseParameters(parseHeaders(block, boundary).get(partHeader) ?? '')?.parameters.get('name')

/** As readFileHeaders, for all headers. */
export function parseFileHeaders(block: string, boundary: string): SentFile | null {
  const headers = parseHeaders(block, boundary)
  const disposition = parseParameters(headers.get('content-disposition') ?? '')
  if (disposition?.value !== 'form-data' || !disposition.parameters.get('name'))
    throw malformedForm(
      'every part needs a Content-Disposition of form-data with a name that is not empty, and with no parameter twice',
    )
  for (const name of disposition.parameters.keys())
    if (/\*\d/.test(name)) throw malformedForm(`${name} is a continued parameter, which forms cannot have`)
  const encoding = headers.get('content-transfer-encoding')
  if (encoding !== undefined && !/^(7bit|8bit|binary)$/i.test(encoding))
    throw malformedForm('a part has a Content-Transfer-Encoding other than 7bit, 8bit or binary')
  const filename = dispositionFilename(disposition)
  if (filename === undefined) throw malformedForm('the filename* of a part is malformed')
  const declaredType = headers.get('content-type') ?? null
  if (filename !== null) {
    const isEscaped = !disposition.parameters.has('filename*')
    return { filename: isEscaped ? unescapeName(filename) : filename, declaredType }
  }
  // RFC 7578, section 4.4: text/plain unless another type is given.
  const type = essenceOf(declaredType ?? 'text/plain')
  if (type.startsWith('multipart/'))
    throw malformedForm('a part contains parts; send each file as a part of the form')
  return isFieldType(type) ? null : { filename, declaredType }
}

/** The types of fields. A part of any other type is a file, even without a filename. */
const isFieldType = (type: string): boolean =>
  /^(text\/.*|application\/(json|xml|x-www-form-urlencoded|.*\+(json|xml)))$/.test(type)

/** Browsers and curl escape quotes in names as `%22` and line breaks as `%0D` and `%0A`; stored names have no line breaks. */
const unescapeName = (name: string): string => name.replaceAll('%22', '"').replace(/%0[ad]/gi, '')

/** Headers that a part can have only once. */
const singleHeaders = new Set(['content-disposition', 'content-type', 'content-transfer-encoding'])

/** Parses the header fields of a part (RFC 5322, section 2.2) and unfolds their lines. Names are in lower case. */
function parseHeaders(block: string, boundary: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (const line of block.split(/\r\n(?![ \t])/)) {
    if (line.startsWith(`--${boundary}`))
      throw malformedForm('there is a boundary among the headers of a part')
    const unfolded = line.replace(/\r\n(?=[ \t])/g, '')
    const [, rawName, value] = /^([\w!#$%&'*+.^`|~-]+):([^\r\n]*)$/.exec(unfolded) ?? []
    if (rawName === undefined || value === undefined) throw malformedForm('a header of a part is malformed')
    const name = rawName.toLowerCase()
    // Only a quoted filename can contain any character.
    if (value.includes('\0') && name !== 'content-disposition')
      throw malformedForm('a header of a part contains NUL')
    if (singleHeaders.has(name) && headers.has(name)) throw malformedForm(`a part has two ${name} headers`)
    headers.set(name, trimBlanks(value))
  }
  return headers
}

/** Without spaces and tabs at both ends. A regular expression would take quadratic time for many of them in the middle. */
function trimBlanks(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text[start])) start += 1
  while (end > start && isBlank(text[end - 1])) end -= 1
  return text.slice(start, end)
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

/** `why` completes a sentence after a colon. */
export const malformedForm = (why: string) => new Fault('form-malformed', `The form cannot be read: ${why}.`)

const incompleteForm = () => new Fault('upload-incomplete', 'The form ended before its last boundary.')

const empty: Buffer = Buffer.alloc(0)
const cr = 0x0d
const lf = 0x0a

/**
 * The received bytes of a form that are not consumed yet: at most a chunk of the source and what preceded it, which the callers limit. The
 * `take` methods are synchronous, because most parts of small files arrive within one chunk. They return null if they
 * need more bytes. The returned bytes are valid until the next `readMore`.
 */
class FormInput {
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
