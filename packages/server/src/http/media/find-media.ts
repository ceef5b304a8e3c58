import type { FastifyInstance } from 'fastify'
import type { Catalog } from '../../catalog/catalog.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import { describeMedia } from '../../media/describe-media.ts'
import { findMedia } from '../../media/find-media.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { MediaParams } from '../openapi/request-schemas.ts'
import { sampleMedia } from '../openapi/samples.ts'
import { MediaObject } from '../openapi/schemas.ts'
import type { Authorizer } from '../tokens/authorizer.ts'

/** `GET /api/media/{id}`: the media object of an item (docs/interface.md M1, M3). */
export function findMediaRoute(
  app: FastifyInstance,
  parts: { authorize: Authorizer; catalog: Catalog; urlSettings: UrlSettings },
): void {
  const { authorize, catalog, urlSettings } = parts
  app.get<{ Params: MediaParams }>('/api/media/:id', routeOptions(description), async (request, reply) => {
    const grant = await authorize(request, 'media:read')
    const media = await findMedia(catalog, grant.bucketId, request.params.id)
    return reply.headers({ 'cache-control': 'private, no-cache' }).send(describeMedia(urlSettings, media))
  })
}

const description: OperationDescription = {
  operationId: 'findMedia',
  tag: 'Items',
  summary: 'Get one item',
  description:
    'Returns the media object. Ids that are unknown, deleted or in another bucket return the same 404.',
  rules: 'M1 and M3',
  needs: 'media:read',
  path: MediaParams,
  responses: {
    200: {
      description: 'The item.',
      headers: ['Cache-Control'],
      content: { 'application/json': { schema: MediaObject, examples: { picture: sampleMedia } } },
    },
  },
  problems: ['media-unknown'],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/media/${sampleMedia.id}`,
}
