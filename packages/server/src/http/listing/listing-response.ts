import { createHash } from 'node:crypto'
import type { BucketId, Grant } from '../../catalog/catalog.ts'
import type { PageSettings } from '../../core/page.ts'
import { parsePageNumber } from '../../core/page-number.ts'
import type { Listing, ListMedia } from '../../media/listing/list-media.ts'
import type { PageBody } from '../../media/listing/page-body.ts'
import { acceptsCoding } from '../headers/accept-encoding.ts'
import { matchesWeakly } from '../headers/entity-tag.ts'

/** Raise it when the bytes of a page change their form. */
const formatVersion = 1

export interface ListingParts {
  readonly listMedia: ListMedia
  readonly form: PageSettings
  readonly envelope: 'bare' | 'wrapped'
  readonly epoch: string
  readonly vary: string
}

/** What of a request shapes a listing. */
interface ListingRequest {
  readonly url: string
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** A 200 with a page, or a 304 without. */
export interface ListingResponse {
  readonly status: 200 | 304
  /** The headers: names and values in turn, which Node writes fastest. */
  readonly head: string[]
  readonly body: PageBody | null
}

/** To `grant`, which was judged for this very request. */
export type ListingResponder = (
  grant: Pick<Grant, 'bucketId' | 'revision'>,
  asked: ListingRequest,
) => Promise<ListingResponse>

/** What `GET /api/media` answers (docs/interface.md, Listing); throws the Fault that says why nothing is listed. */
export function createListingResponder(parts: ListingParts): ListingResponder {
  const { listMedia, form, envelope, epoch, vary } = parts
  const always = ['cache-control', 'private, no-cache', 'vary', vary]

  /** What shapes every page alike: the settings, the data's epoch, the format (L16). */
  const shape = createHash('sha256')
    .update(JSON.stringify([formatVersion, epoch, form, envelope]))
    .digest('base64url')
    .slice(0, 16)
  const tagOf = (bucketId: BucketId, revision: number, page: number, coding: Listing['coding']) =>
    `"${shape}.${bucketId}.${revision}.${page}${coding === 'gzip' ? '.gzip' : ''}"`

  const unchanged = (etag: string): ListingResponse => ({
    status: 304,
    head: [...always, 'etag', etag],
    body: null,
  })
  const whole = (etag: string, { coding, body }: Listing): ListingResponse => ({
    status: 200,
    head: [
      ...always,
      ...['etag', etag],
      ...['content-type', 'application/json; charset=utf-8'],
      ...['content-length', `${body.length}`],
      ...(coding === 'gzip' ? ['content-encoding', coding] : []),
    ],
    body,
  })
  /** The answers of listings that are kept, each as long as its listing: a head costs more to make than to find. */
  const answers = new WeakMap<Listing, ListingResponse>()

  return async ({ bucketId, revision: current }, { url, acceptEncoding, ifNoneMatch: match }) => {
    const page = parsePageNumber(pageOf(url))
    const gzip = acceptsCoding(acceptEncoding, 'gzip')

    // A tag that names this state was made for it; `*` names none, and waits for the listing's own.
    if (match !== undefined && match !== '*') {
      const tags = [tagOf(bucketId, current, page, 'identity')]
      if (gzip) tags.push(tagOf(bucketId, current, page, 'gzip'))
      const etag = tags.find((tag) => matchesWeakly(match, tag))
      if (etag !== undefined) return unchanged(etag)
    }

    const listing = await listMedia({ bucketId, revision: current }, page, gzip)
    const known = answers.get(listing)
    if (known !== undefined && match === undefined) return known
    const etag = tagOf(bucketId, listing.revision, page, listing.coding)
    if (match !== undefined && matchesWeakly(match, etag)) return unchanged(etag)
    const answer = whole(etag, listing)
    answers.set(listing, answer)
    return answer
  }
}

/** A query that asks for a page and nothing else, as nearly all do. */
const pageAlone = /^page=([0-9]+)$/

/** The `page` parameter of a URL: a text, a list where it is repeated, undefined where it is missing. */
function pageOf(url: string): string | readonly string[] | undefined {
  const query = url.indexOf('?')
  if (query === -1) return undefined
  const text = url.slice(query + 1)
  const page = pageAlone.exec(text)?.[1]
  if (page !== undefined) return page
  const [only, ...others] = new URLSearchParams(text).getAll('page')
  return only === undefined || others.length === 0 ? only : [only, ...others]
}
