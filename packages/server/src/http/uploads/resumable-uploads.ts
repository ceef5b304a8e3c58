import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Catalog } from '../../catalog/catalog.ts'
import type { UploadId } from '../../core/upload-id.ts'
import type { AppendUpload } from '../../media/uploads/append-upload.ts'
import type { CreateUpload } from '../../media/uploads/create-upload.ts'
import { findUpload } from '../../media/uploads/find-upload.ts'
import type { RemoveUpload } from '../../media/uploads/remove-upload.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { leaveBodiesUnread } from '../bodies/unread-bodies.ts'
import { countUploads } from '../metrics/count-uploads.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import type { UploadParams } from '../openapi/request-schemas.ts'
import type { Authorizer } from '../tokens/authorizer.ts'
import { createDeleteHandler } from './delete-handler.ts'
import * as descriptions from './description.ts'
import { createHeadHandler } from './head-handler.ts'
import { overriddenMethod } from './method-override.ts'
import { tusOptionsHeaders } from './options-headers.ts'
import { createPatchHandler } from './patch-handler.ts'
import { createPostHandler } from './post-handler.ts'
import { requireVersion, versionHeader } from './tus-version.ts'
import type { UploadHandler } from './upload-route.ts'

interface Parts {
  readonly authorize: Authorizer
  readonly readBody: BodyReader
  readonly catalog: Pick<Catalog, 'upload'>
  readonly createUpload: CreateUpload
  readonly appendUpload: AppendUpload
  readonly removeUpload: RemoveUpload
  /** UploadLocks.waitForWriter. */
  readonly waitForWriter: (id: UploadId) => Promise<void>
  readonly baseUrl: string
  /** Bytes. */
  readonly maxFileSize: number
  readonly metrics: Metrics
}

/** `/api/uploads`: resumable uploads by the tus protocol 1.0.0 (docs/interface.md R1 to R13). */
export async function resumableUploadsRoute(app: FastifyInstance, parts: Parts): Promise<void> {
  const { authorize, catalog, maxFileSize, metrics } = parts
  countUploads(app, metrics)
  leaveBodiesUnread(app)

  const appendUpload: AppendUpload = async (id, chunk) => {
    const appended = await parts.appendUpload(id, chunk)
    if (appended.item) {
      metrics.uploadedItems.inc()
      metrics.uploadedBytes.inc(appended.item.size)
    }
    return appended
  }
  const create = createPostHandler({ ...parts, appendUpload })
  const handlers = {
    HEAD: createHeadHandler(parts),
    PATCH: createPatchHandler({ ...parts, appendUpload }),
    DELETE: createDeleteHandler(parts),
  }

  async function respondToCreation(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const grant = await authorize(request, 'media:write')
    requireVersion(request, reply)
    return create(grant, request, reply)
  }

  type Request = FastifyRequest<{ Params: UploadParams }>
  const respond =
    (handlerOf: (request: Request, reply: FastifyReply) => UploadHandler) =>
    async (request: Request, reply: FastifyReply): Promise<FastifyReply> => {
      const grant = await authorize(request, 'media:write')
      requireVersion(request, reply)
      const handle = handlerOf(request, reply)
      // tus 1.0.0, HEAD and PATCH: if the resource is not found, the Server SHOULD return 404. Expiration: also for "an
      // upload which has since been removed". Termination: also "For all future requests to this URL".
      const upload = await findUpload(catalog, grant.bucketId, request.params.id, Date.now())
      return handle(upload, { grant, request, reply })
    }

  const optionsHeaders = tusOptionsHeaders(maxFileSize)
  const options = (description: OperationDescription) => {
    const { config, schema } = routeOptions(description)
    return { schema, config: { ...config, optionsHeaders, headers: versionHeader } }
  }
  for (const url of ['/api/uploads', '/api/uploads/'])
    app.post(url, options(descriptions.createUpload), respondToCreation)
  const url = '/api/uploads/:id'
  app.head(
    url,
    options(descriptions.findUpload),
    respond(() => handlers.HEAD),
  )
  app.patch(
    url,
    options(descriptions.appendUpload),
    respond(() => handlers.PATCH),
  )
  app.delete(
    url,
    options(descriptions.removeUpload),
    respond(() => handlers.DELETE),
  )
  const overridden = (request: Request, reply: FastifyReply) => handlers[overriddenMethod(request, reply)]
  app.post(url, options(descriptions.overrideUpload), respond(overridden))
}
