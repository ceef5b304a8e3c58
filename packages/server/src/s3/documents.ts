import type { HttpContext } from '../http/context.ts'
import { ObjectBody } from './object-body.ts'
import type { S3Call } from './s3-context.ts'
import { S3Error } from './s3-errors.ts'
import { parseXml, type XmlElement } from './xml.ts'

/** The largest document: 10,000 parts with their checksums. Bytes. */
const maxDocument = 4 * 1024 * 1024

/** Milliseconds in which a document must arrive. */
const deadline = 60_000

/**
 * Reads the XML document of a request, whose root must have this name; null for an empty body, if it is `optional`. Throws S3Error `MalformedXML`,
 * and those of a body.
 */
export function readDocument(
  http: Pick<HttpContext, 'readBody'>,
  call: S3Call,
  root: string,
): Promise<XmlElement>
export function readDocument(
  http: Pick<HttpContext, 'readBody'>,
  call: S3Call,
  root: string,
  optional: true,
): Promise<XmlElement | null>
export async function readDocument(
  { readBody }: Pick<HttpContext, 'readBody'>,
  { request, payload }: S3Call,
  root: string,
  optional = false,
): Promise<XmlElement | null> {
  const body = new ObjectBody(request, payload)
  if (body.size !== null && body.size > maxDocument)
    throw new S3Error('MalformedXML', 'The document is too large.')
  const timer = setTimeout(() => request.request.destroy(), deadline)
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of body.read(readBody)) {
      size += chunk.byteLength
      if (size > maxDocument) throw new S3Error('MalformedXML', 'The document is too large.')
      // The memory of a chunk is freed when the next one is read.
      chunks.push(Uint8Array.from(chunk))
    }
  } finally {
    clearTimeout(timer)
  }
  body.finish()
  if (size === 0 && optional) return null
  const document = parseXml(Buffer.concat(chunks))
  if (document.name !== root) throw new S3Error('MalformedXML', `The document must be ${root}.`)
  return document
}
