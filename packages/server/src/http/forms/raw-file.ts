import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'
import type { IncomingFile } from '../../media/store-media.ts'
import type { BytesOf } from '../bodies/body-bytes.ts'
import { filenameOf } from '../headers/disposition-name.ts'
import { parseParameters } from '../headers/parameters.ts'

/** A raw body as one file (docs/interface.md U3). Throws before the body is read where its name is malformed. */
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
