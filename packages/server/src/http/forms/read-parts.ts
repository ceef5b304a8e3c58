import { Fault } from '../../core/fault.ts'
import { endedEarly, malformed } from './form-errors.ts'
import { FormInput } from './form-input.ts'

/** A part of a multipart body. */
export interface Part {
  /** By their names in lower case; the values' bytes as Latin-1. */
  readonly headers: ReadonlyMap<string, string>
  /** May be left unread. */
  readonly body: AsyncIterable<Uint8Array>
}

/** The headers of one part, and what follows a boundary on its line. Bytes. */
const maxHead = 16_384

/**
 * The parts of a multipart body (RFC 2046, section 5.1.1) one after another, as they arrive. Requesting the next part skips
 * what is unread of the current one. The body is read to its end, since a part may not stand outside the boundaries.
 * Throws Fault `form-malformed`, `parts-too-many` and `upload-incomplete`, and what the source throws.
 */
export async function* readParts(
  source: AsyncIterable<Uint8Array>,
  boundary: string,
  maxParts: number,
): AsyncGenerator<Part, void, void> {
  const input = new FormInput(source, boundary)
  try {
    if (!(await input.more())) return
    if (!(await skipOutside(input))) throw malformed('its boundary is nowhere in the body')
    for (let count = 1; (await delimiterLine(input)) === 'delimiter'; count += 1) {
      if (count > maxParts) throw new Fault('parts-too-many', `A form may have at most ${maxParts} parts.`)
      const head = await input.headerBlock(maxHead)
      if (head === null) throw endedEarly()
      const state: BodyState = { ended: false, blankLine: '\r\n'.length }
      yield { headers: parsePartHeaders(head, boundary), body: readBody(input, state) }
      while (!state.ended) for await (const _ of readBody(input, state));
    }
    if (await skipOutside(input)) throw malformed('a boundary follows the last one')
  } finally {
    await input.leave()
  }
}

interface BodyState {
  ended: boolean
  /** Bytes of the line break between headers and body that are still to be dropped. */
  blankLine: number
}

async function* readBody(input: FormInput, state: BodyState): AsyncGenerator<Buffer, void, void> {
  if (state.ended) return
  const source = input.upToDelimiter()
  for (;;) {
    const { done, value } = await source.next()
    if (done) {
      if (!value) throw endedEarly()
      state.ended = true
      return
    }
    const bytes = value.subarray(state.blankLine)
    state.blankLine -= value.length - bytes.length
    if (bytes.length > 0) yield bytes
  }
}

/** The rest of the line after a delimiter: transport padding, after `--` for the last one. */
async function delimiterLine(input: FormInput): Promise<'delimiter' | 'close-delimiter'> {
  const { text, ended } = await input.restOfLine(maxHead)
  if (/^--[ \t]*$/.test(text)) {
    if (!ended) input.startLine()
    return 'close-delimiter'
  }
  if (ended && /^(--?)?[ \t]*\r?$/.test(text)) throw endedEarly()
  if (!/^[ \t]*$/.test(text)) throw malformed('a boundary does not stand alone on its line')
  return 'delimiter'
}

const partHeader = 'content-disposition'

/**
 * Skips what stands before the first delimiter or after the last one (RFC 2046: to be ignored). Returns whether a delimiter
 * follows. Throws Fault `form-malformed` where that looks like a part.
 */
async function skipOutside(input: FormInput): Promise<boolean> {
  const source = input.upToDelimiter()
  for (let tail = ''; ; ) {
    const { done, value } = await source.next()
    if (done) return value
    const text = tail + value.toString('latin1').toLowerCase()
    if (text.includes(partHeader))
      throw malformed('a part stands before the first boundary or after the last one')
    tail = text.slice(-partHeader.length)
  }
}

/** Each may appear once in a part. */
const single = new Set(['content-disposition', 'content-type', 'content-transfer-encoding'])

/**
 * The header fields of a part (RFC 5322, section 2.2), folded lines joined. Names are in lower case.
 * Throws Fault `form-malformed`.
 */
function parsePartHeaders(block: string, boundary: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (const line of block.split(/\r\n(?![ \t])/)) {
    if (line.startsWith(`--${boundary}`)) throw malformed('a boundary stands among the headers of a part')
    const unfolded = line.replace(/\r\n(?=[ \t])/g, '')
    const [, sentName, value] = /^([\w!#$%&'*+.^`|~-]+):([^\r\n]*)$/.exec(unfolded) ?? []
    if (sentName === undefined || value === undefined) throw malformed('a header of a part is malformed')
    const name = sentName.toLowerCase()
    // A quoted filename may hold any character; nothing else does.
    if (value.includes('\0') && name !== 'content-disposition')
      throw malformed('a header of a part holds NUL')
    if (single.has(name) && headers.has(name)) throw malformed(`a part has two ${name} headers`)
    headers.set(name, value.replace(/^[ \t]+|[ \t]+$/g, ''))
  }
  return headers
}
