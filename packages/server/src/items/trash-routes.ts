import type { FaultCode } from '../core/faults.ts'
import { parseTrashQuery } from '../core/queries.ts'
import { jsonBodyProblems, malformed, readIds } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { noStore } from '../http/headers.ts'
import { collectTexts, listReply } from '../http/list-texts.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { TrashQuery } from '../http/openapi/parameters.ts'
import { otherItem, sampleItem } from '../http/openapi/samples.ts'
import { DeletedItems, IdList, PurgeRequest, RestoredItems, TrashList } from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { TrashedItem } from '../storage/catalog/records.ts'
import type { ItemRemover } from './deletion.ts'
import { formatTimestamp, mediaObjectOf } from './items.ts'

import type { TrashOperations } from './trash.ts'

/** `GET` and `DELETE /api/trash`, `POST /api/trash/restore` (docs/interface.md, Trash). */
export function trashRoutes(
  http: HttpContext,
  operations: TrashOperations & { readonly purgeItems: ItemRemover['purge'] },
): readonly Route[] {
  const { authorize, readAuthorizedJson, turns, urls } = http
  const serialize = createSerializer({ schema: TrashList.properties.data.items })

  const describe = ({ item, deletedAt, expiresAt }: TrashedItem) => ({
    ...mediaObjectOf(urls, item),
    deleted_at: formatTimestamp(deletedAt),
    expires_at: formatTimestamp(expiresAt),
  })

  async function listTrash(exchange: Exchange): Promise<Reply> {
    const grant = await authorize(exchange, 'media:delete')
    const query = parseTrashQuery(exchange.query)
    await turns.next(grant.tokenId)
    const list = collectTexts(
      (item: TrashedItem) => serialize(describe(item)),
      () => turns.next(grant.tokenId),
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
    route('GET', '/api/trash', listDescription, listTrash),
    route('POST', '/api/trash/restore', restoreDescription, restore, { readsBody }),
    route('DELETE', '/api/trash', purgeDescription, purge, { readsBody }),
  ]
}

const ids = [sampleItem.id, otherItem.id]
const problems: readonly FaultCode[] = [...jsonBodyProblems, 'storage-full']
const json = `-H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'`

const listDescription: OperationDescription = {
  operationId: 'listTrash',
  tag: 'Items',
  summary: 'List the trash',
  description: 'Returns deleted items that can be restored, last deleted first.',
  rules: 'Z1 and Z2',
  needs: 'media:delete',
  query: TrashQuery,
  responses: {
    200: {
      description: 'The items.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: TrashList,
          examples: {
            'one item': {
              data: [
                {
                  ...sampleItem,
                  deleted_at: '2026-11-20T08:00:00.000Z',
                  expires_at: '2026-12-20T08:00:00.000Z',
                },
              ],
              next_cursor: null,
            },
          },
        },
      },
    },
  },
  problems: ['parameter-malformed', 'cursor-malformed'],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/trash`,
}

const restoreDescription: OperationDescription = {
  operationId: 'restoreMedia',
  tag: 'Items',
  summary: 'Restore items from the trash',
  description:
    'Restores the items in one transaction, with their earlier URLs and at their earlier places. `missing` are the ids of which the trash has no item.',
  rules: 'Z3',
  needs: 'media:delete',
  body: {
    description: 'The ids of 1 to 500 items.',
    content: { 'application/json': { schema: IdList, examples: { 'two items': { ids } } } },
  },
  responses: {
    200: {
      description: 'Restored.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: RestoredItems,
          examples: { 'one item is missing': { restored: ids.slice(0, 1), missing: ids.slice(1) } },
        },
      },
    },
  },
  problems: [...problems, 'quota-exceeded'],
  curl: `curl -X POST ${json} \\
  -d '{"ids": ["${sampleItem.id}"]}' ${exampleBase}/api/trash/restore`,
}

const purgeDescription: OperationDescription = {
  operationId: 'purgeTrash',
  tag: 'Items',
  summary: 'Delete items of the trash permanently',
  description: 'Deletes the items with these ids, or with `{"all": true}` all items that are in the trash.',
  rules: 'Z4',
  needs: 'media:delete',
  body: {
    description: 'The ids of 1 to 500 items, or `all`.',
    content: {
      'application/json': { schema: PurgeRequest, examples: { 'two items': { ids }, all: { all: true } } },
    },
  },
  responses: {
    200: {
      description: 'The items with the ids are deleted.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: DeletedItems,
          examples: { 'one item is missing': { deleted: ids.slice(0, 1), missing: ids.slice(1) } },
        },
      },
    },
    204: { description: 'All items are deleted.' },
  },
  problems,
  curl: `curl -X DELETE ${json} \\
  -d '{"all": true}' ${exampleBase}/api/trash`,
}
