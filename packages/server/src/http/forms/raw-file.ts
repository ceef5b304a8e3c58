import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'
import type { IncomingFile, IncomingFiles } from '../../media/store-media.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { dispositionFilename } from '../headers/content-disposition.ts'
import { parseParameters } from '../headers/parameters.ts'

/** The name and the type of a raw body, as sent. Throws Fault where the name is malformed. */
export function rawFileHeaders({
  headers,
}: IncomingMessage): Pick<IncomingFile, 'filename' | 'declaredType'> {
  const header = headers['content-disposition']
  const disposition = header === undefined ? null : parseParameters(header)
  const filename = disposition === null ? undefined : dispositionFilename(disposition)
  if (header !== undefined && filename === undefined)
    throw new Fault(
      'filename-malformed',
      'Content-Disposition must have the form: attachment; filename="name.ext"; filename*=UTF-8\'\'name.ext',
    )
  return { filename: filename ?? null, declaredType: headers['content-type'] ?? null }
}

/** Yields a raw body as one file (docs/interface.md U3). Throws before the body is read where its name is malformed. */
export const readRawFile = (request: IncomingMessage, readBody: BodyReader): IncomingFiles =>
  yieldFile({ ...rawFileHeaders(request), body: readBody(request) })

async function* yieldFile(file: IncomingFile): AsyncGenerator<readonly IncomingFile[]> {
  yield [file]
}
