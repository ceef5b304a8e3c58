import type { IncomingMessage } from 'node:http'
import { Fault } from '../core/faults.ts'
import { withFixedLabels } from '../core/quotas.ts'
import { essenceOf } from '../core/stored-type.ts'
import { graceOfUploads, requireUnexpired } from '../core/token-rules.ts'
import type { Caller } from '../http/authorizer.ts'
import type { BodyReader } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { HeaderFault } from '../http/headers.ts'
import type { OperationDescription } from '../http/openapi/description.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { Upload } from '../storage/catalog/uploads.ts'
import type { AppendUpload, Chunk } from './resumable-chunks.ts'
import {
  type Checksum,
  checksumAlgorithms,
  focusOfMetadata,
  itemExpiryOfMetadata,
  labelsOfMetadata,
  parseMetadata,
  parseUploadHeaders,
  type UploadHeaders,
  type UploadMetadata,
  verifyChecksum,
} from './resumable-headers.ts'
import * as openapi from './resumable-routes.openapi.ts'
import {
  type CreateUpload,
  checkChunk,
  checkFileSize,
  checkUnlocked,
  findUpload,
  type RemoveUpload,
  requireItemRemoval,
} from './resumable-uploads.ts'
import type { UploadLocks } from './upload-locks.ts'
import { refuseFactHeaders } from './upload-routes.ts'

/** The operations that these routes call. */
interface ResumableUploadOperations {
  readonly createUpload: CreateUpload
  readonly appendUpload: AppendUpload
  readonly removeUpload: RemoveUpload
  readonly waitForWriter: UploadLocks['waitForWriter']
}

const tusVersion = '1.0.0'

/**
 * On every response of the routes. tus 1.0.0, Core: "The Tus-Resumable header MUST be included in every request and response
 * except for OPTIONS requests."
 */
const versionHeader = { 'tus-resumable': tusVersion }

/**
 * tus 1.0.0: each extension that the server supports MUST be announced; creation-with-upload "depends directly on the
 * Creation extension".
 */
const extensions = [
  'creation',
  'creation-with-upload',
  'creation-defer-length',
  'expiration',
  'termination',
  'checksum',
]

/** The methods of `X-HTTP-Method-Override`. */
const overrideMethods = ['DELETE', 'HEAD', 'PATCH'] as const

interface ResumableParts {
  readonly http: HttpContext
  readonly operations: ResumableUploadOperations
}

/** Responds to a request with a valid token to an upload. */
type UploadHandler = (parts: ResumableParts, caller: Caller, exchange: Exchange<'id'>) => Promise<Reply>

/** `/api/uploads`: resumable uploads by the tus protocol 1.0.0 (docs/interface.md R1 to R13). */
export function resumableUploadRoutes(
  http: HttpContext,
  operations: ResumableUploadOperations,
): readonly Route[] {
  const parts = { http, operations }
  const options = {
    readsBody: true,
    kind: 'upload',
    headers: versionHeader,
    optionsHeaders: tusOptionsHeaders(http.settings.maxFileSize),
  } as const
  return [
    ...['/api/uploads', '/api/uploads/'].map((path) =>
      route('POST', path, openapi.createUpload, (exchange) => createUpload(parts, exchange), options),
    ),
    uploadRoute(parts, 'HEAD', openapi.findUpload, describeUpload),
    uploadRoute(parts, 'PATCH', openapi.appendUpload, appendToUpload),
    uploadRoute(parts, 'DELETE', openapi.removeUpload, removeUpload),
    uploadRoute(parts, 'POST', openapi.overrideUpload, overrideMethod),
  ]
}

/** The route of a method of an upload. Its handler gets the caller, whose token may have expired lately. */
function uploadRoute(
  parts: ResumableParts,
  method: Route['method'],
  description: OperationDescription,
  handle: UploadHandler,
): Route {
  const { metrics, settings } = parts.http
  const readsBody = method === 'POST' || method === 'PATCH'
  return route(
    method,
    '/api/uploads/:id',
    description,
    async (exchange) => {
      if (readsBody) metrics.countActiveUpload(exchange.response)
      return await handle(parts, await authorizeUpload(parts, exchange, graceOfUploads), exchange)
    },
    {
      readsBody,
      kind: 'upload',
      headers: versionHeader,
      optionsHeaders: tusOptionsHeaders(settings.maxFileSize),
    },
  )
}

async function authorizeUpload(
  { http: { authorize } }: ResumableParts,
  exchange: Exchange,
  grace = 0,
): Promise<Caller> {
  const caller = await authorize(exchange, 'media:write', { grace })
  requireVersion(exchange.request)
  return caller
}

