import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { Fault } from '../../core/fault.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import { describeMedia } from '../../media/describe-media.ts'
import type { StoreMedia } from '../../media/store-media.ts'
import type { BodyReader } from '../bodies/body-reader.ts'
import { isMultipartForm } from '../forms/boundary.ts'
import { readFormFiles } from '../forms/form-files.ts'
import { readRawFile } from '../forms/raw-file.ts'
import { parseIdempotencyKey } from '../headers/idempotency-key.ts'
import { countHeader } from '../headers/raw-headers.ts'
import { listingPaths } from '../listing/list-media.ts'
import { countUploads } from '../metrics/count-uploads.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { otherMedia, sampleMedia } from '../openapi/samples.ts'
import { MediaList, MediaObject } from '../openapi/schemas.ts'
import type { Authorizer } from '../tokens/authorizer.ts'

interface Parts {
  readonly authorize: Authorizer
  readonly readBody: BodyReader
  readonly storeMedia: StoreMedia
  readonly form: UrlSettings
  readonly maxFileSize: number
  readonly maxParts: number
  readonly metrics: Metrics
}

/** What a form adds to its files at the most, for refusing by the declared length alone. Bytes per part. */
const partOverhead = 16_384

/** `POST /api/media`: one or many files, all or none (docs/interface.md, Upload). */
export async function storeMediaRoute(app: FastifyInstance, parts: Parts): Promise<void> {
  const { authorize, readBody, storeMedia, form, maxFileSize, maxParts, metrics } = parts

  countUploads(app, metrics)
  // Bodies stay unread until the handler has seen the token; JSON and text are files like any others (U3).
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))

  for (const url of listingPaths) {
    app.post(url, routeOptions(description), async (request, reply) => {
      const grant = await authorize(request, 'media:write')
      if (request.headers['content-encoding'] !== undefined) {
        throw new Fault('content-coding-unsupported', 'Send the file without Content-Encoding.')
      }
      // Node keeps the first one, which may name another form than the client means.
      if (countHeader(request.raw, 'content-type') > 1)
        throw new Fault('request-malformed', 'The request has more than one Content-Type header.')
      const length = request.headers['content-length']
      const declared = Number(length ?? 0)
      const asForm = isMultipartForm(request.headers['content-type'] ?? '')
      if (declared > (asForm ? maxParts * (maxFileSize + partOverhead) : maxFileSize))
        throw tooLarge(maxFileSize)
      const sentKey = request.headers['idempotency-key']
      const key =
        sentKey === undefined
          ? null
          : { tokenId: grant.tokenId, key: parseIdempotencyKey(sentKey.toString()) }
      const files = asForm
        ? readFormFiles(request.raw, readBody, maxParts)
        : readRawFile(request.raw, readBody)

      const stored = await storeMedia(grant.bucketId, files, {
        key,
        declaredBytes: asForm ? 0 : declared,
        atMost: asForm || length === undefined ? null : declared,
      })
      if (!stored.repeated) {
        metrics.uploadedItems.inc(stored.media.length)
        metrics.uploadedBytes.inc(stored.media.reduce((sum, { size }) => sum + size, 0))
      }

      const media = stored.media.map((item) => describeMedia(form, item))
      const [only, ...others] = media
      reply.code(201).header('cache-control', 'private, no-cache')
      if (!only || others.length > 0) return { data: media }
      return reply.header('location', `${form.baseUrl}/api/media/${only.id}`).send(only)
    })
  }
}

const tooLarge = (limit: number) => new Fault('file-too-large', `A file may have at most ${limit} bytes.`)

/** A file part may have any name. */
const Form = Type.Object(
  {
    file: Type.Array(Type.String({ format: 'binary' }), {
      description: 'One file or many.',
    }),
  },
  {
    additionalProperties: true,
    description:
      'Every part with a filename is a file; fields are ignored. A malformed or ambiguous form is refused.',
  },
)

const description: OperationDescription = {
  operationId: 'storeMedia',
  tag: 'Upload',
  summary: 'Upload one file or many',
  description: `Either a form, every file part of which is stored, all of them or none; or any other body, which is one file as it
is: its type is \`Content-Type\`, its name the \`filename\` of \`Content-Disposition\`. A 201 means that bytes and rows are synced to disk.

The stored type is the one that the bytes show. Where they show none, it is the declared type, or that of the name's extension
where none is declared.

An \`Idempotency-Key\` makes it safe to send an upload again whose answer was lost.`,
  rules: 'U1 to U12, I1 to I5',
  needs: 'media:write',
  headers: ['Content-Disposition', 'Idempotency-Key', 'Expect'],
  body: {
    description: 'The files. A `Content-Encoding` is refused: bytes are kept exactly as they are sent.',
    content: { 'multipart/form-data': { schema: Form }, '*/*': {} },
  },
  responses: {
    201: {
      description:
        'Stored. One file answers its media object and `Location`; several answer a list in the order sent.',
      headers: ['Location', 'Cache-Control'],
      content: {
        'application/json': {
          schema: Type.Union([MediaObject, MediaList]),
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
