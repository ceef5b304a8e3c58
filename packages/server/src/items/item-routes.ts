import { createHash } from 'node:crypto'
import { cleanFilename, maxAltText, maxCaption } from '@mediabucket/client/rules'
import type { SignLinks } from '../access/signed-links.ts'
import { urlsOfBucket } from '../core/bucket-pictures.ts'
import { Fault, type ParameterFault } from '../core/faults.ts'
import { focusRule, parseFocus } from '../core/focus.ts'
import { isItemId } from '../core/ids.ts'
import { labelRule, parseLabelChanges } from '../core/item-labels.ts'
import type { LinkSigner, UrlSettings } from '../core/item-urls.ts'
import { isObject } from '../core/json.ts'
import { readListedUrls, readNames, signsUrls } from '../core/queries.ts'
import { graceOfUploads, requireScope, requireUnexpired, requireUnlimited } from '../core/token-rules.ts'
import type { Caller } from '../http/authorizer.ts'
import { malformed, readIds } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { matchesStrongly, matchesWeakly, noStore } from '../http/headers.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { ItemDetails, ItemEdit } from '../storage/catalog/records.ts'
import type { ItemRemover } from './deletion.ts'
import { describeBucket, type EditItem, findItem, type LabelItems, mediaObjectOf } from './item-operations.ts'
import * as openapi from './item-routes.openapi.ts'
import { patchTypes } from './item-routes.openapi.ts'

/** The operations that these routes call. */
interface ItemOperations {
  readonly signLinks: SignLinks
  readonly editItem: EditItem
  readonly labelItems: LabelItems
  readonly removeItem: ItemRemover['remove']
  readonly removeItemIf: ItemRemover['removeIf']
  readonly removeItems: ItemRemover['removeMany']
  readonly replaceItems: ItemRemover['replaceMany']
}

interface ItemParts {
  readonly http: HttpContext
  readonly operations: ItemOperations
}

/** `/api/media/{id}`, `DELETE /api/media` and `GET /api/bucket` (docs/interface.md M1 to M6, Q3). */
export function itemRoutes(http: HttpContext, operations: ItemOperations): readonly Route[] {
  const parts = { http, operations }
  const readsBody = true
  return [
    route('GET', '/api/media/:id', openapi.findMedia, (exchange) => showItem(parts, exchange)),
    route('DELETE', '/api/media', openapi.removeManyMedia, (exchange) => removeItems(parts, exchange), {
      readsBody,
    }),
    route('PATCH', '/api/media', openapi.labelMedia, (exchange) => labelItems(parts, exchange), {
      readsBody,
    }),
    route('PATCH', '/api/media/:id', openapi.editMedia, (exchange) => editItem(parts, exchange), {
      readsBody,
    }),
    route('DELETE', '/api/media/:id', openapi.removeMedia, (exchange) => removeItem(parts, exchange)),
    route('GET', '/api/bucket', openapi.describeBucket, (exchange) => showBucket(http, exchange)),
  ]
}

async function showItem(
  { http: { authorize, catalog, urls }, operations }: ItemParts,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const grant = await authorize(exchange, null, { grace: graceOfUploads })
  if (grant.isExpired || !grant.scopes.has('media:read'))
    await requireUploaded(catalog, grant, exchange.params.id)
  const item = await findItem(catalog, grant.bucketId, exchange.params.id)
  const signer = signsUrls(grant, readListedUrls(exchange.query)) ? await operations.signLinks(null) : null
  const names = readNames(exchange.query)
  const { mediaObject, etag, stateTag, headers } = describeItem(
    urlsOfBucket(urls, grant, names),
    item,
    signer,
  )
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = exchange.request.headers
  if (ifMatch !== undefined && !matchesState(ifMatch, stateTag))
    throw new Fault('precondition-failed', 'If-Match does not name the current ETag of the item.')
  if (ifNoneMatch !== undefined && matchesWeakly(ifNoneMatch, etag)) return { status: 304, headers }
  return { status: 200, headers, json: mediaObject }
}

