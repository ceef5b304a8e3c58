import { parseTrashQuery } from '../core/queries.ts'
import { malformed, readIds } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { noStore } from '../http/headers.ts'
import { itemsText, ListTexts, listReply } from '../http/list-texts.ts'
import { TrashList } from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { TrashedItem } from '../storage/catalog/records.ts'
import type { ItemRemover } from './deletion.ts'
import { formatTimestamp, mediaObjectOf } from './item-operations.ts'
import type { TrashOperations } from './trash-operations.ts'
import * as openapi from './trash-routes.openapi.ts'

/** `GET` and `DELETE /api/trash`, `POST /api/trash/restore` (docs/interface.md, Trash). */
export function trashRoutes(
  http: HttpContext,
  operations: TrashOperations & { readonly purgeItems: ItemRemover['purge'] },
): readonly Route[] {
  const { authorize, readAuthorizedJson, tickQueue, urls } = http
  const serialize = createSerializer({ schema: TrashList.properties.data })

  const describe = ({ item, deletedAt, expiresAt }: TrashedItem) => ({
    ...mediaObjectOf(urls, item),
    deleted_at: formatTimestamp(deletedAt),
    expires_at: formatTimestamp(expiresAt),
  })

  async function listTrash(exchange: Exchange): Promise<Reply> {
    const grant = await authorize(exchange, 'media:delete')
    const query = parseTrashQuery(exchange.query)
    await tickQueue.next(grant.tokenId)
    const list = new ListTexts(
      (items: readonly TrashedItem[]) => itemsText(serialize(items.map(describe))),
      () => tickQueue.next(grant.tokenId),
    )
    const next = await operations.listTrash(grant.bucketId, query, list)
    return listReply(noStore, list.texts, { next_cursor: next })
  }

  async function restore(exchange: Exchange): Promise<Reply> {
    const { caller, body } = await readAuthorizedJson(exchange, 'media:delete', ['ids'])
    const restored = await operations.restoreItems(caller.bucketId, readIds(body['ids']), caller.actor)
    return { status: 200, headers: noStore, json: restored }
  }

  async function purge(exchange: Exchange): Promise<Reply> {
    const { caller, body } = await readAuthorizedJson(exchange, 'media:delete', ['ids', 'all'])
    const { ids, all } = body
    if (all === undefined) {
      const purged = await operations.purgeItems(caller.bucketId, readIds(ids), caller.actor)
      return { status: 200, headers: noStore, json: purged }
    }
    if (all !== true || ids !== undefined)
      throw malformed([{ parameter: 'all', detail: 'True, and then no ids.' }])
    await operations.emptyTrash(caller.bucketId, caller.actor)
    return { status: 204 }
  }

  const readsBody = true
  return [
    route('GET', '/api/trash', openapi.listTrash, listTrash),
    route('POST', '/api/trash/restore', openapi.restoreMedia, restore, { readsBody }),
    route('DELETE', '/api/trash', openapi.purgeTrash, purge, { readsBody }),
  ]
}
