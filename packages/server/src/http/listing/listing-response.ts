import { createHash } from 'node:crypto'
import type { BucketId, Grant } from '../../catalog/records.ts'
import { listState } from '../../core/item-expiry.ts'
import { parsePageNumber } from '../../core/page-number.ts'
import type { Listing } from '../../media/listing/list-media.ts'
import type { PageBody } from '../../media/listing/page-body.ts'
import type { HttpContext } from '../context.ts'
import { acceptsCoding } from '../headers/accept-encoding.ts'
import { matchesWeakly } from '../headers/entity-tag.ts'
import type { Operations } from '../operations.ts'

/** Part of every entity tag. Increase it when the format of pages changes. */
const formatVersion = 1

/** The parts of HttpContext that determine the responses. */
export interface ListingContext extends Pick<HttpContext, 'urls' | 'vary'> {
  readonly settings: Pick<HttpContext['settings'], 'envelope'>
  readonly catalog: Pick<HttpContext['catalog'], 'epoch'>
}

/** The parts of a request that determine the response to a listing. */
export interface ListingRequest {
  /** The parameter `page` as sent. */
  readonly page: unknown
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** A 200 with a page, or a 304 without a body. */
export interface ListingResponse {
  readonly status: 200 | 304
  /** The headers as alternating names and values, the form that Node writes fastest. */
  readonly head: string[]
  readonly body: PageBody | null
}

/** Creates the response for a caller whose token has been verified for this request. */
export type ListingResponder = (
  grant: Pick<Grant, 'bucketId' | 'revision' | 'expired' | 'signsPages'>,
  request: ListingRequest,
) => Promise<ListingResponse>

/** Responds to `GET /api/media` (docs/interface.md, Listing). The responder throws Fault for an invalid request. */
export function createListingResponder(
  { urls, vary, settings: { envelope }, catalog: { epoch } }: ListingContext,
  /** `signLinks` is for buckets whose pages list signed URLs. */
  { listPage, signLinks }: Pick<Operations, 'listPage' | 'signLinks'>,
): ListingResponder {
  const { baseUrl, mediaBaseUrl, extensions, links: linkStyle } = urls
  const varyHeader = vary('Authorization', 'Accept-Encoding')
  const commonHeaders = ['cache-control', 'private, no-cache', 'vary', varyHeader]

  /** Identifies what determines all pages: the settings, the epoch of the data and the format (L16). */
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([formatVersion, epoch, baseUrl, mediaBaseUrl, extensions, linkStyle, envelope]))
    .digest('base64url')
    .slice(0, 16)
  /** `links` identifies the signed URLs of the page; it is empty for plain ones. */
  const entityTag = (
    bucketId: BucketId,
    state: string,
    page: number,
    links: string,
    coding: Listing['coding'],
  ) => `"${fingerprint}.${bucketId}.${state}.${page}${links}${coding === 'gzip' ? '.gzip' : ''}"`

  const notModified = (etag: string): ListingResponse => ({
    status: 304,
    head: [...commonHeaders, 'etag', etag],
    body: null,
  })
  const ok = (etag: string, { coding, body }: Listing): ListingResponse => {
    const head = [...commonHeaders, 'etag', etag, 'content-type', 'application/json; charset=utf-8']
    head.push('content-length', `${body.length}`)
    if (coding === 'gzip') head.push('content-encoding', coding)
    return { status: 200, head, body }
  }
  /** The responses of cached listings, for as long as these are cached: building the headers costs more than a lookup. */
  const responses = new WeakMap<Listing, ListingResponse>()

  return async (grant, { page: sent, acceptEncoding, ifNoneMatch }) => {
    const { bucketId, signsPages } = grant
    const current = listState(grant)
    const page = parsePageNumber(sent)
    const gzip = acceptsCoding(acceptEncoding, 'gzip')

    const signer = signsPages ? await signLinks(null) : null
    const links = signer === null ? '' : `.${signer.tag}`

    // A tag of the current state needs no listing. `*` names no state, so it is compared with the listing's own.
    if (ifNoneMatch !== undefined && ifNoneMatch !== '*') {
      const tags = [entityTag(bucketId, current, page, links, 'identity')]
      if (gzip) tags.push(entityTag(bucketId, current, page, links, 'gzip'))
      const etag = tags.find((tag) => matchesWeakly(ifNoneMatch, tag))
      if (etag !== undefined) return notModified(etag)
    }

    const listing = await listPage({ bucketId, state: current }, page, gzip, signer)
    const cached = listing.isCached ? responses.get(listing) : undefined
    if (cached !== undefined && ifNoneMatch === undefined) return cached
    const etag = entityTag(bucketId, listing.state, page, links, listing.coding)
    if (ifNoneMatch !== undefined && matchesWeakly(ifNoneMatch, etag)) return notModified(etag)
    const response = ok(etag, listing)
    if (listing.isCached) responses.set(listing, response)
    return response
  }
}
