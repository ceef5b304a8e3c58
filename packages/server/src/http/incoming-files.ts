import type { IncomingMessage } from 'node:http'
import { decodeExtended } from 'content-disposition'
import { essenceOf } from '../core/delivery.ts'
import { Fault } from '../core/fault.ts'
import type { IncomingFile } from '../media/store-media.ts'
import type { BytesOf } from './bodies.ts'
import { readParts } from './multipart.ts'
import { type Parameterised, parseParameters } from './parameters.ts'

export const isForm = (request: IncomingMessage): boolean =>
  essenceOf(request.headers['content-type'] ?? '') === 'multipart/form-data'

/**
 * The file parts of a form, one after another as they arrive; other parts are passed over (docs/interface.md U1).
 * Throws at once where the headers of the request tell that it cannot be read.
 */
export function filesOfForm(
  request: IncomingMessage,
  bytesOf: BytesOf,
  maxParts: number,
): AsyncIterable<IncomingFile> {
  const boundary = parseParameters(request.headers['content-type'] ?? '')?.parameters.get('boundary')
  if (boundary === undefined || boundary.length > maxBoundary)
    throw malformed(`Its Content-Type needs a boundary of at most ${maxBoundary} characters.`)
  return filesBetween(boundary, bytesOf(request, true), maxParts)
}

/** RFC 2046, section 5.1.1. */
const maxBoundary = 70

async function* filesBetween(
  boundary: string,
  bytes: AsyncIterable<Uint8Array>,
  maxParts: number,
): AsyncGenerator<IncomingFile> {
  let empty = true
  for await (const { headers, body } of readParts(bytes, boundary, maxParts)) {
    const disposition = parseParameters(headers.get('content-disposition') ?? '')
    if (disposition?.value !== 'form-data' || !disposition.parameters.get('name'))
      throw malformed('Every part needs a Content-Disposition of form-data with a name.')
    // RFC 7578, section 4.4.
    const declaredType = headers.get('content-type') ?? 'text/plain'
    const filename = filenameOf(disposition)
    if (filename === undefined) throw malformed('The filename* of a part is malformed.')
    if (filename === null && essenceOf(declaredType) !== 'application/octet-stream') {
      await passOver(body)
      continue
    }
    empty = false
    const escaped = filename !== null && !disposition.parameters.has('filename*')
    yield { source: body, filename: escaped ? unescapeName(filename) : filename, declaredType }
  }
  if (empty) throw new Fault('form-without-file', 'The form has no file; give a part a filename.')
}

/** What a part that is no file may have. Bytes. */
const maxField = 1_000_000

async function passOver(field: AsyncIterable<Uint8Array>): Promise<void> {
  let size = 0
  for await (const chunk of field) {
    size += chunk.byteLength
    if (size > maxField)
      throw new Fault(
        'body-too-large',
        `A part of a form that is no file may have at most ${maxField} bytes.`,
      )
  }
}

const malformed = (why: string) => new Fault('form-malformed', `The form cannot be read. ${why}`)

/** Browsers and curl write a quote in a name as `%22`, and nothing else so but line ends, which no name keeps. */
const unescapeName = (name: string): string => name.replaceAll('%22', '"').replace(/%0[ad]/gi, '')

/** A raw body as one file (docs/interface.md U3). Throws at once where its name cannot be read. */
export function fileOfBody(request: IncomingMessage, bytesOf: BytesOf): AsyncIterable<IncomingFile> {
  const header = request.headers['content-disposition']
  const disposition = header === undefined ? null : parseParameters(header)
  const filename = disposition === null ? undefined : filenameOf(disposition)
  if (header !== undefined && filename === undefined)
    throw new Fault(
      'filename-malformed',
      'Content-Disposition must have the form: attachment; filename="name.ext"; filename*=UTF-8\'\'name.ext',
    )
  return oneFile({
    source: bytesOf(request, true),
    filename: filename ?? null,
    declaredType: request.headers['content-type'] ?? null,
  })
}

async function* oneFile(file: IncomingFile): AsyncGenerator<IncomingFile> {
  yield file
}

/** The name that a Content-Disposition gives, null where it gives none, undefined where `filename*` is malformed. */
function filenameOf({ parameters }: Parameterised): string | null | undefined {
  const extended = parameters.get('filename*')
  if (extended !== undefined) return decodeExtended(extended)
  return fromUtf8(parameters.get('filename'))
}

/** Header bytes are read as Latin-1; clients such as curl put UTF-8 there. */
function fromUtf8(text: string | undefined): string | null {
  if (text === undefined) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}
