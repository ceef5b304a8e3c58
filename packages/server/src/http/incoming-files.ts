import { parse } from 'content-disposition'
import type { FastifyRequest } from 'fastify'
import { Fault } from '../core/fault.ts'
import type { IncomingFile } from '../media/store-media.ts'

/** The file parts of a form, one after another as they arrive; other parts are passed over (docs/interface.md U1). */
export async function* filesOfForm(request: FastifyRequest, maxParts: number): AsyncIterable<IncomingFile> {
  const limits = { parts: maxParts, fileSize: Number.POSITIVE_INFINITY, fieldSize: 1024, fieldNameSize: 200 }
  let empty = true
  try {
    for await (const part of request.parts({ limits })) {
      if (!part.fieldname) throw new Fault('form-malformed', 'Every part of the form needs a name.')
      if (part.type !== 'file') continue
      empty = false
      yield { source: part.file, filename: part.filename, declaredType: part.mimetype }
    }
  } catch (error) {
    throw isParserError(error)
      ? new Fault('form-malformed', 'The form cannot be parsed.', { cause: error })
      : error
  }
  if (empty) throw new Fault('form-without-file', 'The form has no file; give a part a filename.')
}

/** busboy throws plain errors without a code; everything else that is thrown here has one. */
const isParserError = (error: unknown): boolean =>
  error instanceof Error && !(error instanceof Fault) && !('code' in error)

/** A raw body as one file (docs/interface.md U3). */
export async function* fileOfBody(request: FastifyRequest): AsyncIterable<IncomingFile> {
  yield {
    source: request.raw,
    filename: dispositionFilename(request.headers['content-disposition']),
    declaredType: request.headers['content-type'] ?? null,
  }
}

function dispositionFilename(header: string | undefined): string | null {
  if (header === undefined) return null
  try {
    return fromUtf8(parse(header).parameters['filename'])
  } catch (error) {
    throw new Fault(
      'filename-malformed',
      'Content-Disposition must have the form: attachment; filename="name.ext"; filename*=UTF-8\'\'name.ext',
      { cause: error },
    )
  }
}

/** Node reads header bytes as Latin-1; clients such as curl put UTF-8 there. */
function fromUtf8(text: string | undefined): string | null {
  if (text === undefined) return null
  for (const char of text) if (char > '\xff') return text
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'latin1'))
  } catch {
    return text
  }
}
