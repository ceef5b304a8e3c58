import { createHash } from 'node:crypto'
import type { SignLinks } from '../access/signed-links.ts'
import { Fault, type ParameterFault } from '../core/faults.ts'
import { isItemId } from '../core/ids.ts'
import type { LinkSigner, UrlSettings } from '../core/item-urls.ts'
import { type LabelChanges, labelRule, parseLabelChanges } from '../core/labels.ts'
import { cleanFilename, maxAltText, maxCaption } from '../core/names.ts'
import { readListedUrls, signsUrls } from '../core/queries.ts'
import { requireScope, requireUnlimited } from '../core/tokens.ts'
import { jsonBodyProblems, malformed, readIds } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { matchesStrongly, matchesWeakly, noStore } from '../http/headers.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { ItemParams, ItemQuery } from '../http/openapi/parameters.ts'
import { otherItem, sampleItem } from '../http/openapi/samples.ts'
import {
  BucketObject,
  DeletedItems,
  IdList,
  ItemEditBody,
  LabelBody,
  LabelledItems,
  MediaObject,
} from '../http/openapi/schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Grant, ItemDetails, ItemEdit } from '../storage/catalog/records.ts'
import type { ItemRemover } from './deletion.ts'
import { describeBucket, type EditItem, findItem, type LabelItems, mediaObjectOf } from './items.ts'

/** The operations that these routes call. */
interface ItemOperations {
  readonly signLinks: SignLinks
  readonly editItem: EditItem
  readonly labelItems: LabelItems
  readonly removeItem: ItemRemover['remove']
  readonly removeItems: ItemRemover['removeMany']
}

/** `/api/media/{id}`, `DELETE /api/media` and `GET /api/bucket` (docs/interface.md M1 to M6, Q3). */
export function itemRoutes(http: HttpContext, operations: ItemOperations): readonly Route[] {
  const { authorize, readAuthorizedJson, catalog, urls, metrics } = http

  async function find(exchange: Exchange<'id'>): Promise<Reply> {
    const grant = await authorize(exchange, null)
    if (!grant.scopes.has('media:read')) await requireUploaded(catalog, grant, exchange.params.id)
    const item = await findItem(catalog, grant.bucketId, exchange.params.id)
    const signer = signsUrls(grant, readListedUrls(exchange.query)) ? await operations.signLinks(null) : null
    const { mediaObject, etag, stateTag, headers } = describeItem(urls, item, signer)
    const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = exchange.request.headers
    if (ifMatch !== undefined && !matchesState(ifMatch, stateTag))
      throw new Fault('precondition-failed', 'If-Match does not name the current ETag of the item.')
    if (ifNoneMatch !== undefined && matchesWeakly(ifNoneMatch, etag)) return { status: 304, headers }
    return { status: 200, headers, json: mediaObject }
  }

  async function edit(exchange: Exchange<'id'>): Promise<Reply> {
    const { caller, body } = await readAuthorizedJson(exchange, 'media:write', editMembers, patchTypes)
    requireUnlimited(caller)
    // Before If-Match: a precondition is ignored if the request is refused without it (RFC 9110, section 13.2.1).
    const changes = readEdit(body)
    const ifMatch = exchange.request.headers['if-match']
    const item = await operations.editItem(
      caller.bucketId,
      exchange.params.id,
      changes,
      ifMatch === undefined ? null : (item) => matchesState(ifMatch, describeItem(urls, item).stateTag),
      caller.actor,
    )
    const { mediaObject, headers } = describeItem(urls, item)
    return { status: 200, headers, json: mediaObject }
  }

  async function remove(exchange: Exchange<'id'>): Promise<Reply> {
    const grant = await authorize(exchange, 'media:delete')
    await operations.removeItem(grant.bucketId, exchange.params.id, grant.actor)
    metrics.deletedItems.inc()
    return { status: 204 }
  }

  async function removeMany(exchange: Exchange): Promise<Reply> {
    const { caller, body } = await readAuthorizedJson(exchange, 'media:delete', ['ids'])
    const removed = await operations.removeItems(caller.bucketId, readIds(body['ids']), caller.actor)
    metrics.deletedItems.inc(removed.deleted.length)
    return { status: 200, headers: noStore, json: removed }
  }

  async function labelMany(exchange: Exchange): Promise<Reply> {
    const { caller, body } = await readAuthorizedJson(exchange, 'media:write', ['ids', 'labels'], patchTypes)
    requireUnlimited(caller)
    const ids = readIds(body['ids'])
    const faults: ParameterFault[] = []
    const changes = readLabelChanges(body['labels'], faults)
    if (changes === undefined) throw malformed(faults)
    const labelled = await operations.labelItems(caller.bucketId, ids, changes, caller.actor)
    return { status: 200, headers: noStore, json: labelled }
  }

  /** The contents and the quota of the caller's bucket. */
  async function bucket(exchange: Exchange): Promise<Reply> {
    const { bucketId } = await authorize(exchange, 'media:read')
    return { status: 200, headers: noStore, json: await describeBucket(catalog, bucketId) }
  }

  const readsBody = true
  return [
    route('GET', '/api/media/:id', findItemDescription, find),
    route('DELETE', '/api/media', removeItemsDescription, removeMany, { readsBody }),
    route('PATCH', '/api/media', labelItemsDescription, labelMany, { readsBody }),
    route('PATCH', '/api/media/:id', editItemDescription, edit, { readsBody }),
    route('DELETE', '/api/media/:id', removeItemDescription, remove),
    route('GET', '/api/bucket', describeBucketDescription, bucket),
  ]
}

