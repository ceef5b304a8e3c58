import type { FastifyInstance } from 'fastify'
import type { TrashedItem } from '../../catalog/records.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import { parseTrashQuery } from '../../core/trash-query.ts'
import type { Turns } from '../../core/turns.ts'
import type { MediaRemover } from '../../media/deletion/remove-media.ts'
import type { TrashOperations } from '../../media/deletion/trash.ts'
import { describeMedia } from '../../media/describe-media.ts'
import { malformed } from '../bodies/read-json.ts'
import { leaveBodiesUnread } from '../bodies/unread-bodies.ts'
import { routeOptions } from '../openapi/operation-description.ts'
import type { Authorizer } from '../tokens/authorizer.ts'
import type { AuthorizedJsonReader } from '../tokens/read-authorized-json.ts'
import { readIds } from './id-list.ts'
import { listDescription, purgeDescription, restoreDescription } from './trash-descriptions.ts'

interface Parts extends TrashOperations {
  readonly authorize: Authorizer
  readonly turns: Turns
  readonly readAuthorizedJson: AuthorizedJsonReader
  readonly purgeMedia: MediaRemover['purge']
  readonly urlSettings: UrlSettings
}

const noStore = { 'cache-control': 'no-store' }

/** `GET` and `DELETE /api/trash`, `POST /api/trash/restore` (docs/interface.md, Trash). */
export async function trashRoutes(app: FastifyInstance, parts: Parts): Promise<void> {
  const {
    authorize,
    turns,
    readAuthorizedJson,
    listTrash,
    restoreMedia,
    emptyTrash,
    purgeMedia,
    urlSettings,
  } = parts
  leaveBodiesUnread(app)

  const describe = ({ item, deletedAt, expiresAt }: TrashedItem) => ({
    ...describeMedia(urlSettings, item),
    deleted_at: new Date(deletedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
  })

  app.get<{ Querystring: Record<string, unknown> }>(
    '/api/trash',
    routeOptions(listDescription),
    async (request, reply) => {
      const grant = await authorize(request, 'media:delete')
      const { after, limit } = parseTrashQuery(request.query)
      await turns.next(grant.tokenId)
      const { items, next } = await listTrash(grant.bucketId, after, limit)
      return reply.headers(noStore).send({ data: items.map(describe), next_cursor: next })
    },
  )

  app.post('/api/trash/restore', routeOptions(restoreDescription), async (request, reply) => {
    const { caller, body } = await readAuthorizedJson(request, 'media:delete', ['ids'])
    const restored = await restoreMedia(caller.bucketId, readIds(body['ids']), caller.actor)
    return reply.headers(noStore).send(restored)
  })

  app.delete('/api/trash', routeOptions(purgeDescription), async (request, reply) => {
    const { caller, body } = await readAuthorizedJson(request, 'media:delete', ['ids', 'all'])
    const { ids, all } = body
    if (all === undefined) {
      const purged = await purgeMedia(caller.bucketId, readIds(ids), caller.actor)
      return reply.headers(noStore).send(purged)
    }
    if (all !== true || ids !== undefined)
      throw malformed([{ parameter: 'all', detail: 'True, and then no ids.' }])
    await emptyTrash(caller.bucketId, caller.actor)
    return reply.code(204).send()
  })
}
