import type { FaultCode } from '../core/faults.ts'
import { jsonBodyProblems } from '../http/bodies.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { TrashQuery } from '../http/openapi/parameters.ts'
import { otherItem, sampleItem } from '../http/openapi/samples.ts'
import { DeletedItems, IdList, PurgeRequest, RestoredItems, TrashList } from '../http/openapi/schemas.ts'

const ids = [sampleItem.id, otherItem.id]

const problems: readonly FaultCode[] = [...jsonBodyProblems, 'storage-full']

const json = `-H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'`

export const listTrash: OperationDescription = {
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

export const restoreMedia: OperationDescription = {
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

export const purgeTrash: OperationDescription = {
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