// tus 1.0.0, HEAD and PATCH: if the resource is not found, the Server SHOULD return 404. Expiration: also for "an
// upload which has since been removed". Termination: also "For all future requests to this URL".
function findOwn(
  { http: { catalog } }: ResumableParts,
  caller: Caller,
  { params }: Exchange<'id'>,
): Promise<Upload> {
  return findUpload(catalog, caller, params.id, Date.now())
}

/** `POST /api/uploads`: creates an upload, with its first chunk or without (R1). */
async function createUpload(parts: ResumableParts, exchange: Exchange): Promise<Reply> {
  const {
    http: {
      readBody,
      metrics,
      settings: { baseUrl, maxFileSize },
    },
    operations,
  } = parts
  const { request } = exchange
  metrics.countActiveUpload(exchange.response)
  const caller = await authorizeUpload(parts, exchange)
  refuseContentCoding(request)
  refuseFactHeaders(request, 'Upload-Metadata')
  const headers = parseUploadHeaders(request.headers)
  refuseConcatenation(headers)
  const length = requireLength(headers)
  if (length !== null) checkFileSize(length, maxFileSize, caller)
  const { metadata, checksum } = headers
  const sender = senderOf(caller, metadata, true)
  const chunk = hasChunkType(request)
    ? bodyChunk(request, readBody, { offset: 0, checksum, ...sender })
    : null
  // Before the upload is created, so that the request reserves nothing if its chunk is refused.
  if (chunk !== null) checkChunk({ offset: 0, length }, chunk, maxFileSize, caller)
  const created = await operations.createUpload(caller, {
    length,
    metadata: metadata?.header || null,
    filename: nameOfMetadata(metadata),
    declaredType: firstOf(metadata, 'filetype', 'type'),
  })

  // tus 1.0.0, Creation: "The Upload-Length header MAY be set to 0, indicating that the Client wants to upload an empty
  // file. Such an upload is immediately complete after its creation without transferring data".
  const first = chunk ?? (length === 0 ? emptyChunk(sender) : null)
  const upload = first === null ? created : await appendFirst(operations, created, first)
  return {
    // tus 1.0.0, Creation: "The Server MUST acknowledge a successful upload creation with the 201 Created status. The Server
    // MUST set the Location header to the URL of the created resource."
    status: 201,
    headers: {
      location: `${baseUrl}/api/uploads/${upload.id}`,
      // tus 1.0.0, Creation With Upload: the Server "MUST include the Upload-Offset header in the response and MUST set its
      // value to the offset of the upload after applying the accepted bytes."
      ...(chunk === null ? {} : { 'upload-offset': `${upload.offset}` }),
      ...stateHeaders(upload, baseUrl),
    },
  }
}

/** Faults of the catalog and the store for which the removal of an upload would wait too, and fail. */
const unreachable: ReadonlySet<Fault['code']> = new Set([
  'catalog-busy',
  'catalog-unavailable',
  'storage-unavailable',
])

/** Appends the first chunk. If it fails, removes the upload, whose URL the client never receives. */
async function appendFirst(
  { appendUpload, removeUpload }: ResumableUploadOperations,
  { id }: Upload,
  chunk: Chunk,
): Promise<Upload> {
  try {
    return (await appendUpload(id, chunk)).upload
  } catch (error) {
    // A commit whose response was lost may have finished it.
    const refuse = () => {
      throw error
    }
    // Otherwise, or if that fails, the upload is removed when it expires.
    if (!(error instanceof Fault && unreachable.has(error.code)))
      await removeUpload(id, refuse, chunk.by).catch(() => undefined)
    throw error
  }
}

/** `HEAD /api/uploads/:id`: the offset and the length (R3). */
async function describeUpload(
  parts: ResumableParts,
  caller: Caller,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const {
    http: {
      catalog,
      settings: { baseUrl },
    },
    operations,
  } = parts
  const { id } = await findOwn(parts, caller, exchange)
  parseUploadHeaders(exchange.request.headers)
  // A client usually sends HEAD to resume. The previous request may still wait for bytes from a lost connection.
  await operations.waitForWriter(id)
  const { length, metadata, offset, ...state } = await findUpload(catalog, caller, id, Date.now())
  return {
    // tus 1.0.0, HEAD: "The Server SHOULD acknowledge successful HEAD requests with a 200 OK or 204 No Content status."
    status: 200,
    headers: {
      // tus 1.0.0, HEAD: "The Server MUST always include the Upload-Offset header in the response for a HEAD request, even if
      // the offset is 0, or the upload is already considered completed."
      'upload-offset': `${offset}`,
      // tus 1.0.0, HEAD: "If the size of the upload is known, the Server MUST include the Upload-Length header in the
      // response." Creation: "As long as the length of the upload is not known, the Server MUST set Upload-Defer-Length: 1 in
      // all responses to HEAD requests." An upload whose offset is its length is complete for clients (R5). Without an item, the last request declares
      // the length again.
      ...(length === null || (offset === length && !state.finished)
        ? { 'upload-defer-length': '1' }
        : { 'upload-length': `${length}` }),
      // tus 1.0.0, Creation: "If an upload contains additional metadata, responses to HEAD requests MUST include the
      // Upload-Metadata header and its value as specified by the Client during the creation."
      ...(metadata ? { 'upload-metadata': metadata } : {}),
      ...stateHeaders(state, baseUrl),
    },
  }
}

