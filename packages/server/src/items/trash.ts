import { Fault, type FaultCode } from '../core/faults.ts'
import { isItemId } from '../core/ids.ts'
import { parseTrashQuery } from '../core/queries.ts'
import { type Actor, service } from '../core/tokens.ts'
import { jsonBodyProblems, malformed, readIds } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { noStore } from '../http/headers.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { TrashQuery } from '../http/openapi/parameters.ts'
import { otherItem, sampleItem } from '../http/openapi/samples.ts'
import { DeletedItems, IdList, PurgeRequest, RestoredItems, TrashList } from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId, TrashedItem } from '../storage/catalog/records.ts'
import { type BlobDeletionParts, deleteBlobs } from './blob-deletion.ts'
import type { ItemRemover } from './deletion.ts'
import { mediaObjectOf } from './items.ts'

/** `GET` and `DELETE /api/trash`, `POST /api/trash/restore` (docs/interface.md, Trash). */
export function trashRoutes(
  http: HttpContext,
  operations: TrashOperations & { readonly purgeItems: ItemRemover['purge'] },
): readonly Route[] {
  const { authorize, readAuthorizedJson, turns, urls } = http

  const describe = ({ item, deletedAt, expiresAt }: TrashedItem) => ({
    ...mediaObjectOf(urls, item),
    deleted_at: new Date(deletedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
  })

  async function list(exchange: Exchange): Promise<Reply> {
    const grant = await authorize(exchange, 'media:delete')
    const { after, limit } = parseTrashQuery(exchange.query)
    await turns.next(grant.tokenId)
    const { items, next } = await operations.listTrash(grant.bucketId, after, limit)
    return { status: 200, headers: noStore, json: { data: items.map(describe), next_cursor: next } }
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
    route('GET', '/api/trash', listDescription, list),
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

interface TrashPage {
  readonly items: readonly TrashedItem[]
  /** The cursor of the last item; null if no items follow. */
  readonly next: string | null
}

/** Ids in the order in which they were requested, each once. */
interface RestoreResult {
  readonly restored: readonly string[]
  /** The trash has no such items. */
  readonly missing: readonly string[]
}

type TrashOperations = ReturnType<typeof trashOperations>

/** Items in one transaction. */
const batchLength = 500

const cursorShape = /^([0-9a-z]+)\.(0|[1-9][0-9]{0,15})$/

export function trashOperations({
  catalog,
  purge,
}: {
  readonly catalog: Pick<Catalog, 'epoch' | 'trash' | 'restoreItems'>
  readonly purge: ItemRemover['purge']
}) {
  // Numbers of a trash are not reused, except by a restore of the data.
  const prefix = (bucketId: BucketId) => `${catalog.epoch.slice(0, 8)}${bucketId.toString(36)}`

  function parseCursor(bucketId: BucketId, cursor: string): number {
    const [, owner, seq] = cursorShape.exec(cursor) ?? []
    if (owner === prefix(bucketId)) return Number(seq)
    const detail = 'after accepts the next_cursor of a response with the same token, unchanged.'
    throw new Fault('cursor-malformed', detail, { parameters: [{ parameter: 'after', detail }] })
  }

  return {
    /** Items of the trash, last deleted first (docs/interface.md Z2). Throws Fault `cursor-malformed`. */
    async listTrash(bucketId: BucketId, after: string | null, limit: number): Promise<TrashPage> {
      const place = after === null ? null : parseCursor(bucketId, after)
      // One more than requested shows whether items follow.
      const found = await catalog.trash(bucketId, place, limit + 1)
      const items = found.slice(0, limit)
      const last = found.length > limit ? items.at(-1) : undefined
      return { items, next: last === undefined ? null : `${prefix(bucketId)}.${last.seq}` }
    },

    /** Restores the items in one transaction (Z3). The ids may be any texts. Throws Fault `quota-exceeded`. */
    async restoreItems(bucketId: BucketId, ids: readonly string[], by: Actor): Promise<RestoreResult> {
      const wanted = [...new Set(ids)]
      const known = wanted.filter(isItemId)
      const restored: ReadonlySet<string> = new Set(
        known.length === 0 ? [] : await catalog.restoreItems(bucketId, known, by),
      )
      return { restored: [...restored], missing: wanted.filter((id) => !restored.has(id)) }
    },

    /** Deletes all items that are in the trash at the start permanently (Z4), and returns how many. */
    async emptyTrash(bucketId: BucketId, by: Actor): Promise<number> {
      let count = 0
      for (let after: number | null = null; ; ) {
        const items = await catalog.trash(bucketId, after, batchLength)
        const last = items.at(-1)
        if (last === undefined) return count
        const { deleted } = await purge(
          bucketId,
          items.map(({ item }) => item.id),
          by,
        )
        count += deleted.length
        after = last.seq
      }
    },
  }
}

/** Permanently deletes the items whose time in the trash has passed (docs/interface.md Z5). Several servers may do it at the same time. */
export async function purgeExpiredTrash(parts: {
  readonly catalog: Pick<Catalog, 'expiredTrash' | 'purgeItems'>
  readonly blobDeletion: BlobDeletionParts
  readonly now: () => number
}): Promise<void> {
  const { catalog, blobDeletion, now } = parts
  for (;;) {
    const expired = await catalog.expiredTrash(now(), batchLength)
    if (expired.length === 0) return
    for (const [bucketId, items] of Map.groupBy(expired, (item) => item.bucketId)) {
      const removed = await catalog.purgeItems(
        bucketId,
        items.map(({ id }) => id),
        service,
      )
      await deleteBlobs(blobDeletion, removed.tombstones)
    }
  }
}
