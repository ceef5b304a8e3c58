import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'
import { essenceOf } from '../../core/media-type.ts'
import type { IncomingFile, IncomingFiles } from '../../media/store-media.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { dispositionFilename } from '../headers/content-disposition.ts'
import { parseParameters } from '../headers/parameters.ts'
import { parseBoundary } from './boundary.ts'
import { malformedForm } from './form-errors.ts'
import { type Part, readParts } from './read-parts.ts'

/**
 * Yields the file parts of a form as they arrive, those that arrive together as one group, and skips its fields (docs/interface.md U1). Throws before the body is
 * read where the headers of the request are malformed.
 */
export function readFormFiles(
  request: IncomingMessage,
  readBody: BodyReader,
  maxParts: number,
): IncomingFiles {
  const boundary = parseBoundary(request.headers['content-type'] ?? '')
  return readFilesBetween(boundary, readBody(request), maxParts)
}

/** Yields the files of a form with this boundary. `minStreamed` is that of readParts. */
export async function* readFilesBetween(
  boundary: string,
  bytes: AsyncIterable<Uint8Array>,
  maxParts: number,
  minStreamed?: number,
): AsyncGenerator<readonly IncomingFile[]> {
  let hasFile = false
  for await (const parts of readParts(bytes, boundary, maxParts, minStreamed)) {
    const files: IncomingFile[] = []
    for (const part of parts) {
      const file = parseFilePart(part)
      if (file === null) await skipField(part.body)
      else files.push(file)
    }
    if (files.length === 0) continue
    hasFile = true
    yield files
  }
  if (!hasFile)
    throw new Fault(
      'form-without-file',
      'The form has no file; give a part a filename, as `curl -F file=@photo.png` does.',
    )
}

/** Returns null where the part is a field. Throws Fault `form-malformed`. */
function parseFilePart({ headers, body }: Part): IncomingFile | null {
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
    return { body, filename: isEscaped ? unescapeName(filename) : filename, declaredType }
  }
  // RFC 7578, section 4.4: text/plain unless another type is given.
  const type = essenceOf(declaredType ?? 'text/plain')
  if (type.startsWith('multipart/'))
    throw malformedForm('a part contains parts; send each file as a part of the form')
  return isFieldType(type) ? null : { body, filename, declaredType }
}

/** The types of fields. A part of any other type is a file, even without a filename. */
const isFieldType = (type: string): boolean =>
  /^(text\/.*|application\/(json|xml|x-www-form-urlencoded|.*\+(json|xml)))$/.test(type)

/** The largest size of a field. Bytes. */
const maxFieldSize = 1_000_000

async function skipField(field: Part['body']): Promise<void> {
  let size = 0
  for await (const chunk of field instanceof Uint8Array ? [field] : field) {
    size += chunk.byteLength
    if (size > maxFieldSize)
      throw new Fault('body-too-large', `A field of a form may have at most ${maxFieldSize} bytes.`)
  }
}

/** Browsers and curl escape quotes in names as `%22` and line breaks as `%0D` and `%0A`; stored names have no line breaks. */
const unescapeName = (name: string): string => name.replaceAll('%22', '"').replace(/%0[ad]/gi, '')
