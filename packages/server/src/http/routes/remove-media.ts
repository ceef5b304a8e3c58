import type { FastifyInstance } from 'fastify'
import type { BucketId } from '../../catalog/catalog.ts'
import type { Authorise } from '../caller.ts'
import { removeMedia as description } from '../descriptions/remove-media.ts'
import type { Metrics } from '../metrics.ts'
import { described } from '../openapi/description.ts'
import type { MediaParams } from '../schemas.ts'

interface Parts {
  readonly authorise: Authorise
  readonly removeMedia: (bucketId: BucketId, id: string) => Promise<void>
  readonly metrics: Metrics
}

/** `DELETE /api/media/{id}` (docs/interface.md M2, M3). */
export function removeMediaRoute(app: FastifyInstance, { authorise, removeMedia, metrics }: Parts): void {
  app.delete<{ Params: MediaParams }>('/api/media/:id', described(description), async (request, reply) => {
    const grant = await authorise(request, 'media:delete')
    await removeMedia(grant.bucketId, request.params.id)
    metrics.deletedItems.inc()
    return reply.code(204).send()
  })
}
