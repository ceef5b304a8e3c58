import type { Catalog } from '../../catalog/catalog.ts'
import type { UploadId } from '../../core/upload-id.ts'
import { findUpload } from '../../media/uploads/find-upload.ts'
import { parseUploadHeaders } from './upload-headers.ts'
import { describeUpload } from './upload-response.ts'
import type { UploadHandler } from './upload-route.ts'

/** `HEAD /api/uploads/:id`: the offset and the length (docs/interface.md R3). */
export function createHeadHandler(parts: {
  readonly catalog: Pick<Catalog, 'upload'>
  /** UploadLocks.waitForWriter. */
  readonly waitForWriter: (id: UploadId) => Promise<void>
  readonly baseUrl: string
}): UploadHandler {
  const { catalog, waitForWriter, baseUrl } = parts
  return async ({ id, bucketId }, { request, reply }) => {
    parseUploadHeaders(request.headers)
    // A client usually sends HEAD to resume. The previous request may still wait for bytes from a lost connection.
    await waitForWriter(id)
    const upload = await findUpload(catalog, bucketId, id, Date.now())
    // tus 1.0.0, HEAD: "The Server MUST always include the Upload-Offset header in the response for a HEAD request, even if
    // the offset is 0, or the upload is already considered completed."
    reply.header('upload-offset', upload.offset)
    // tus 1.0.0, HEAD: "If the size of the upload is known, the Server MUST include the Upload-Length header in the
    // response." Creation: "As long as the length of the upload is not known, the Server MUST set Upload-Defer-Length: 1 in
    // all responses to HEAD requests."
    if (upload.length === null) reply.header('upload-defer-length', '1')
    else reply.header('upload-length', upload.length)
    // tus 1.0.0, Creation: "If an upload contains additional metadata, responses to HEAD requests MUST include the
    // Upload-Metadata header and its value as specified by the Client during the creation."
    if (upload.metadata) reply.header('upload-metadata', upload.metadata)
    // tus 1.0.0, HEAD: "The Server SHOULD acknowledge successful HEAD requests with a 200 OK or 204 No Content status."
    return describeUpload(reply.code(200), upload, baseUrl).send()
  }
}
