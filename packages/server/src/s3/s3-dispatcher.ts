import type { IncomingMessage, ServerResponse } from 'node:http'
import { actorOf, completed, completedForReads } from '../access/token-operations.ts'
import { errorCode, Fault } from '../core/faults.ts'
import { isBucketName } from '../core/names.ts'
import { requireScope } from '../core/token-rules.ts'
import type { Caller } from '../http/authorizer.ts'
import { discardBody, discardUnreadBody, hasBody } from '../http/bodies.ts'
import { protocolFault, requireHostHeader } from '../http/headers.ts'
import { isForProbe, refusalOfConnection } from '../http/probe-places.ts'
import { requestIdsOf } from '../http/request-ids.ts'
import type { RequestLogger } from '../http/request-log.ts'
import type { Authentication, Authenticator } from './authentication.ts'
import {
  bucketHandlers,
  bucketHead,
  bucketSettings,
  isListedPublicly,
  refuseBucket,
} from './bucket-handlers.ts'
import { copyHandlers } from './copy-handlers.ts'
import { listHandlers, listPublicly } from './list-handlers.ts'
import { multipartHandlers, multipartLists } from './multipart-handlers.ts'
import { deleteObjects, objectHandlers } from './object-handlers.ts'
import { sendPublicObject } from './public-objects.ts'
import { type RequestTarget, targetOf } from './request-target.ts'
import type { BucketCall, S3Call, S3Context, S3Reply } from './s3-context.ts'
import { errorElement, errorOf, S3Error, s3ErrorOf } from './s3-errors.ts'
import { type OperationName, operationOf, traitsOf, unsupportedPart } from './s3-operations.ts'
import { S3Request } from './s3-request.ts'
import { xmlDocument, xmlHead, xmlOf } from './xml.ts'

const ofBucket = {
  ...bucketSettings,
  ...listHandlers,
  ...multipartLists,
  DeleteObjects: deleteObjects,
} as const
const ofObject = { ...objectHandlers, ...copyHandlers, ...multipartHandlers } as const

const isOneOf = <Name extends OperationName>(
  table: Readonly<Record<Name, unknown>>,
  name: OperationName,
): name is Name => Object.hasOwn(table, name)

/** The largest body that is discarded where an operation has none. Bytes. */
const maxIgnoredBody = 65_536

/** Operations whose handlers read a body. */
const readsBody: ReadonlySet<OperationName> = new Set([
  ...(['CreateBucket', 'DeleteObjects', 'PutObject', 'PutObjectAcl'] as const),
  ...(['UploadPart', 'CompleteMultipartUpload', 'PutBucketAcl', 'PutBucketVersioning'] as const),
])

interface DispatcherParts {
  /** The host before which virtual hosts name their bucket; null for none. */
  readonly host: string | null
  readonly authenticator: Authenticator
  readonly logRequest: RequestLogger
}

/** Handles the requests of the S3 protocol, each by its operation. */
export class S3Dispatcher {
  readonly #context: S3Context
  readonly #parts: DispatcherParts

  constructor(context: S3Context, parts: DispatcherParts) {
    this.#context = context
    this.#parts = parts
  }

  /** Handles a request of the HTTP server. */
  dispatch(request: IncomingMessage, response: ServerResponse): void {
    const { host, logRequest } = this.#parts
    const { stopping } = this.#context.http
    const { id, trace, headers } = requestIdsOf(request.headers)
    if (headers !== null) for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    response.setHeader('x-amz-request-id', id)
    const fault = protocolFault(request)
    const found = fault === null ? find(request, host) : { target: nowhere, error: s3ErrorOf(fault) }
    const operation = 'error' in found ? null : found.operation
    const name = operation !== null && 'name' in operation ? operation.name : null
    const kind = name === null ? 'other' : traitsOf(name).kind
    const line = logRequest(request, response, {
      ...{ id, trace, kind, route: `s3:${name ?? 'unknown'}` },
      path: loggedPathOf(found.target),
    })
    if (hasBody(request)) discardUnreadBody(request, response)
    if (fault !== null || stopping.aborted || isForProbe(request.socket)) response.shouldKeepAlive = false
    const exchange = { id, request, response, line }
    if (fault !== null || 'error' in found)
      this.#sendError(exchange, found.target, 'error' in found ? found.error : new S3Error('InvalidRequest'))
    else void this.#serve(exchange, found.target, found.operation)
  }

