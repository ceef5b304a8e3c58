import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'
import { essenceOf } from '../../core/media-type.ts'
import type { IncomingFile } from '../../media/store-media.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { dispositionFilename } from '../headers/content-disposition.ts'
import { parseParameters } from '../headers/parameters.ts'
import { parseBoundary } from './boundary.ts'
import { malformed } from './form-errors.ts'
import { type Part, readParts } from './read-parts.ts'

/**
 * The file parts of a form, one after another as they arrive; fields are skipped (docs/interface.md U1).
 * Throws before the body is read where the headers of the request are malformed.
 */
export function readFormFiles(
  request: IncomingMessage,
  readBody: BodyReader,
  maxParts: number,
): AsyncIterable<IncomingFile> {
  const boundary = parseBoundary(request.headers['content-type'] ?? '')
  return readFilesBetween(boundary, readBody(request, true), maxParts)
}

/** The files of a form whose boundary is known. */
export async function* readFilesBetween(
  boundary: string,
  bytes: AsyncIterable<Uint8Array>,
  maxParts: number,
): AsyncGenerator<IncomingFile> {
  let empty = true
  for await (const part of readParts(bytes, boundary, maxParts)) {
    const file = fileOfPart(part)
    if (file === null) {
      await skipField(part.body)
      continue
    }
    empty = false
    yield file
  }
  if (empty) throw new Fault('form-without-file', 'The form has no file; give a part a filename.')
}

/** Null where the part is a field. Throws Fault `form-malformed`. */
function fileOfPart({ headers, body }: Part): IncomingFile | null {
  const disposition = parseParameters(headers.get('content-disposition') ?? '')
  if (disposition?.value !== 'form-data' || !disposition.parameters.get('name'))
    throw malformed('every part needs a Content-Disposition of form-data with a name')
  for (const name of disposition.parameters.keys())
    if (/\*\d/.test(name)) throw malformed(`${name} continues a parameter; a form may not split them`)
  const encoding = headers.get('content-transfer-encoding')
  if (encoding !== undefined && !/^(7bit|8bit|binary)$/i.test(encoding))
    throw malformed('a part has a Content-Transfer-Encoding other than 7bit, 8bit or binary')
  const filename = dispositionFilename(disposition)
  if (filename === undefined) throw malformed('the filename* of a part is malformed')
  const declaredType = headers.get('content-type') ?? null
  if (filename !== null) {
    const escaped = !disposition.parameters.has('filename*')
    return { source: body, filename: escaped ? unescapeName(filename) : filename, declaredType }
  }
  // RFC 7578, section 4.4: text/plain unless another type is given.
  const type = essenceOf(declaredType ?? 'text/plain')
  if (type.startsWith('multipart/'))
    throw malformed('a part holds parts of its own; send each file as a part of the form')
  return isFieldType(type) ? null : { source: body, filename, declaredType }
}

/** What clients send as the value of a field. A part of any other type is a file, whether it has a filename or not. */
const isFieldType = (type: string): boolean =>
  /^(text\/.*|application\/(json|xml|x-www-form-urlencoded|.*\+(json|xml)))$/.test(type)

/** Bytes of a field. */
const maxField = 1_000_000

async function skipField(field: AsyncIterable<Uint8Array>): Promise<void> {
  let size = 0
  for await (const chunk of field) {
    size += chunk.byteLength
    if (size > maxField)
      throw new Fault('body-too-large', `A field of a form may have at most ${maxField} bytes.`)
  }
}

/** Browsers and curl write a quote in a name as `%22` and line ends as `%0D` and `%0A`, which no stored name has. */
const unescapeName = (name: string): string => name.replaceAll('%22', '"').replace(/%0[ad]/gi, '')
