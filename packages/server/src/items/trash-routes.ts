import { urlsOfBucket } from '../core/bucket-pictures.ts'
import type { UrlSettings } from '../core/item-urls.ts'
import { parseCursorQuery } from '../core/queries.ts'
import { formatTimestamp } from '../core/times.ts'
import { malformed, readIds } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { noStore } from '../http/headers.ts'
import { itemsText, ListTexts, listReply } from '../http/list-texts.ts'
import { TrashList } from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { TrashedItem } from '../storage/catalog/records.ts'
import type { ItemRemover } from './deletion.ts'
import { mediaObjectOf } from './item-operations.ts'
import type { TrashOperations } from './trash-operations.ts'
import * as openapi from './trash-routes.openapi.ts'

interface TrashParts extends Pick<HttpContext, 'authorize' | 'readAuthorizedJson' | 'tickQueue' | 'urls'> {
  readonly operations: TrashOperations & { readonly purgeItems: ItemRemover['purge'] }
  readonly serialize: ReturnType<typeof createSerializer>
}

/** `GET` and `DELETE /api/trash`, `POST /api/trash/restore` (docs/interface.md, Trash). */
export function trashRoutes(
  { authorize, readAuthorizedJson, tickQueue, urls }: HttpContext,
  operations: TrashParts['operations'],
): readonly Route[] {
  const serialize = createSerializer({ schema: TrashList.properties.data })
  const parts = { authorize, readAuthorizedJson, tickQueue, urls, operations, serialize }
  const readsBody = true
  return [
    route('GET', '/api/trash', openapi.listTrash, (exchange) => listTrash(parts, exchange), { kind: 'list' }),
    route('POST', '/api/trash/restore', openapi.restoreMedia, (exchange) => restoreItems(parts, exchange), {
      readsBody,
    }),
    route('DELETE', '/api/trash', openapi.purgeTrash, (exchange) => purgeItems(parts, exchange), {
      readsBody,
    }),
  ]
}

const describeTrashed = (urls: UrlSettings, { item, deletedAt, expiresAt }: TrashedItem) => ({
  ...mediaObjectOf(urls, item),
  deleted_at: formatTimestamp(deletedAt),
  expires_at: formatTimestamp(expiresAt),
})

async function listTrash(
  { authorize, tickQueue, urls, operations, serialize }: TrashParts,
  exchange: Exchange,
): Promise<Reply> {
  const grant = await authorize(exchange, 'media:delete')
  const query = parseCursorQuery(exchange.query)
  const ownUrls = urlsOfBucket(urls, grant)
  await tickQueue.next(grant.tokenId)
  const list = new ListTexts(
    (items: readonly TrashedItem[]) =>
      itemsText(serialize(items.map((item) => describeTrashed(ownUrls, item)))),
    () => tickQueue.next(grant.tokenId),
  )
  const next = await operations.listTrash(grant.bucketId, query, list)
  return listReply(noStore, list.texts, { next_cursor: next })
}

async function restoreItems(
  { readAuthorizedJson, operations }: TrashParts,
  exchange: Exchange,
): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, 'media:delete', ['ids'])
  const restored = await operations.restoreItems(caller.bucketId, readIds(body['ids']), caller.actor)
  return { status: 200, headers: noStore, json: restored }
}

async function purgeItems(
  { readAuthorizedJson, operations }: TrashParts,
  exchange: Exchange,
): Promise<Reply> {
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