  async #serve(
    exchange: Pick<S3Request, 'id' | 'request' | 'response' | 'line'>,
    target: RequestTarget,
    operation: ReturnType<typeof operationOf>,
  ): Promise<void> {
    const { response } = exchange
    try {
      const reply = await this.#handle(exchange, target, operation)
      if (reply !== null) sendReply(exchange.request, response, reply)
    } catch (error) {
      // The client has closed the connection before the end of a stream.
      if (response.destroyed && errorCode(error) === 'ERR_STREAM_PREMATURE_CLOSE') return
      const sent = errorOf(error, (unknown) => this.#context.reportFault(unknown, exchange))
      if (response.headersSent) response.destroy()
      else this.#sendError(exchange, target, sent)
    }
  }

  async #handle(
    exchange: Pick<S3Request, 'id' | 'request' | 'response' | 'line'>,
    target: RequestTarget,
    operation: ReturnType<typeof operationOf>,
  ): Promise<S3Reply | null> {
    const { http } = this.#context
    const { request: incoming } = exchange
    const refusal = refusalOfConnection(incoming.socket) ?? http.limits.countAddress(incoming)
    if (refusal) throw refusal
    requireHostHeader(incoming)
    if (incoming.method === 'OPTIONS') throw refusalOfPreflight(incoming)
    const request = new S3Request(exchange, target)
    const authentication = await this.#parts.authenticator.authenticate(request)
    if (authentication === null) return await this.#handlePublic(request, operation)
    if ('unknown' in operation) throw notImplemented(operation.unknown)
    const { name } = operation
    const traits = traitsOf(name)
    requireSupported(request, name)
    if (traits.changes && http.settings.readOnly)
      throw new Fault('read-only', 'The service accepts no changes at present. Reads continue.')
    if (!readsBody.has(name) && hasBody(incoming)) await discardBody(incoming, maxIgnoredBody)

    const { grant, payload } = authentication
    const { tokenId } = grant
    request.line.token = tokenId
    const limited = http.limits.countToken(tokenId)
    if (limited) throw limited
    const address = http.addresses.wholeOfRequest(incoming)
    const call = { request, payload, grant, actor: actorOf({ tokenId, subject: null }, address, request.id) }
    if (traits.on === 'service') {
      if (traits.scope !== null) requireScope(grant, traits.scope)
      if (!isOneOf(bucketHandlers, name)) throw notImplemented(name)
      return await bucketHandlers[name](this.#context, call)
    }
    const inBucket = await this.#inBucket(call, authentication, name)
    if (isOneOf(ofBucket, name)) return await ofBucket[name](this.#context, inBucket)
    const { key } = target
    if (key === null || !isOneOf(ofObject, name)) throw notImplemented(name)
    return await ofObject[name](this.#context, { ...inBucket, key })
  }

  /** What the caller may do in the bucket of the request. Throws S3Error `NoSuchBucket` and `AccessDenied`, and Fault `scope-missing`. */
  async #inBucket(call: S3Call, { grant }: Authentication, name: OperationName): Promise<BucketCall> {
    const { http, operations } = this.#context
    const bucket = call.request.target.bucket ?? ''
    const { scope, changes, kind } = traitsOf(name)
    const found = grant.ofBucket ?? (await refuseBucket(http, grant, bucket))
    const verify = async () =>
      (await operations.accessKeys.refresh(grant.tokenId, bucket)).ofBucket ??
      (await refuseBucket(http, grant, bucket))
    const granted = changes ? await completed(found, verify) : await completedForReads(found, verify)
    if (kind !== 'download') http.usage.countRequest(granted.bucketId, kind)
    if (scope !== null) requireScope({ scopes: grant.scopes }, scope)
    const caller: Caller = { ...granted, actor: call.actor }
    return { ...call, bucket, caller }
  }

  /** A request without a signature can read public objects, and list a bucket whose ACL is public-read (docs/interface.md SP11, SP12). */
  async #handlePublic(
    request: S3Request,
    operation: ReturnType<typeof operationOf>,
  ): Promise<S3Reply | null> {
    const { http } = this.#context
    const name = 'name' in operation ? operation.name : null
    const { bucket, key } = request.target
    const unsigned = new S3Error('AccessDenied', 'The request is not signed.')
    if (bucket === null || (name !== null && traitsOf(name).on === 'service')) throw unsigned
    const found = isBucketName(bucket) ? await http.catalog.findListedBucket(bucket) : null
    if (found === null) throw new S3Error('NoSuchBucket')
    if (key === null && isListedPublicly(found)) {
      if (name === 'HeadBucket') return bucketHead(this.#context)
      if (name === 'ListObjects' || name === 'ListObjectsV2') {
        requireSupported(request, name)
        http.usage.countRequest(found.id, 'list')
        return await listPublicly(this.#context, name, { request, bucket, caller: { bucketId: found.id } })
      }
    }
    if (key === null || (name !== 'GetObject' && name !== 'HeadObject')) throw unsigned
    if (found.publicKeys) requireSupported(request, name)
    await sendPublicObject(this.#context, request, found, key)
    return null
  }

  #sendError(
    { id, request, response }: Pick<S3Request, 'id' | 'request' | 'response'>,
    { path }: Pick<RequestTarget, 'path'>,
    error: S3Error,
  ): void {
    const { code, status, headers } = error
    // A 304 and a response to HEAD have no body.
    if (status === 304 || request.method === 'HEAD') {
      response.writeHead(status, status === 304 ? headers : { ...headers, 'content-type': 'application/xml' })
      response.end()
      return
    }
    const body = Buffer.from(errorDocument(error, path, id))
    response.writeHead(status, {
      ...{ 'content-type': 'application/xml', 'content-length': `${body.byteLength}` },
      ...{ 'x-content-type-options': 'nosniff', ...headers },
      ...(code === 'AccessDenied' || code === 'SlowDown' ? { 'cache-control': 'no-store' } : {}),
    })
    response.end(body)
  }
}

/** The document of an error. */
export const errorDocument = (error: S3Error, resource: string, requestId: string): string =>
  xmlHead + xmlOf(errorElement(error, resource, requestId))

/** The path of a request without its key, which is the name of a file (docs/interface.md O3). */
const loggedPathOf = ({ bucket, key }: RequestTarget): string => {
  const ofBucket = bucket === null ? '/' : `/${isBucketName(bucket) ? bucket : '*'}`
  return key === null ? ofBucket : `${ofBucket}/*`
}

const nowhere: RequestTarget = {
  path: '/',
  bucket: null,
  key: null,
  query: new URLSearchParams(),
  isVirtual: false,
}

type Found =
  | { readonly target: RequestTarget; readonly operation: ReturnType<typeof operationOf> }
  | { readonly target: RequestTarget; readonly error: S3Error }

function find(request: IncomingMessage, host: string | null): Found {
  try {
    const target = targetOf(request, host)
    return { target, operation: operationOf(request.method ?? '', target, namesSource(request, target)) }
  } catch (error) {
    if (!(error instanceof S3Error)) throw error
    return { target: nowhere, error }
  }
}

/** Whether the request copies an object, which it names in a header, or in a parameter of a signed URL. */
const namesSource = ({ headers }: IncomingMessage, { query }: RequestTarget): boolean =>
  headers['x-amz-copy-source'] !== undefined ||
  [...query.keys()].some((name) => name.toLowerCase() === 'x-amz-copy-source')

const notImplemented = (what: string): S3Error =>
  new S3Error('NotImplemented', `The service does not implement ${what}.`)

/** Throws S3Error `NotImplemented` for a header or a parameter that would be ignored. */
function requireSupported(request: S3Request, name: OperationName): void {
  const unsupported = unsupportedPart(request.headersFrom('x-amz-'), request.target)
  if (unsupported !== null) throw notImplemented(`${name} with ${unsupported}`)
}

/** Pages of other origins have no rights here: the headers that would grant them are those of a reverse proxy. */
const refusalOfPreflight = ({ headers }: IncomingMessage): S3Error =>
  new S3Error(
    headers.origin === undefined || headers['access-control-request-method'] === undefined
      ? 'BadRequest'
      : 'AccessForbidden',
  )

function sendReply(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers = {}, xml }: S3Reply,
): void {
  const body = xml === undefined ? null : Buffer.from(xmlDocument(...xml))
  if (body === null) {
    response.writeHead(status, status === 204 ? headers : { 'content-length': '0', ...headers })
    response.end()
    return
  }
  response.writeHead(status, {
    ...{ 'content-type': 'application/xml', 'content-length': `${body.byteLength}` },
    ...headers,
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}
