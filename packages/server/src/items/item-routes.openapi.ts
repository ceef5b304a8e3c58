import { jsonBodyProblems } from '../http/bodies.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { ItemParams, ItemQuery } from '../http/openapi/parameters.ts'
import { otherItem, sampleBucket, sampleItem, sampleUsage } from '../http/openapi/samples.ts'
import {
  DeletedIds,
  DeletedItems,
  ItemEditBody,
  LabelBody,
  LabelledItems,
  MediaObject,
} from '../http/openapi/schemas.ts'
import { OwnBucketObject } from '../http/openapi/usage-schemas.ts'

/** The media types of edits. */
export const patchTypes = ['application/merge-patch+json', 'application/json']

const ids = [sampleItem.id, otherItem.id]

const sampleEdit = { alt_text: 'Three boats in a harbour', caption: null }

export const findMedia: OperationDescription = {
  operationId: 'findMedia',
  tag: 'Items',
  summary: 'Get one item',
  description:
    'Returns the media object. Ids that are unknown, deleted or in another bucket return the same 404.',
  rules: 'M1, M3, M6 and H10',
  needs: 'media:read',
  path: ItemParams,
  query: ItemQuery,
  responses: {
    200: {
      description: 'The item.',
      headers: ['ETag', 'Cache-Control'],
      content: { 'application/json': { schema: MediaObject, examples: { picture: sampleItem } } },
    },
    304: { description: 'The item still has this `ETag`.', headers: ['ETag', 'Cache-Control'] },
  },
  headers: ['If-Match', 'If-None-Match'],
  problems: ['parameter-malformed', 'media-unknown', 'precondition-failed'],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/media/${sampleItem.id}`,
}

export const removeManyMedia: OperationDescription = {
  operationId: 'removeManyMedia',
  tag: 'Items',
  summary: 'Delete many items',
  description: `Deletes the items in one transaction. \`missing\` are the ids of which the bucket has no item, for example
because an earlier request deleted them. So the request can be repeated.`,
  rules: 'M4',
  needs: 'media:delete',
  body: {
    description: 'The ids of 1 to 500 items.',
    content: { 'application/json': { schema: DeletedIds, examples: { 'two items': { ids } } } },
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
  -d '{"ids": ["${sampleItem.id}", "${otherItem.id}"]}' ${exampleBase}/api/media`,
}

export const labelMedia: OperationDescription = {
  operationId: 'labelMedia',
  tag: 'Items',
  summary: 'Label many items',
  description: `Sets or removes labels of the items in one transaction. Labels that are left out stay as they are, null removes one. If one of
the items would have too many labels, none is changed. The request can be repeated.`,
  rules: 'M7 and M8',
  needs: 'media:write',
  body: {
    description: 'The ids of 1 to 500 items, and the labels.',
    content: Object.fromEntries(
      patchTypes.map((type) => [
        type,
        { schema: LabelBody, examples: { 'an album': { ids, labels: { album: '42', draft: null } } } },
      ]),
    ),
  },
  responses: {
    200: {
      description: 'Labelled.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: LabelledItems,
          examples: { 'one item is missing': { labelled: ids.slice(0, 1), missing: ids.slice(1) } },
        },
      },
    },
  },
  problems: [...jsonBodyProblems, 'storage-full'],
  curl: `curl -X PATCH -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"ids": ["${sampleItem.id}"], "labels": {"album": "42"}}' ${exampleBase}/api/media`,
}

export const editMedia: OperationDescription = {
  operationId: 'editMedia',
  tag: 'Items',
  summary: 'Edit one item',
  description: `Changes the filename, the alternative text, the caption, labels and the focus: a JSON merge patch (RFC 7396). Members that are left out
stay as they are, null removes a text or a label. The URL, the stored type and the bytes stay as they are.

With \`If-Match\`, the item is changed only if it still has this \`ETag\`.`,
  rules: 'M5 to M7 and M11',
  needs: 'media:write',
  path: ItemParams,
  headers: ['If-Match'],
  body: {
    description: 'The changes.',
    content: Object.fromEntries(
      patchTypes.map((type) => [
        type,
        { schema: ItemEditBody, examples: { 'an alternative text': sampleEdit } },
      ]),
    ),
  },
  responses: {
    200: {
      description: 'The item after the change.',
      headers: ['ETag', 'Cache-Control'],
      content: {
        'application/json': {
          schema: MediaObject,
          examples: { picture: { ...sampleItem, alt_text: sampleEdit.alt_text } },
        },
      },
    },
  },
  problems: [...jsonBodyProblems, 'media-unknown', 'precondition-failed', 'storage-full'],
  curl: `curl -X PATCH -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/merge-patch+json' \\
  -d '{"alt_text": "Three boats in a harbour"}' ${exampleBase}/api/media/${sampleItem.id}`,
}

export const removeMedia: OperationDescription = {
  operationId: 'removeMedia',
  tag: 'Items',
  summary: 'Delete one item',
  description: `After the 204 the item is neither listed nor served. Caches may keep its bytes until they expire.
A second delete returns 404.

With \`If-Match\`, the item is deleted only if it still has this \`ETag\`.`,
  rules: 'M2, M3 and M6',
  needs: 'media:delete',
  path: ItemParams,
  headers: ['If-Match'],
  responses: { 204: { description: 'Deleted.' } },
  problems: ['media-unknown', 'precondition-failed', 'body-too-large', 'storage-full'],
  curl: `curl -X DELETE -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/media/${sampleItem.id}`,
}

export const describeBucket: OperationDescription = {
  operationId: 'describeBucket',
  tag: 'Items',
  summary: 'Get the bucket',
  description:
    'Returns the contents of the token’s bucket, the reservations of unfinished uploads, the quota, and the usage of today.',
  rules: 'Q1 to Q4, Z1, H1, E1 and US9',
  needs: 'media:read',
  responses: {
    200: {
      description: 'The bucket.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: OwnBucketObject,
          examples: {
            'with a limit of bytes': { ...sampleBucket, usage_today: sampleUsage },
          },
        },
      },
    },
  },
  problems: [],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/bucket`,
}
