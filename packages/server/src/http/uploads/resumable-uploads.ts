import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { requireScope } from '../../access/require-scope.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { Fault } from '../../core/fault.ts'
import { essenceOf } from '../../core/media-type.ts'
import { newUploadId, type UploadId } from '../../core/upload-id.ts'
import type { AppendUpload } from '../../media/uploads/append-upload.ts'
import type { CreateUpload } from '../../media/uploads/create-upload.ts'
import { findUpload } from '../../media/uploads/find-upload.ts'
import type { RemoveUpload } from '../../media/uploads/remove-upload.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { countUploads } from '../metrics/count-uploads.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import type { UploadParams } from '../openapi/schemas.ts'
import type { Authorizer } from '../tokens/authorizer.ts'
import { checksumAlgorithms, parseChecksum } from './checksum.ts'
import * as descriptions from './description.ts'
import { serveTus } from './serve-tus.ts'
import { UploadStore } from './upload-store.ts'

interface Parts {
  readonly authorize: Authorizer
  readonly readBody: BodyReader
  readonly catalog: Pick<Catalog, 'upload'>
  readonly createUpload: CreateUpload
  readonly appendUpload: AppendUpload
  readonly removeUpload: RemoveUpload
  /** Resolves when the upload's offset can be told: UploadTurns.settle. */
  readonly settleUpload: (id: UploadId) => Promise<void>
  readonly baseUrl: string
  /** Bytes. */
  readonly maxFileSize: number
  readonly metrics: Metrics
}

const version = '1.0.0'
const extensions = [
  'creation',
  'creation-with-upload',
  'creation-defer-length',
  'expiration',
  'termination',
  'checksum',
]
const pieceType = 'application/offset+octet-stream'

type UploadMethod = 'POST' | 'HEAD' | 'PATCH' | 'DELETE'
type UploadRequest = FastifyRequest<{ Params: Partial<UploadParams> }>

/** `/api/uploads`: files in pieces, by the tus protocol (docs/interface.md, Uploads in pieces). */
export async function resumableUploadsRoute(app: FastifyInstance, parts: Parts): Promise<void> {
  const { authorize, readBody, catalog, baseUrl, maxFileSize, metrics } = parts
  const { createUpload, appendUpload, removeUpload, settleUpload } = parts

  countUploads(app, metrics)
  // Bodies stay unread until the handler has seen the token.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))

  /** `given` is null where a header tells the method. */
  async function handle(given: UploadMethod | null, request: UploadRequest, reply: FastifyReply) {
    const grant = await authorize(request, 'media:write')
    requireVersion(request, reply)
    const method = given ?? overriddenMethod(request, reply)
    const now = Date.now()
    const known =
      method === 'POST' ? null : await findUpload(catalog, grant.bucketId, request.params.id ?? '', now)
    const id = known?.id ?? newUploadId()
    if (method === 'PATCH' || method === 'POST') requirePlainBody(method, request)
    // A client that asks for the offset is most likely about to resume the upload.
    if (method === 'HEAD') await settleUpload(id)

    const checksum = request.headers['upload-checksum']
    const store = new UploadStore(
      {
        catalog,
        createUpload,
        appendUpload,
        removeUpload: async (ended) => {
          const removed = await removeUpload(ended, () => requireScope(grant, 'media:delete'))
          if (removed.item) metrics.deletedItems.inc()
        },
        onStored: ({ size }) => {
          metrics.uploadedItems.inc()
          metrics.uploadedBytes.inc(size)
        },
      },
      {
        id,
        bucketId: grant.bucketId,
        metadata: request.headers['upload-metadata']?.toString() ?? null,
        checksum: checksum === undefined ? null : parseChecksum(checksum.toString()),
        body: readBody(request.raw),
        declaredBytes: Number(request.headers['content-length'] ?? 0),
        now,
      },
    )
    const url = `${baseUrl}/api/uploads/${id}`
    const { status, headers } = await serveTus(request.raw, { store, method, id, url, maxFileSize })
    reply.code(status).headers({ ...headers, 'cache-control': 'no-store' })

    const upload = await catalog.upload(id)
    if (upload?.finished) reply.header('content-location', `${baseUrl}/api/media/${upload.mediaId}`)
    else if (upload) reply.header('upload-expires', new Date(upload.expiresAt).toUTCString())
    if (method === 'HEAD' && upload?.metadata) reply.header('upload-metadata', upload.metadata)
    return reply.send()
  }

  const optionsHeaders = {
    'tus-version': version,
    'tus-resumable': version,
    'tus-extension': extensions.join(','),
    'tus-max-size': String(maxFileSize),
    'tus-checksum-algorithm': checksumAlgorithms.join(','),
  }
  const options = (description: OperationDescription) => {
    const { config, schema } = routeOptions(description)
    return { schema, config: { ...config, optionsHeaders, headers: { 'tus-resumable': version } } }
  }
  for (const url of ['/api/uploads', '/api/uploads/'])
    app.post(url, options(descriptions.createUpload), (request: UploadRequest, reply) =>
      handle('POST', request, reply),
    )
  const url = '/api/uploads/:id'
  app.head<{ Params: UploadParams }>(url, options(descriptions.findUpload), (request, reply) =>
    handle('HEAD', request, reply),
  )
  app.patch<{ Params: UploadParams }>(url, options(descriptions.appendUpload), (request, reply) =>
    handle('PATCH', request, reply),
  )
  app.delete<{ Params: UploadParams }>(url, options(descriptions.removeUpload), (request, reply) =>
    handle('DELETE', request, reply),
  )
  app.post<{ Params: UploadParams }>(url, options(descriptions.overrideUpload), (request, reply) =>
    handle(null, request, reply),
  )
}

/** "If the version specified by the Client is not supported by the Server, it MUST respond with the 412 status." */
function requireVersion({ headers }: UploadRequest, reply: FastifyReply): void {
  if (headers['tus-resumable'] === version) return
  reply.header('tus-version', version)
  throw new Fault('upload-version-unsupported', `Send the header Tus-Resumable: ${version}.`)
}

function requirePlainBody(method: UploadMethod, { headers }: UploadRequest): void {
  if (headers['content-encoding'] !== undefined)
    throw new Fault('content-coding-unsupported', 'Send the bytes without Content-Encoding.')
  if (method !== 'PATCH') return
  // "All PATCH requests MUST use Content-Type: application/offset+octet-stream, otherwise the server SHOULD return a 415."
  if (essenceOf(headers['content-type'] ?? '') !== pieceType)
    throw new Fault('upload-type-unsupported', `A piece must have the Content-Type ${pieceType}.`)
  if (headers['upload-offset'] === undefined)
    throw new Fault('upload-malformed', 'The header Upload-Offset is missing.')
}

/** "X-HTTP-Method-Override MUST be interpreted as the request's method by the Server." */
function overriddenMethod({ headers }: UploadRequest, reply: FastifyReply): UploadMethod {
  const method = headers['x-http-method-override']
  if (method === 'PATCH' || method === 'HEAD' || method === 'DELETE') return method
  reply.header('allow', 'DELETE, HEAD, OPTIONS, PATCH')
  throw new Fault('method-not-allowed', 'POST is allowed here with X-HTTP-Method-Override alone.')
}
