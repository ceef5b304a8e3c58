import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { Grant } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import { createTimestampFormat } from '../../core/timestamp.ts'
import type { RequestKey } from '../../media/commit-files.ts'
import { describeMedia, type MediaObject } from '../../media/describe-media.ts'
import type { StoreMedia } from '../../media/store-media.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { leaveBodiesUnread } from '../bodies/unread-bodies.ts'
import { isMultipartForm } from '../forms/boundary.ts'
import { maxFormLength, minFileBytes, readFormFiles } from '../forms/form-files.ts'
import { readRawFile } from '../forms/raw-file.ts'
import { parseIdempotencyKey } from '../headers/idempotency-key.ts'
import { itemExpiryOf } from '../headers/item-expiry.ts'
import { countHeader } from '../headers/raw-headers.ts'
import { listingPaths } from '../listing/list-media.ts'
import { countUploads } from '../metrics/count-uploads.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { otherMedia, sampleMedia } from '../openapi/samples.ts'
import { MediaList, MediaObject as MediaSchema } from '../openapi/schemas.ts'
import type { Authorizer } from '../tokens/authorizer.ts'

interface Parts {
  readonly authorize: Authorizer
  readonly readBody: BodyReader
  readonly storeMedia: StoreMedia
  readonly urlSettings: UrlSettings
  readonly maxFileSize: number
  readonly metrics: Metrics
}

/** `POST /api/media`: stores all files of the request or none (docs/interface.md, Upload). */
export async function storeMediaRoute(app: FastifyInstance, parts: Parts): Promise<void> {
  const { authorize, readBody, storeMedia, urlSettings, maxFileSize, metrics } = parts

  countUploads(app, metrics)
  // JSON and text are files too (U3).
  leaveBodiesUnread(app)

  for (const url of listingPaths) {
    app.post(url, routeOptions(description), async (request, reply) => {
      const grant = await authorize(request, 'media:write')
      if (request.headers['content-encoding'] !== undefined) {
        throw new Fault('content-coding-unsupported', 'Send the file without Content-Encoding.')
      }
      // Node keeps the first one, which may not be the one that describes the body.
      if (countHeader(request.raw, 'content-type') > 1)
        throw new Fault('request-malformed', 'The request has more than one Content-Type header.')
      const length = request.headers['content-length']
      const declared = Number(length ?? 0)
      const isForm = isMultipartForm(request.headers['content-type'] ?? '')
      if (declared > (isForm ? maxFormLength(maxFileSize) : maxFileSize)) throw fileTooLarge(maxFileSize)
      const key = requestKey(request.raw, grant)
      const expiresAt = itemExpiryOf(request.raw, grant, key !== null)
      const files = isForm ? readFormFiles(request.raw, readBody) : readRawFile(request.raw, readBody)

      const stored = await storeMedia(grant, files, {
        by: grant.actor,
        key,
        expiresAt,
        declaredBytes: isForm ? minFileBytes(declared) : declared,
        atMost: isForm || length === undefined ? null : declared,
      })
      if (!stored.repeated) {
        metrics.uploadedItems.inc(stored.media.length)
        metrics.uploadedBytes.inc(stored.media.reduce((sum, { size }) => sum + size, 0))
      }

      const formatTime = createTimestampFormat()
      const media = stored.media.map((item) => describeMedia(urlSettings, item, null, formatTime))
      const [first, ...others] = media
      reply.code(201).headers(storedHeaders)
      if (!first || others.length > 0) return { data: media }
      return reply.header('location', locationOf(urlSettings, first)).send(first)
    })
  }
}

/** Headers of every 201. */
export const storedHeaders = { 'cache-control': 'private, no-cache' }

export const locationOf = ({ baseUrl }: UrlSettings, { id }: Pick<MediaObject, 'id'>): string =>
  `${baseUrl}/api/media/${id}`

/** The idempotency key of the request, null without one. Throws Fault where it is malformed. */
export function requestKey(
  { headers }: IncomingMessage,
  { tokenId }: Pick<Grant, 'tokenId'>,
): RequestKey | null {
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
          examples: { 'one file': sampleMedia, 'several files': { data: [sampleMedia, otherMedia] } },
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
