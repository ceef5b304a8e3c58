import { createHash } from 'node:crypto'
import type { ItemDetails } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import { requireFewExpired } from '../../core/item-expiry.ts'
import { readListedUrls, signsUrls } from '../../core/listed-urls.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import type { LinkSigner } from '../../core/signed-url.ts'
import { describeBucket } from '../../media/describe-bucket.ts'
import { mediaObjectOf } from '../../media/describe-media.ts'
import { findItem } from '../../media/find-media.ts'
import type { HttpContext } from '../context.ts'
import { matchesStrongly, matchesWeakly } from '../headers/entity-tag.ts'
import type { Operations } from '../operations.ts'
import { type Exchange, type Reply, type Route, route } from '../routing/route.ts'
import { editMembers, readEdit, readIds } from './item-bodies.ts'
import * as descriptions from './item-descriptions.ts'

const noStore = { 'cache-control': 'no-store' }

/** `/api/media/{id}`, `DELETE /api/media` and `GET /api/bucket` (docs/interface.md M1 to M6, Q3). */
export function itemRoutes(http: HttpContext, operations: Operations): readonly Route[] {
  const { authorize, readAuthorizedJson, catalog, urls, metrics } = http

  async function find(exchange: Exchange<'id'>): Promise<Reply> {
    const grant = await authorize(exchange, 'media:read')
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
    const { caller, body } = await readAuthorizedJson(
      exchange,
      'media:write',
      editMembers,
      descriptions.patchTypes,
    )
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

  /** The contents and the quota of the caller's bucket. */
  async function bucket(exchange: Exchange): Promise<Reply> {
    const { bucketId, expired } = await authorize(exchange, 'media:read')
    requireFewExpired(expired)
    return { status: 200, headers: noStore, json: await describeBucket(catalog, bucketId) }
  }

  const readsBody = true
  return [
    route('GET', '/api/media/:id', descriptions.findItem, find),
    route('DELETE', '/api/media', descriptions.removeItems, removeMany, { readsBody }),
    route('PATCH', '/api/media/:id', descriptions.editItem, edit, { readsBody }),
    route('DELETE', '/api/media/:id', descriptions.removeItem, remove),
    route('GET', '/api/bucket', descriptions.describeBucket, bucket),
  ]
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