/** `PATCH /api/uploads/:id`: appends a chunk (R4 to R7). */
async function appendToUpload(
  parts: ResumableParts,
  caller: Caller,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const {
    http: {
      readBody,
      settings: { baseUrl, maxFileSize },
    },
  } = parts
  const { request } = exchange
  const found = await findOwn(parts, caller, exchange)
  if (found.finished) requireUnexpired(caller)
  refuseContentCoding(request)
  // tus 1.0.0, PATCH: "All PATCH requests MUST use Content-Type: application/offset+octet-stream, otherwise the server
  // SHOULD return a 415 Unsupported Media Type status."
  if (!hasChunkType(request))
    throw new Fault('upload-type-unsupported', `A chunk must have the Content-Type ${chunkType}.`, {
      members: { accepted: [chunkType] },
    })
  const { offset, length, checksum } = parseUploadHeaders(request.headers)
  if (offset === null) throw new Fault('upload-malformed', 'The header Upload-Offset is missing.')
  const metadata = found.metadata === null ? null : parseMetadata(found.metadata)
  const sender = senderOf(caller, metadata, false)
  const chunk = bodyChunk(request, readBody, { offset, length, checksum, ...sender })
  // appendUpload checks with the lock of the upload. To get it, it may interrupt another request, so a chunk that does not fit is rejected here.
  checkUnlocked(found, chunk, maxFileSize, caller)
  const { upload } = await parts.operations.appendUpload(found.id, chunk)
  // tus 1.0.0, PATCH: "The Server MUST acknowledge successful PATCH requests with the 204 No Content status. It MUST
  // include the Upload-Offset header containing the new offset."
  return {
    status: 204,
    headers: { 'upload-offset': `${upload.offset}`, ...stateHeaders(upload, baseUrl) },
  }
}

/** `DELETE /api/uploads/:id`: removes the upload, and its item if it is finished (R9). */
async function removeUpload(parts: ResumableParts, caller: Caller, exchange: Exchange<'id'>): Promise<Reply> {
  const {
    http: { metrics },
    operations,
  } = parts
  const { id } = await findOwn(parts, caller, exchange)
  parseUploadHeaders(exchange.request.headers)
  const mayDelete = () => requireItemRemoval(caller)
  const removed = await operations.removeUpload(id, mayDelete, caller.actor)
  if (removed.item) metrics.deletedItems.inc()
  // tus 1.0.0, Termination: "the Server SHOULD free associated resources and MUST respond with the 204 No Content status".
  return { status: 204, headers: { 'cache-control': 'no-store' } }
}

/**
 * `POST /api/uploads/:id`: handles the request as one with the method of `X-HTTP-Method-Override`. On other methods the header is
 * ignored, so that a request never does more than its method permits (R13).
 */
async function overrideMethod(
  parts: ResumableParts,
  caller: Caller,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  // tus 1.0.0, Core: the header "MUST be interpreted as the request's method by the Server, if the header is presented. The
  // actual method of the request MUST be ignored."
  const value = exchange.request.headers['x-http-method-override']
  switch (overrideMethods.find((method) => method === value)) {
    case 'DELETE':
      return await removeUpload(parts, caller, exchange)
    case 'HEAD':
      return await describeUpload(parts, caller, exchange)
    case 'PATCH':
      return await appendToUpload(parts, caller, exchange)
    default: {
      const detail = `POST needs the header X-HTTP-Method-Override with ${overrideMethods.join(', ')}.`
      throw new HeaderFault('method-not-allowed', detail, { allow: 'DELETE, HEAD, OPTIONS, PATCH' })
    }
  }
}

/** What the response to OPTIONS carries, which needs neither token nor version. `maxFileSize` is in bytes. */
const tusOptionsHeaders = (maxFileSize: number): Readonly<Record<string, string>> => ({
  // tus 1.0.0, OPTIONS: "A successful response […] MUST contain the Tus-Version header."
  'tus-version': tusVersion,
  ...versionHeader,
  // tus 1.0.0, Core: "The Tus-Extension response header MUST be a comma-separated list of the extensions".
  'tus-extension': extensions.join(','),
  // tus 1.0.0, Core: "The Tus-Max-Size response header MUST be a non-negative integer indicating the maximum allowed size".
  'tus-max-size': String(maxFileSize),
  // tus 1.0.0, Checksum: "The Tus-Checksum-Algorithm header MUST be included in the response to an OPTIONS request."
  'tus-checksum-algorithm': checksumAlgorithms.join(','),
})

