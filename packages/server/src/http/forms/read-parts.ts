import { Fault } from '../../core/fault.ts'
import { FormInput, incompleteForm, malformedForm } from './form-input.ts'

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
    if (count > maxParts) throw new Fault('parts-too-many', `A form may have at most ${maxParts} parts.`)
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
