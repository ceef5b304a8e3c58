import type { FastifyInstance } from 'fastify'
import type { Catalog } from '../../catalog/catalog.ts'
import type { UrlForm } from '../../core/media-url.ts'
import { describeMedia } from '../../media/describe-media.ts'
import { findMedia } from '../../media/find-media.ts'
import type { Authorise } from '../caller.ts'
import { findMedia as description } from '../descriptions/find-media.ts'
import { described } from '../openapi/description.ts'
import type { MediaParams } from '../schemas.ts'

/** `GET /api/media/{id}`: one item's media object (docs/interface.md M1, M3). */
export function findMediaRoute(
  app: FastifyInstance,
  parts: { authorise: Authorise; catalog: Catalog; form: UrlForm },
): void {
  const { authorise, catalog, form } = parts
  app.get<{ Params: MediaParams }>('/api/media/:id', described(description), async (request, reply) => {
    const grant = await authorise(request, 'media:read')
    const media = await findMedia(catalog, grant.bucketId, request.params.id)
    return reply.headers({ 'cache-control': 'private, no-cache' }).send(describeMedia(form, media))
  })
}
