import { Fault } from '../../core/fault.ts'
import { incompleteForm, malformedForm } from './form-errors.ts'
import { FormInput } from './form-input.ts'

/** A part of a multipart body. */
export interface Part {
  /** Keyed by names in lower case; the values are decoded as Latin-1. */
  readonly headers: ReadonlyMap<string, string>
  /** Can be left unread. */
  readonly body: AsyncIterable<Uint8Array>
}

/** The limit for the headers of a part, and for the rest of a boundary line. Bytes. */
const maxHeaderSize = 16_384

/**
 * Yields the parts of a multipart body (RFC 2046, section 5.1.1) as they arrive. Requesting the next part skips the unread
 * rest of the current one. The body is read to its end, so that a part after the last boundary is found.
 * Throws Fault `form-malformed`, `parts-too-many` and `upload-incomplete`, and the errors of the source.
 */
export async function* readParts(
  source: AsyncIterable<Uint8Array>,
  boundary: string,
  maxParts: number,
): AsyncGenerator<Part, void, void> {
  const input = new FormInput(source, boundary)
  try {
    if (!(await input.readMore())) return
    if (!(await skipToDelimiter(input))) throw malformedForm('the body does not contain its boundary')
    for (let count = 1; (await readDelimiterLine(input)) === 'delimiter'; count += 1) {
      if (count > maxParts) throw new Fault('parts-too-many', `A form may have at most ${maxParts} parts.`)
      const headerBlock = await input.readHeaderBlock(maxHeaderSize)
      if (headerBlock === null) throw incompleteForm()
      const state: BodyState = { ended: false, blankLine: '\r\n'.length }
      yield { headers: parsePartHeaders(headerBlock, boundary), body: readBody(input, state) }
      while (!state.ended) for await (const _ of readBody(input, state));
    }
    if (await skipToDelimiter(input)) throw malformedForm('a boundary follows the closing boundary')
  } finally {
    await input.close()
  }
}

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

/** Reads the rest of a delimiter line: transport padding, after `--` in the closing delimiter. */
async function readDelimiterLine(input: FormInput): Promise<'delimiter' | 'close-delimiter'> {
  const { text, ended } = await input.readLine(maxHeaderSize)
  if (/^--[ \t]*$/.test(text)) {
    if (!ended) input.insertLineBreak()
    return 'close-delimiter'
  }
  if (ended && /^(--?)?[ \t]*\r?$/.test(text)) throw incompleteForm()
  if (!/^[ \t]*$/.test(text)) throw malformedForm('a boundary line has other characters after the boundary')
  return 'delimiter'
}

const partHeader = 'content-disposition'

/**
 * Skips the preamble or the epilogue (RFC 2046 requires to ignore them). Returns whether a delimiter follows. Throws Fault
 * `form-malformed` where the skipped text looks like a part.
 */
async function skipToDelimiter(input: FormInput): Promise<boolean> {
  const source = input.readToDelimiter()
  for (let tail = ''; ; ) {
    const { done, value } = await source.next()
    if (done) return value
    const text = tail + value.toString('latin1').toLowerCase()
    if (text.includes(partHeader))
      throw malformedForm('there is a part before the first boundary or after the last one')
    tail = text.slice(-partHeader.length)
  }
}

/** Headers that a part can have only once. */
const singleHeaders = new Set(['content-disposition', 'content-type', 'content-transfer-encoding'])

/**
 * Parses the header fields of a part (RFC 5322, section 2.2) and unfolds their lines. Names are in lower case.
 * Throws Fault `form-malformed`.
 */
function parsePartHeaders(block: string, boundary: string): ReadonlyMap<string, string> {
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
    headers.set(name, value.replace(/^[ \t]+|[ \t]+$/g, ''))
  }
  return headers
}
