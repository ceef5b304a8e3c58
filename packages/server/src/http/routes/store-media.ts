import type { FastifyInstance } from 'fastify'
import { Fault } from '../../core/fault.ts'
import { parseIdempotencyKey } from '../../core/idempotency-key.ts'
import type { UrlForm } from '../../core/media-url.ts'
import { describeMedia } from '../../media/describe-media.ts'
import type { StoreMedia } from '../../media/store-media.ts'
import type { BytesOf } from '../bodies.ts'
import type { Authorise } from '../caller.ts'
import { storeMedia as description } from '../descriptions/store-media.ts'
import { isFormType } from '../forms/boundary.ts'
import { filesOfForm } from '../forms/form-files.ts'
import { fileOfBody } from '../forms/raw-file.ts'
import type { Metrics } from '../metrics.ts'
import { described } from '../openapi/description.ts'
import { countUploads } from '../operations/count-uploads.ts'
import { timesSent } from '../sent-headers.ts'
import { listingPaths } from './list-media.ts'

interface Parts {
  readonly authorise: Authorise
  readonly bytesOf: BytesOf
  readonly storeMedia: StoreMedia
  readonly form: UrlForm
  readonly maxFileSize: number
  readonly maxParts: number
  readonly metrics: Metrics
}

/** What a form adds to its files at the most, for refusing by the declared length alone. Bytes per part. */
const partOverhead = 16_384

/** `POST /api/media`: one or many files, all or none (docs/interface.md, Upload). */
export async function storeMediaRoute(app: FastifyInstance, parts: Parts): Promise<void> {
  const { authorise, bytesOf, storeMedia, form, maxFileSize, maxParts, metrics } = parts

  countUploads(app, metrics)
  // Bodies stay unread until the handler has seen the token; JSON and text are files like any others (U3).
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))

  for (const url of listingPaths) {
    app.post(url, described(description), async (request, reply) => {
      const grant = await authorise(request, 'media:write')
      if (request.headers['content-encoding'] !== undefined) {
        throw new Fault('content-coding-unsupported', 'Send the file without Content-Encoding.')
      }
      // Node keeps the first one, which may name another form than the client means.
      if (timesSent(request.raw, 'content-type') > 1)
        throw new Fault('request-malformed', 'The request has more than one Content-Type header.')
      const length = request.headers['content-length']
      const declared = Number(length ?? 0)
      const asForm = isFormType(request.headers['content-type'] ?? '')
      if (declared > (asForm ? maxParts * (maxFileSize + partOverhead) : maxFileSize))
        throw tooLarge(maxFileSize)
      const sentKey = request.headers['idempotency-key']
      const key =
        sentKey === undefined
          ? null
          : { tokenId: grant.tokenId, key: parseIdempotencyKey(sentKey.toString()) }
      const files = asForm ? filesOfForm(request.raw, bytesOf, maxParts) : fileOfBody(request.raw, bytesOf)

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
