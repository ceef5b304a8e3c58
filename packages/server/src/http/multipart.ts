import { Fault } from '../core/fault.ts'

/** A part of a multipart body. */
export interface Part {
  /** By their names in lower case; the values' bytes as Latin-1. */
  readonly headers: ReadonlyMap<string, string>
  /** May be left unread. */
  readonly body: AsyncIterable<Uint8Array>
}

/** The headers of one part. Bytes. */
const maxHead = 16_384

/**
 * The parts of a multipart body (RFC 2046, section 5.1.1) one after another, as they arrive; no more of the body is
 * held than a chunk of `source` and a boundary. Asking for the next part skips what is unread of the one before.
 * Throws Fault `form-malformed`, `parts-too-many` and `upload-incomplete`, and what the source throws.
 */
export async function* readParts(
  source: AsyncIterable<Uint8Array>,
  boundary: string,
  maxParts: number,
): AsyncGenerator<Part, void, void> {
  const input = new Input(source)
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  try {
    if (!(await input.more())) return
    if (!(await skip(input, delimiter))) throw malformed('its boundary is nowhere in the body')
    for (let count = 1; !(await isLast(input)); count += 1) {
      if (count > maxParts) throw new Fault('parts-too-many', `A form may have at most ${maxParts} parts.`)
      yield { headers: await readHead(input), body: readBody(input, delimiter) }
      if (input.inBody && !(await skip(input, delimiter))) throw endedEarly()
    }
    // What follows means nothing, but an upload is whole only when all of it has arrived.
    do input.held = nothing
    while (await input.more())
  } finally {
    await input.leave()
  }
}

const nothing = Buffer.alloc(0)

/** What has arrived of the body and is not used yet. */
class Input {
  /** The first boundary may stand at the very start, without a line before it. */
  held: Buffer = Buffer.from('\r\n')
  inBody = false
  readonly #source: AsyncIterator<Uint8Array>

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** Waits for more bytes; false when there are none. */
  async more(): Promise<boolean> {
    // The source empties a chunk when it is asked for the next one.
    if (this.held.length > 0) this.held = Buffer.from(this.held)
    const { done, value } = await this.#source.next()
    if (done) return false
    this.held =
      this.held.length > 0
        ? Buffer.concat([this.held, value])
        : Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    return true
  }

  /** Takes bytes from the front. */
  take(length: number): Buffer {
    const taken = this.held.subarray(0, length)
    this.held = this.held.subarray(length)
    return taken
  }

  async leave(): Promise<void> {
    await this.#source.return?.()
  }
}

/** The bytes up to the delimiter, which is taken too; the return value says whether it was there. */
async function* bytesUpTo(input: Input, delimiter: Buffer): AsyncGenerator<Buffer, boolean, void> {
  for (;;) {
    const at = input.held.indexOf(delimiter)
    if (at >= 0) {
      const bytes = input.take(at)
      input.take(delimiter.length)
      input.inBody = false
      if (bytes.length > 0) yield bytes
      return true
    }
    // The delimiter may have begun in the last bytes; it begins with CR.
    const suspect = input.held.indexOf(0x0d, Math.max(0, input.held.length - delimiter.length + 1))
    const bytes = input.take(suspect < 0 ? input.held.length : suspect)
    if (bytes.length > 0) yield bytes
    if (!(await input.more())) return false
  }
}

async function skip(input: Input, delimiter: Buffer): Promise<boolean> {
  const bytes = bytesUpTo(input, delimiter)
  for (;;) {
    const { done, value } = await bytes.next()
    if (done) return value
  }
}

async function* readBody(input: Input, delimiter: Buffer): AsyncGenerator<Buffer, void, void> {
  if (!(yield* bytesUpTo(input, delimiter))) throw endedEarly()
}

/** Whether the delimiter just taken was the last one. */
async function isLast(input: Input): Promise<boolean> {
  while (input.held.length < 2) if (!(await input.more())) throw endedEarly()
  return input.held.toString('latin1', 0, 2) === '--'
}

async function readHead(input: Input): Promise<Map<string, string>> {
  let end = input.held.indexOf('\r\n\r\n')
  while (end < 0 && input.held.length <= maxHead) {
    if (!(await input.more())) throw endedEarly()
    end = input.held.indexOf('\r\n\r\n')
  }
  if (end < 0 || end > maxHead) throw malformed('the headers of a part are too long')
  const [padding, ...lines] = input
    .take(end)
    .toString('latin1')
    .split(/\r\n(?![ \t])/)
  input.take(4)
  input.inBody = true
  if (padding?.trim() !== '') throw malformed('a boundary does not stand alone on its line')
  return new Map(lines.map(parseHeader))
}

function parseHeader(line: string): [name: string, value: string] {
  const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):(.*)$/.exec(line.replaceAll('\r\n', '')) ?? []
  if (name === undefined || value === undefined) throw malformed('a header of a part is malformed')
  return [name.toLowerCase(), value.trim()]
}

const endedEarly = () => new Fault('upload-incomplete', 'The form ended before its last boundary.')
const malformed = (why: string) => new Fault('form-malformed', `The form cannot be parsed: ${why}.`)
