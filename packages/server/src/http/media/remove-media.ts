import type { FastifyInstance } from 'fastify'
import type { MediaRemover } from '../../media/deletion/remove-media.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { MediaParams } from '../openapi/request-schemas.ts'
import { sampleMedia } from '../openapi/samples.ts'
import type { Authorizer } from '../tokens/authorizer.ts'

interface Parts {
  readonly authorize: Authorizer
  readonly removeMedia: MediaRemover['remove']
  readonly metrics: Metrics
}

/** `DELETE /api/media/{id}` (docs/interface.md M2, M3). */
export function removeMediaRoute(app: FastifyInstance, { authorize, removeMedia, metrics }: Parts): void {
  app.delete<{ Params: MediaParams }>('/api/media/:id', routeOptions(description), async (request, reply) => {
    const grant = await authorize(request, 'media:delete')
    await removeMedia(grant.bucketId, request.params.id, grant.actor)
    metrics.deletedItems.inc()
    return reply.code(204).send()
  })
}

const description: OperationDescription = {
  operationId: 'removeMedia',
  tag: 'Items',
  summary: 'Delete one item',
  description: `After the 204 the item is neither listed nor served. Caches may keep its bytes until they expire.
A second delete returns 404.`,
  rules: 'M2 and M3',
  needs: 'media:delete',
  path: MediaParams,
  responses: { 204: { description: 'Deleted.' } },
  problems: ['media-unknown', 'body-too-large', 'storage-full'],
  curl: `curl -X DELETE -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/media/${sampleMedia.id}`,
}