async function editItem(
  { http: { readAuthorizedJson, urls: settings }, operations }: ItemParts,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, 'media:write', editMemberNames, patchTypes)
  requireUnlimited(caller)
  const urls = urlsOfBucket(settings, caller)
  // Before If-Match: a precondition is ignored if the request is refused without it (RFC 9110, section 13.2.1).
  const changes = readEdit(body)
  const ifMatch = exchange.request.headers['if-match']
  const item = await operations.editItem(
    caller.bucketId,
    exchange.params.id,
    changes,
    ifMatch === undefined ? null : stateCondition(urls, ifMatch),
    caller.actor,
  )
  const { mediaObject, headers } = describeItem(urls, item)
  return { status: 200, headers, json: mediaObject }
}

async function removeItem(
  { http: { authorize, metrics, urls }, operations }: ItemParts,
  exchange: Exchange<'id'>,
): Promise<Reply> {
  const grant = await authorize(exchange, 'media:delete')
  const { bucketId, actor } = grant
  const { id } = exchange.params
  const ifMatch = exchange.request.headers['if-match']
  if (ifMatch === undefined) await operations.removeItem(bucketId, id, actor)
  else await operations.removeItemIf(bucketId, id, stateCondition(urlsOfBucket(urls, grant), ifMatch), actor)
  metrics.deletedItems.inc()
  return { status: 204 }
}

async function removeItems(
  { http: { readAuthorizedJson, metrics }, operations }: ItemParts,
  exchange: Exchange,
): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, 'media:delete', ['ids', 'replaced_by'])
  const { bucketId, actor } = caller
  const ids = readIds(body['ids'])
  const successors = readSuccessors(body['replaced_by'], ids)
  // A key that passes to another item is one that is written, which is no upload (T9).
  if (successors !== null) {
    requireScope(caller, 'media:write')
    requireUnlimited(caller)
  }
  const removed =
    successors === null
      ? await operations.removeItems(bucketId, ids, actor)
      : await operations.replaceItems(bucketId, ids, successors, actor)
  metrics.deletedItems.inc(removed.deleted.length)
  return { status: 200, headers: noStore, json: removed }
}

/** Reads which item replaces one that is deleted; null if the member is missing. Throws Fault `json-malformed`. */
function readSuccessors(value: unknown, ids: readonly string[]): Readonly<Record<string, string>> | null {
  if (value === undefined) return null
  const asked = new Set(ids)
  const entries = isObject(value) ? Object.entries(value) : null
  const pairs = entries?.flatMap(([id, successor]) =>
    typeof successor === 'string' && asked.has(id) ? [[id, successor] as const] : [],
  )
  if (pairs === undefined || pairs.length !== entries?.length)
    throw malformed([
      {
        parameter: 'replaced_by',
        detail: 'An object whose names are some of the ids, each with the id of the item that replaces it.',
      },
    ])
  return Object.fromEntries(pairs)
}

async function labelItems(
  { http: { readAuthorizedJson }, operations }: ItemParts,
  exchange: Exchange,
): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, 'media:write', ['ids', 'labels'], patchTypes)
  requireUnlimited(caller)
  const ids = readIds(body['ids'])
  const changes = editMembers.labels.read(body['labels'])
  if (changes === undefined) throw malformed([refused(editMembers.labels)])
  const labelled = await operations.labelItems(caller.bucketId, ids, changes, caller.actor)
  return { status: 200, headers: noStore, json: labelled }
}

/** The contents and the quota of the caller's bucket. */
async function showBucket({ authorize, catalog }: HttpContext, exchange: Exchange): Promise<Reply> {
  const { bucketId } = await authorize(exchange, 'media:read')
  return { status: 200, headers: noStore, json: await describeBucket(catalog, bucketId) }
}

/**
 * A token without `media:read`, and one that has expired lately, read the items that their resumable uploads have become, as they get those of
 * other uploads in the responses (docs/interface.md R15). Throws Fault `scope-missing` and `token-expired`.
 */
async function requireUploaded(
  catalog: Pick<Catalog, 'uploadOfItem'>,
  caller: Caller,
  id: string,
): Promise<void> {
  const upload = caller.scopes.has('media:write') && isItemId(id) ? await catalog.uploadOfItem(id) : null
  if (upload?.tokenId === caller.tokenId) return
  requireUnexpired(caller)
  if (upload?.limitedBy == null || upload.limitedBy !== caller.limits?.id) requireScope(caller, 'media:read')
}

/**
 * The media object of an item and the headers of its response, with the entity tag of the object (docs/interface.md M6).
 * `stateTag` is the tag of the same object with plain URLs without names.
 */
