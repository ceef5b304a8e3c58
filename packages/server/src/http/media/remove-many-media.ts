import type { FastifyInstance } from 'fastify'
import type { MediaRemover } from '../../media/deletion/remove-media.ts'
import { jsonBodyProblems } from '../bodies/read-json.ts'
import { leaveBodiesUnread } from '../bodies/unread-bodies.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { otherMedia, sampleMedia } from '../openapi/samples.ts'
import { DeletedItems, IdList } from '../openapi/schemas.ts'
import type { AuthorizedJsonReader } from '../tokens/read-authorized-json.ts'
import { readIds } from './id-list.ts'

interface Parts {
  readonly readAuthorizedJson: AuthorizedJsonReader
  readonly removeManyMedia: MediaRemover['removeMany']
  readonly metrics: Metrics
}

/** `DELETE /api/media` (docs/interface.md M4). */
export async function removeManyMediaRoute(app: FastifyInstance, parts: Parts): Promise<void> {
  const { readAuthorizedJson, removeManyMedia, metrics } = parts
  leaveBodiesUnread(app)
  app.delete('/api/media', routeOptions(description), async (request, reply) => {
    const { caller, body } = await readAuthorizedJson(request, 'media:delete', ['ids'])
    const result = await removeManyMedia(caller.bucketId, readIds(body['ids']), caller.actor)
    metrics.deletedItems.inc(result.deleted.length)
    return reply.header('cache-control', 'no-store').send(result)
  })
}

const ids = [sampleMedia.id, otherMedia.id]

const description: OperationDescription = {
  operationId: 'removeManyMedia',
  tag: 'Items',
  summary: 'Delete many items',
  description: `Deletes the items in one transaction. \`missing\` are the ids of which the bucket has no item, for example
because an earlier request deleted them. So the request can be repeated.`,
  rules: 'M4',
  needs: 'media:delete',
  body: {
    description: 'The ids of 1 to 500 items.',
    content: { 'application/json': { schema: IdList, examples: { 'two items': { ids } } } },
  },
  responses: {
    200: {
      description: 'Deleted.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: DeletedItems,
          examples: { 'one item is missing': { deleted: ids.slice(0, 1), missing: ids.slice(1) } },
        },
      },
    },
  },
  problems: [...jsonBodyProblems, 'storage-full'],
  curl: `curl -X DELETE -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"ids": ["${sampleMedia.id}", "${otherMedia.id}"]}' ${exampleBase}/api/media`,
}