/** Throws Fault `upload-version-unsupported`. */
function requireVersion({ headers }: IncomingMessage): void {
  if (headers['tus-resumable'] === tusVersion) return
  // tus 1.0.0, Core: "If the version specified by the Client is not supported by the Server, it MUST respond with the 412
  // Precondition Failed status and MUST include the Tus-Version header into the response. In addition, the Server MUST NOT
  // process the request."
  throw new HeaderFault('upload-version-unsupported', `Send the header Tus-Resumable: ${tusVersion}.`, {
    'tus-version': tusVersion,
  })
}

/** The headers that describe the state of an upload. */
function stateHeaders(
  { finished, itemId, expiresAt }: Pick<Upload, 'finished' | 'itemId' | 'expiresAt'>,
  baseUrl: string,
): Readonly<Record<string, string>> {
  // tus 1.0.0, HEAD: "The Server MUST prevent the client and/or proxies from caching the response by adding the
  // Cache-Control: no-store header".
  const caching = { 'cache-control': 'no-store' }
  if (finished) return { ...caching, 'content-location': `${baseUrl}/api/media/${itemId}` }
  // tus 1.0.0, Expiration: "This header MUST be included in every PATCH response if the upload is going to expire. If the
  // expiration is known at the creation, the Upload-Expires header MUST be included in the response to the initial POST
  // request. […] The value of the Upload-Expires header MUST be in RFC 9110 datetime format."
  return { ...caching, 'upload-expires': new Date(expiresAt).toUTCString() }
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

/** The first of these values that is not empty, without U+0000, which PostgreSQL refuses in a text. */
const firstOf = (metadata: UploadMetadata | null, ...keys: string[]): string | null =>
  keys.map((key) => metadata?.values.get(key)?.replaceAll('\0', '')).find(Boolean) ?? null

/**
 * The name of the file, with its path within a folder before it: `relativePath`, which Uppy sends. Uppy sends the word `null` for a file outside
 * of folders.
 */
function nameOfMetadata(metadata: UploadMetadata | null): string | null {
  const name = firstOf(metadata, 'filename', 'name')
  const path = firstOf(metadata, 'relativePath') ?? ''
  const folder = path.slice(0, path.lastIndexOf('/') + 1)
  return folder === '' ? name : folder + (name?.split('/').at(-1) ?? path.slice(folder.length))
}

const chunkType = 'application/offset+octet-stream'

/** Whether the request declares its body as a chunk. */
const hasChunkType = ({ headers }: IncomingMessage): boolean =>
  essenceOf(headers['content-type'] ?? '') === chunkType

/** The declared length of the body in bytes; 0 if it is not declared. */
const declaredBytes = ({ headers }: IncomingMessage): number => Number(headers['content-length'] ?? 0)

/** Throws Fault `content-coding-unsupported`. */
function refuseContentCoding({ headers }: IncomingMessage): void {
  if (headers['content-encoding'] !== undefined)
    throw new Fault('content-coding-unsupported', 'Send the bytes without Content-Encoding.')
}

/** What a chunk has from the token of its request and from the metadata of its upload. `isNew` is false for an upload that exists. */
function senderOf(caller: Caller, metadata: UploadMetadata | null, isNew: boolean): Sender {
  const { actor: by, removesMetadata, limits, fileLimits } = caller
  const labels = withFixedLabels(limits, labelsOfMetadata(metadata))
  const expiresAt = itemExpiryOfMetadata(metadata, caller, isNew)
  return { by, removesMetadata, limits, fileLimits, expiresAt, labels, focus: focusOfMetadata(metadata) }
}

type Sender = Pick<
  Chunk,
  'by' | 'removesMetadata' | 'limits' | 'fileLimits' | 'expiresAt' | 'labels' | 'focus'
>

/** The body of the request as a chunk. */
function bodyChunk(
  request: IncomingMessage,
  readBody: BodyReader,
  { checksum, ...header }: Sender & Pick<Chunk, 'offset' | 'length'> & { readonly checksum: Checksum | null },
): Chunk {
  const body = readBody(request)
  return {
    ...header,
    declaredBytes: declaredBytes(request),
    source: checksum === null ? body : verifyChecksum(body, checksum),
    // tus 1.0.0, Checksum: on a mismatch "the uploaded chunk MUST be discarded, and the upload and its offset MUST NOT be
    // updated". Otherwise "The Server SHOULD always attempt to store as much of the received data as possible."
    isAtomic: checksum !== null,
  }
}

/** The only chunk of an empty file. */
const emptyChunk = (sender: Sender): Chunk => ({
  offset: 0,
  source: noBytes(),
  isAtomic: true,
  ...sender,
})

async function* noBytes(): AsyncGenerator<Uint8Array> {}
