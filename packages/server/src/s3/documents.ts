import { withDeadline } from '../http/bodies.ts'
import { type BodyOptions, ObjectBody } from './object-body.ts'
import type { S3Call, S3Context } from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import { parseXml, type XmlElement } from './xml.ts'

/** The largest document: 10,000 parts with their checksums. Bytes. */
const maxDocument = 4 * 1024 * 1024

/** The memory of all documents that are arriving. Bytes. */
export const documentMemory = 4 * maxDocument

const noBytes = new Uint8Array()

type DocumentContext = Pick<S3Context, 'operations' | 'readDocumentBytes'>

/**
 * Reads the XML document of a request, whose root must have this name. The access key is verified again, because it can be revoked while the document
 * arrives (docs/interface.md A7). Throws S3Error `MalformedXML` and `SlowDown`, and those of a body.
 */
export async function readDocument(
  context: DocumentContext,
  call: S3Call,
  root: string,
  options?: BodyOptions,
): Promise<XmlElement> {
  const document = await readOptionalDocument(context, call, root, options)
  if (document === null) throw new S3Error('MalformedXML', `The body must be a document ${root}.`)
  return document
}

/** The same; null for an empty body. */
export async function readOptionalDocument(
  { operations, readDocumentBytes }: DocumentContext,
  { request, payload, grant }: S3Call,
  root: string,
  options?: BodyOptions,
): Promise<XmlElement | null> {
  const { headers } = request.request
  if (headers['transfer-encoding'] !== undefined)
    throw new S3Error('MissingContentLength', 'A document needs a Content-Length.')
  const length = Number(headers['content-length'] ?? 0)
  if (length > maxDocument) throw new S3Error('MalformedXML', 'The document is too large.')
  const body = new ObjectBody(request, payload, options)
  const bytes =
    length === 0 ? noBytes : await withDeadline(request.request, body.readWhole(readDocumentBytes))
  if (bytes === null) throw new S3Error('SlowDown')
  body.finish()
  await operations.accessKeys.refresh(grant.tokenId, null)
  if (bytes.byteLength === 0) return null
  const document = parseXml(bytes)
  if (document.name !== root) throw new S3Error('MalformedXML', `The document must be ${root}.`)
  return document
}
