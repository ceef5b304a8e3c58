import { Fault } from '../../core/fault.ts'
import type { AppendUpload } from '../../media/uploads/append-upload.ts'
import { checkChunk } from '../../media/uploads/check-chunk.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { bodyChunk, chunkType, hasChunkType, refuseContentCoding } from './chunk-body.ts'
import { parseUploadHeaders } from './upload-headers.ts'
import { parseMetadata, uploadExpiry } from './upload-metadata.ts'
import { describeUpload } from './upload-response.ts'
import type { UploadHandler } from './upload-route.ts'

/** `PATCH /api/uploads/:id`: appends a chunk (docs/interface.md R4 to R7). */
export function createPatchHandler(parts: {
  readonly appendUpload: AppendUpload
  readonly readBody: BodyReader
  readonly baseUrl: string
  /** Bytes. */
  readonly maxFileSize: number
}): UploadHandler {
  const { appendUpload, readBody, baseUrl, maxFileSize } = parts
  return async (found, { grant, request, reply }) => {
    refuseContentCoding(request)
    // tus 1.0.0, PATCH: "All PATCH requests MUST use Content-Type: application/offset+octet-stream, otherwise the server
    // SHOULD return a 415 Unsupported Media Type status."
    if (!hasChunkType(request))
      throw new Fault('upload-type-unsupported', `A chunk must have the Content-Type ${chunkType}.`)
    const { offset, length, checksum } = parseUploadHeaders(request.headers)
    if (offset === null) throw new Fault('upload-malformed', 'The header Upload-Offset is missing.')
    const { actor: by, removesMetadata } = grant
    const metadata = found.metadata === null ? null : parseMetadata(found.metadata)
    const expiresAt = uploadExpiry(metadata, grant.itemDays, false)
    const sender = { by, removesMetadata, expiresAt }
    const chunk = bodyChunk(request, readBody, { offset, length, checksum, ...sender })
    // appendUpload checks again when it holds the lock of the upload. To get the lock, it may interrupt another request. So a chunk that
    // does not fit is rejected here.
    checkChunk(found, chunk, maxFileSize)
    const { upload } = await appendUpload(found.id, chunk)
    // tus 1.0.0, PATCH: "The Server MUST acknowledge successful PATCH requests with the 204 No Content status. It MUST
    // include the Upload-Offset header containing the new offset."
    reply.code(204).header('upload-offset', upload.offset)
    return describeUpload(reply, upload, baseUrl).send()
  }
}
