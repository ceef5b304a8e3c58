import { requireScope } from '../../access/require-scope.ts'
import type { RemoveUpload } from '../../media/uploads/remove-upload.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { parseUploadHeaders } from './upload-headers.ts'
import type { UploadHandler } from './upload-route.ts'

/** `DELETE /api/uploads/:id`: removes the upload, and its item if it is finished (docs/interface.md R9). */
export function createDeleteHandler(parts: {
  readonly removeUpload: RemoveUpload
  readonly metrics: Pick<Metrics, 'deletedItems'>
}): UploadHandler {
  const { removeUpload, metrics } = parts
  return async ({ id }, { grant, request, reply }) => {
    parseUploadHeaders(request.headers)
    const removed = await removeUpload(id, () => requireScope(grant, 'media:delete'), grant.actor)
    if (removed.item) metrics.deletedItems.inc()
    // tus 1.0.0, Termination: "the Server SHOULD free associated resources and MUST respond with the 204 No Content status".
    return reply.code(204).header('cache-control', 'no-store').send()
  }
}
