import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../core/fault.ts'
import type { AppendUpload } from '../../media/uploads/append-upload.ts'
import { checkChunk, checkFileSize } from '../../media/uploads/check-chunk.ts'
import type { CreateUpload } from '../../media/uploads/create-upload.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import type { Caller } from '../tokens/authorizer.ts'
import { bodyChunk, emptyChunk, hasChunkType, refuseContentCoding } from './chunk-body.ts'
import { parseUploadHeaders, type UploadHeaders } from './upload-headers.ts'
import { type UploadMetadata, uploadExpiry } from './upload-metadata.ts'
import { describeUpload } from './upload-response.ts'

/** `POST /api/uploads`: creates an upload, with its first chunk or without (docs/interface.md R1). */
export function createPostHandler(parts: {
  readonly createUpload: CreateUpload
  readonly appendUpload: AppendUpload
  readonly readBody: BodyReader
  readonly baseUrl: string
  /** Bytes. */
  readonly maxFileSize: number
}) {
  const { createUpload, appendUpload, readBody, baseUrl, maxFileSize } = parts

  return async (
    { bucketId, actor: by, removesMetadata, itemDays }: Caller,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    refuseContentCoding(request)
    const headers = parseUploadHeaders(request.headers)
    refuseConcatenation(headers)
    const length = requireLength(headers)
    if (length !== null) checkFileSize(length, maxFileSize)
    const { metadata, checksum } = headers
    const sender = { by, removesMetadata, expiresAt: uploadExpiry(metadata, itemDays, true) }
    const chunk = hasChunkType(request)
      ? bodyChunk(request, readBody, { offset: 0, checksum, ...sender })
      : null
    // Before the upload is created, so that the request reserves nothing if its chunk is refused.
    if (chunk !== null) checkChunk({ offset: 0, length }, chunk, maxFileSize)
    const created = await createUpload(bucketId, {
      length,
      metadata: metadata?.header || null,
      filename: firstOf(metadata, 'filename', 'name'),
      declaredType: firstOf(metadata, 'filetype', 'type'),
    })

    // tus 1.0.0, Creation: "The Upload-Length header MAY be set to 0, indicating that the Client wants to upload an empty
    // file. Such an upload is immediately complete after its creation without transferring data".
    const first = chunk ?? (length === 0 ? emptyChunk(sender) : null)
    const { upload } = first === null ? { upload: created } : await appendUpload(created.id, first)
    // tus 1.0.0, Creation With Upload: the Server "MUST include the Upload-Offset header in the response and MUST set its
    // value to the offset of the upload after applying the accepted bytes."
    if (chunk !== null) reply.header('upload-offset', upload.offset)
    // tus 1.0.0, Creation: "The Server MUST acknowledge a successful upload creation with the 201 Created status. The Server
    // MUST set the Location header to the URL of the created resource."
    reply.code(201).header('location', `${baseUrl}/api/uploads/${upload.id}`)
    return describeUpload(reply, upload, baseUrl).send()
  }
}

/** Throws Fault `upload-malformed`. */
function refuseConcatenation({ concat }: UploadHeaders): void {
  if (concat !== null)
    throw new Fault('upload-malformed', 'Concatenation is not supported; send the file as one upload.')
}

/** The length of the file; null where it is deferred. Throws Fault `upload-malformed`. */
function requireLength({ length, isLengthDeferred }: UploadHeaders): number | null {
  // tus 1.0.0, Creation: "The request MUST include one of the following headers: a) Upload-Length […] b)
  // Upload-Defer-Length: 1" and "If the length of an upload is not deferred, this header MUST be omitted."
  if ((length === null) !== isLengthDeferred)
    throw new Fault('upload-malformed', 'Send either Upload-Length or Upload-Defer-Length: 1.')
  return length
}

/** The value of the first of these keys that has one; an empty value does not count. */
const firstOf = (metadata: UploadMetadata | null, ...keys: string[]): string | null =>
  keys.map((key) => metadata?.values.get(key)).find(Boolean) ?? null
