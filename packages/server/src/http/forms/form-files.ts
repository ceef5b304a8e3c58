import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'
import { resumed } from '../../media/receive-files.ts'
import type { IncomingFile, IncomingFiles } from '../../media/store-media.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { parseParameters } from '../headers/parameters.ts'
import { malformedForm } from './form-input.ts'
import { readFileHeaders } from './part-headers.ts'
import { maxPartOverhead, type Part, readParts } from './read-parts.ts'

/** Whether a Content-Type is multipart/form-data, even where its parameters are malformed. */
export const isMultipartForm = (contentType: string): boolean =>
  /^[ \t]*multipart\/form-data(?![\w!#$%&'*+.^`|~-])/i.test(contentType)

/** RFC 2046, section 5.1.1: 1 to 70 of these characters; the last one must not be a space. */
const validBoundary = /^[\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?]$/

/** Returns the boundary of a Content-Type. Throws Fault `form-malformed`. */
function parseBoundary(contentType: string): string {
  const boundary = parseParameters(contentType)?.parameters.get('boundary')
  if (boundary === undefined)
    throw malformedForm(
      'its Content-Type must have the form multipart/form-data; boundary=…, with one boundary',
    )
  if (!validBoundary.test(boundary))
    throw malformedForm(
      "its boundary must have 1 to 70 characters, each a letter, a digit, a space or one of '()+_,-./:=?, and must not end in a space",
    )
  return boundary
}

/** The most parts of a form, files and fields together. */
const maxParts = 1_000

/**
 * Yields the file parts of a form as they arrive, those that arrive together as one group, and skips its fields (docs/interface.md U1). Throws before the body is
 * read where the headers of the request are malformed.
 */
export function readFormFiles(request: IncomingMessage, readBody: BodyReader): IncomingFiles {
  const boundary = parseBoundary(request.headers['content-type'] ?? '')
  return readFilesBetween(boundary, readBody(request))
}

/** Yields the files of a form with this boundary. `minStreamed` is that of readParts. */
export async function* readFilesBetween(
  boundary: string,
  bytes: AsyncIterable<Uint8Array>,
  minStreamed?: number,
): AsyncGenerator<readonly IncomingFile[]> {
  let [hasFile, hasEmptyInput] = [false, false]
  for await (const parts of readParts(bytes, boundary, maxParts, minStreamed)) {
    const files: IncomingFile[] = []
    for (const part of parts) {
      const file = readFileHeaders(part.headers, boundary)
      if (file === null) {
        await skipField(part.body)
        continue
      }
      const body = file.filename === '' ? await bodyUnlessEmpty(part.body) : part.body
      if (body === null) hasEmptyInput = true
      else files.push({ body, filename: file.filename, declaredType: file.declaredType })
    }
    if (files.length === 0) continue
    hasFile = true
    yield files
  }
  if (!hasFile)
    throw new Fault(
      'form-without-file',
      hasEmptyInput
        ? 'No file was chosen: the only file of the form has no name and no bytes.'
        : 'The form has no file; give a part a filename, as `curl -F file=@photo.png` does.',
    )
}

/**
 * Null if the body has no bytes. Browsers send an input in which no file is chosen as an empty file with an empty name (HTML, "constructing the
 * entry list").
 */
async function bodyUnlessEmpty(body: Part['body']): Promise<Part['body'] | null> {
  if (body instanceof Uint8Array) return body.byteLength === 0 ? null : body
  const chunks = body[Symbol.asyncIterator]()
  const { done, value } = await chunks.next()
  return done ? null : resumed([value], chunks)
}

/** The largest size of a field. Bytes. */
const maxFieldSize = 1_000_000

/** The length of the largest form. Bytes. */
export const maxFormLength = (maxFileSize: number): number =>
  maxParts * (Math.max(maxFileSize, maxFieldSize) + maxPartOverhead) + maxPartOverhead

/** The size that the files of a form of this length have at least: all other parts are fields, as large as they may be. Bytes. */
export const minFileBytes = (formLength: number): number =>
  Math.max(0, formLength - maxParts * (maxFieldSize + maxPartOverhead) - maxPartOverhead)

async function skipField(field: Part['body']): Promise<void> {
  let size = 0
  for await (const chunk of field instanceof Uint8Array ? [field] : field) {
    size += chunk.byteLength
    if (size > maxFieldSize)
      throw new Fault('body-too-large', `A field of a form may have at most ${maxFieldSize} bytes.`)
  }
}