/**
 * A token without `media:read` reads the items that its resumable uploads have become, as it gets those of its other uploads in the responses
 * (docs/interface.md R15). Throws Fault `scope-missing`.
 */
async function requireUploaded(
  catalog: Pick<Catalog, 'uploadOfItem'>,
  grant: Grant,
  id: string,
): Promise<void> {
  const upload = grant.scopes.has('media:write') && isItemId(id) ? await catalog.uploadOfItem(id) : null
  const isOwn =
    upload?.tokenId === grant.tokenId || (upload?.limitedBy != null && upload.limitedBy === grant.limits?.id)
  if (!isOwn) requireScope(grant, 'media:read')
}

/**
 * The media object of an item and the headers of its response, with the entity tag of the object (docs/interface.md M6).
 * `stateTag` is the tag of the same object with plain URLs.
 */
function describeItem(urls: UrlSettings, item: ItemDetails, signer: LinkSigner | null = null) {
  const plain = mediaObjectOf(urls, item)
  const digest = createHash('sha256').update(JSON.stringify(plain)).digest('base64url')
  const mediaObject = signer === null ? plain : mediaObjectOf(urls, item, signer)
  const stateTag = `"${digest}"`
  const etag = signer === null ? stateTag : `"${digest}.${signer.tag}"`
  return { mediaObject, etag, stateTag, headers: { 'cache-control': 'private, no-cache', etag } }
}

/** Whether If-Match names the state of an item. Whether its URLs are signed, and until when, is not a part of the state. */
const matchesState = (ifMatch: string, stateTag: string): boolean =>
  matchesStrongly(ifMatch.replace(/"([\w-]{43})\.[a-z0-9.]+"/g, '"$1"'), stateTag)

const editMembers = ['filename', 'alt_text', 'caption', 'labels'] as const