function describeItem(urls: UrlSettings, item: ItemDetails, signer: LinkSigner | null = null) {
  const plain = mediaObjectOf(urls.names ? { ...urls, names: false } : urls, item)
  const digest = createHash('sha256').update(JSON.stringify(plain)).digest('base64url')
  const mediaObject = signer === null && !urls.names ? plain : mediaObjectOf(urls, item, signer)
  const stateTag = `"${digest}"`
  const shown = [...(urls.names ? ['names'] : []), ...(signer === null ? [] : [signer.tag])]
  const etag = `"${[digest, ...shown].join('.')}"`
  return { mediaObject, etag, stateTag, headers: { 'cache-control': 'private, no-cache', etag } }
}

/** Whether If-Match names the state of an item. Whether its URLs are signed, and until when, or have names, is not a part of the state. */
const matchesState = (ifMatch: string, stateTag: string): boolean =>
  matchesStrongly(ifMatch.replace(/"([\w-]{43})\.[a-z0-9.]+"/g, '"$1"'), stateTag)

/** Whether the header If-Match of a request names the state of an item. */
const stateCondition = (urls: UrlSettings, ifMatch: string) => (item: ItemDetails) =>
  matchesState(ifMatch, describeItem(urls, item).stateTag)

type EditValues = Required<ItemEdit>

/** The member of a merge patch that changes a field of an item. */
interface EditMember<Value> {
  readonly name: string
  /** Returns undefined for a value that is not accepted. */
  readonly read: (value: unknown) => Value | undefined
  readonly accepts: Omit<ParameterFault, 'parameter'>
}

/** A text that null removes. `clean` returns null for one that is not accepted. */
const textMember = (
  name: string,
  clean: (text: string) => string | null,
  accepts: EditMember<unknown>['accepts'],
): EditMember<string | null> => ({
  name,
  read: (value) =>
    value === null ? null : typeof value === 'string' ? (clean(value) ?? undefined) : undefined,
  accepts,
})

const limitedMember = (name: string, maximum: number): EditMember<string | null> =>
  textMember(name, (text) => (isText(text, maximum) ? text : null), {
    detail: `Null, or a string of at most ${maximum} characters, without control characters except tabs and line ends.`,
    maximum,
    unit: 'characters',
  })

const editMembers: { readonly [Field in keyof EditValues]: EditMember<EditValues[Field]> } = {
  filename: textMember('filename', cleanFilename, { detail: 'Null, or a string with the name of a file.' }),
  altText: limitedMember('alt_text', maxAltText),
  caption: limitedMember('caption', maxCaption),
  // Null stands for the removal of all labels, which is not a merge patch of an object, so it is refused.
  labels: {
    name: 'labels',
    read: parseLabelChanges,
    accepts: { detail: `An object with ${labelRule}; null removes a label.` },
  },
  focus: {
    name: 'focus',
    read: (value) => (value === null ? null : parseFocus(value)),
    accepts: { detail: `Null, or an object with ${focusRule}.`, minimum: 0, maximum: 1 },
  },
}

const editMemberNames = Object.values(editMembers).map(({ name }) => name)
const isEditField = (field: string): field is keyof EditValues => Object.hasOwn(editMembers, field)
const editFields = Object.keys(editMembers).filter(isEditField)

type Editing = { -readonly [Field in keyof EditValues]?: EditValues[Field] }

/** Reads the members of a merge patch. Throws Fault `json-malformed`. */
function readEdit(body: Readonly<Record<string, unknown>>): ItemEdit {
  const edit: Editing = {}
  const faults = editFields.flatMap((field) => readEditField(edit, field, body))
  if (faults.length > 0) throw malformed(faults)
  return edit
}

/** Sets a field of `edit` to the value of its member, if there is one. Returns the fault of a value that is not accepted. */
function readEditField<Field extends keyof EditValues>(
  edit: Editing,
  field: Field,
  body: Readonly<Record<string, unknown>>,
): readonly ParameterFault[] {
  const member: EditMember<EditValues[Field]> = editMembers[field]
  if (body[member.name] === undefined) return []
  const value = member.read(body[member.name])
  if (value === undefined) return [refused(member)]
  edit[field] = value
  return []
}

const refused = ({ name, accepts }: EditMember<unknown>): ParameterFault => ({ parameter: name, ...accepts })

const isText = (text: string, limit: number): boolean =>
  text.isWellFormed() && !/[^\P{Cc}\t\n\r]/u.test(text) && [...text].length <= limit
