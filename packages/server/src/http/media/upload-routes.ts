import type { IncomingMessage } from 'node:http'
import { Type } from 'typebox'
import type { Grant } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import { createTimestampFormat } from '../../core/timestamp.ts'
import type { RequestKey, Stored } from '../../media/commit-files.ts'
import { mediaObjectOf } from '../../media/describe-media.ts'
import type { HttpContext } from '../context.ts'
import { isMultipartForm, maxFormLength, minFileBytes, readFormFiles } from '../forms/form-files.ts'
import { itemExpiryOf, parseIdempotencyKey, rawFileHeaders, readRawFile } from '../forms/upload-request.ts'
import { countHeader } from '../headers/raw-headers.ts'
import { listingPaths } from '../listing/listing-routes.ts'
import { exampleBase, type OperationDescription } from '../openapi/operation-description.ts'
import { otherItem, sampleItem } from '../openapi/samples.ts'
import { MediaList, MediaObject as MediaSchema } from '../openapi/schemas.ts'
import type { Operations } from '../operations.ts'
import type { Caller } from '../routing/authorizer.ts'
import { type Exchange, type Reply, type Route, route } from '../routing/route.ts'

/** `POST /api/media`: stores all files of the request or none (docs/interface.md, Upload). */
export function uploadRoutes(http: HttpContext, operations: Operations): readonly Route[] {
  const { authorize, readBody, readWholeBody, metrics, urls, settings } = http
  const { maxFileSize, inlineSize } = settings
  /** Larger files are streamed. Bytes. */
  const smallFileSize = Math.min(inlineSize, maxFileSize)

  async function storeForm(request: IncomingMessage, caller: Caller, length: number): Promise<Stored> {
    if (length > maxFormLength(maxFileSize)) throw fileTooLarge(maxFileSize)
    const key = requestKey(request, caller)
    return await operations.storeItems(caller, readFormFiles(request, readBody), {
      by: caller.actor,
      key,
      expiresAt: itemExpiryOf(request, caller, key !== null),
      declaredBytes: minFileBytes(length),
      atMost: null,
    })
  }

  async function storeRawBody(request: IncomingMessage, caller: Caller, length: number): Promise<Stored> {
    if (length > maxFileSize) throw fileTooLarge(maxFileSize)
    const key = requestKey(request, caller)
    const expiresAt = itemExpiryOf(request, caller, key !== null)
    // With `Expect` the client sends the body only if the quota allows it, which storeItems checks first (U11).
    if (length > 0 && length <= smallFileSize && request.headers.expect === undefined) {
      const file = rawFileHeaders(request)
      // Streams and async generators take twice as much CPU time as storing a small file.
      const bytes = await readWholeBody(request)
      // Null if the memory for bodies is used up.
      if (bytes !== null)
        return await operations.storeSmallFile(caller, { ...file, bytes, expiresAt }, key, caller.actor)
    }
    return await operations.storeItems(caller, readRawFile(request, readBody), {
      by: caller.actor,
      key,
      expiresAt,
      declaredBytes: length,
      atMost: request.headers['content-length'] === undefined ? null : length,
    })
  }

  async function store(exchange: Exchange): Promise<Reply> {
    const { request } = exchange
    const { headers } = request
    metrics.countActiveUpload(exchange.response)
    const caller = await authorize(exchange, 'media:write')
    if (headers['content-encoding'] !== undefined)
      throw new Fault('content-coding-unsupported', 'Send the file without Content-Encoding.')
    // Node keeps the first one, which may not be the one that describes the body.
    if (countHeader(request, 'content-type') > 1)
      throw new Fault('request-malformed', 'The request has more than one Content-Type header.')
    const length = Number(headers['content-length'] ?? 0)
    const { items, repeated } = await (isMultipartForm(headers['content-type'] ?? '')
      ? storeForm(request, caller, length)
      : storeRawBody(request, caller, length))
    if (!repeated) {
      metrics.uploadedItems.inc(items.length)
      metrics.uploadedBytes.inc(items.reduce((sum, { size }) => sum + size, 0))
    }

    const formatTime = createTimestampFormat()
    const described = items.map((item) => mediaObjectOf(urls, item, null, formatTime))
    const [first, ...others] = described
    const caching = { 'cache-control': 'private, no-cache' }
    if (!first || others.length > 0) return { status: 201, headers: caching, json: { data: described } }
    const location = `${urls.baseUrl}/api/media/${first.id}`
    return { status: 201, headers: { ...caching, location }, json: first }
  }

  // JSON and text are files too (U3).
  return listingPaths.map((path) => route('POST', path, description, store, { readsBody: true }))
}

/** The idempotency key of the request, null without one. Throws Fault where it is malformed. */
function requestKey({ headers }: IncomingMessage, { tokenId }: Pick<Grant, 'tokenId'>): RequestKey | null {
  const header = headers['idempotency-key']
  return header === undefined ? null : { tokenId, key: parseIdempotencyKey(header.toString()) }
}

const fileTooLarge = (limit: number) => new Fault('file-too-large', `A file may have at most ${limit} bytes.`)

/** The form in the OpenAPI document; a file part may have any name. */
const Form = Type.Object(
  {
    file: Type.Array(Type.String({ format: 'binary' }), {
      description: 'One or more files.',
    }),
  },
  {
    additionalProperties: true,
    description:
      'Every part with a filename is a file; fields are ignored. Malformed and ambiguous forms are refused.',
  },
)

const description: OperationDescription = {
  operationId: 'storeMedia',
  tag: 'Upload',
  summary: 'Upload files',
  description: `The body is a form, whose file parts are all stored or none, or any other body, which is stored as one file: its type
is \`Content-Type\`, its name the \`filename\` of \`Content-Disposition\`. A 201 means that bytes and rows are synced to disk.

The stored type is detected from the bytes. Where that fails, it is the declared type, or the type of the name's extension
if none is declared.

With an \`Idempotency-Key\` an upload can be sent again safely after its response was lost.`,
  rules: 'U1 to U12, I1 to I5',
  needs: 'media:write',
  headers: ['Content-Disposition', 'Idempotency-Key', 'Mediabucket-Expires-At', 'Expect'],
  body: {
    description:
      'The files. A `Content-Encoding` is refused, because bytes are stored exactly as they are sent.',
    content: { 'multipart/form-data': { schema: Form }, '*/*': {} },
  },
  responses: {
    201: {
      description:
        'Stored. One file returns its media object and `Location`, several files a list in the order sent.',
      headers: ['Location', 'Cache-Control'],
      content: {
        'application/json': {
          schema: Type.Union([MediaSchema, MediaList]),
          examples: { 'one file': sampleItem, 'several files': { data: [sampleItem, otherItem] } },
        },
      },
    },
  },
  problems: [
    'form-malformed',
    'form-without-file',
    'upload-incomplete',
    'filename-malformed',
    'file-unreadable',
    'file-too-large',
    'parts-too-many',
    'content-coding-unsupported',
    'idempotency-key-malformed',
    'idempotency-key-reused',
    'quota-exceeded',
    'storage-full',
  ],
  curl: `curl -H "Authorization: Bearer $TOKEN" -F file=@harbour.jpg ${exampleBase}/api/media`,
}