/** Reads the members of a merge patch; null removes a text. Throws Fault `json-malformed`. */
function readEdit({ filename, alt_text, caption, labels }: Readonly<Record<string, unknown>>): ItemEdit {
  const faults: ParameterFault[] = []
  const read = (
    parameter: string,
    value: unknown,
    accepts: Omit<ParameterFault, 'parameter'>,
    clean: (text: string) => string | null,
  ) => {
    if (value === undefined || value === null) return value
    const text = typeof value === 'string' ? clean(value) : null
    if (text === null) faults.push({ parameter, ...accepts })
    return text
  }
  const limited = (parameter: string, value: unknown, limit: number) =>
    read(
      parameter,
      value,
      {
        detail: `Null, or a string of at most ${limit} characters, without control characters except tabs and line ends.`,
        maximum: limit,
        unit: 'characters',
      },
      (text) => (isText(text, limit) ? text : null),
    )
  const edit = {
    filename: read(
      'filename',
      filename,
      { detail: 'Null, or a string with the name of a file.' },
      cleanFilename,
    ),
    altText: limited('alt_text', alt_text, maxAltText),
    caption: limited('caption', caption, maxCaption),
    labels: labels === undefined ? undefined : readLabelChanges(labels, faults),
  }
  if (faults.length > 0) throw malformed(faults)
  return {
    ...(edit.filename === undefined ? {} : { filename: edit.filename }),
    ...(edit.altText === undefined ? {} : { altText: edit.altText }),
    ...(edit.caption === undefined ? {} : { caption: edit.caption }),
    ...(edit.labels === undefined ? {} : { labels: edit.labels }),
  }
}

/** Null stands for the removal of all labels, which is not a merge patch of an object, so it is refused. */
function readLabelChanges(value: unknown, faults: ParameterFault[]): LabelChanges | undefined {
  const changes = parseLabelChanges(value)
  if (changes === undefined)
    faults.push({ parameter: 'labels', detail: `An object with ${labelRule}; null removes a label.` })
  return changes
}

const isText = (text: string, limit: number): boolean =>
  text.isWellFormed() && !/[^\P{Cc}\t\n\r]/u.test(text) && [...text].length <= limit

/** The media types of edits. */
const patchTypes = ['application/merge-patch+json', 'application/json']

const ids = [sampleItem.id, otherItem.id]
const sampleEdit = { alt_text: 'Three boats in a harbour', caption: null }

const findItemDescription: OperationDescription = {
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

const removeItemsDescription: OperationDescription = {
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
  -d '{"ids": ["${sampleItem.id}", "${otherItem.id}"]}' ${exampleBase}/api/media`,
}

const labelItemsDescription: OperationDescription = {
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

const editItemDescription: OperationDescription = {
  operationId: 'editMedia',
  tag: 'Items',
  summary: 'Edit one item',
  description: `Changes the filename, the alternative text, the caption and labels: a JSON merge patch (RFC 7396). Members that are left out
stay as they are, null removes a text or a label. The URL, the stored type and the bytes stay as they are.

With \`If-Match\`, the item is changed only if it still has this \`ETag\`.`,
  rules: 'M5 to M7',
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

const removeItemDescription: OperationDescription = {
  operationId: 'removeMedia',
  tag: 'Items',
  summary: 'Delete one item',
  description: `After the 204 the item is neither listed nor served. Caches may keep its bytes until they expire.
A second delete returns 404.`,
  rules: 'M2 and M3',
  needs: 'media:delete',
  path: ItemParams,
  responses: { 204: { description: 'Deleted.' } },
  problems: ['media-unknown', 'body-too-large', 'storage-full'],
  curl: `curl -X DELETE -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/media/${sampleItem.id}`,
}

const describeBucketDescription: OperationDescription = {
  operationId: 'describeBucket',
  tag: 'Items',
  summary: 'Get the bucket',
  description:
    'Returns the contents of the token’s bucket, the reservations of unfinished uploads, and the quota.',
  rules: 'Q1 to Q4, Z1, H1 and E1',
  needs: 'media:read',
  responses: {
    200: {
      description: 'The bucket.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: BucketObject,
          examples: {
            'with a limit of bytes': {
              name: 'default',
              items: 1204,
              bytes: 5_431_288_190,
              reserved_items: 1,
              reserved_bytes: 700_000_000,
              max_items: null,
              max_bytes: 10_000_000_000,
              trash_days: 30,
              trash_items: 3,
              trash_bytes: 7_340_021,
              private: false,
              signed_pages: false,
              remove_metadata: false,
              keep_taken_at: true,
              item_days: null,
            },
          },
        },
      },
    },
  },
  problems: [],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/bucket`,
}
