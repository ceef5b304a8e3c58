import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { BucketId } from '../catalog/catalog.ts'
import { acceptsCoding } from '../core/accepts-coding.ts'
import { matchesWeakly } from '../core/entity-tag.ts'
import type { PageForm } from '../core/page.ts'
import { parsePageNumber } from '../core/page-number.ts'
import type { Listing, ListMedia } from '../media/list-media.ts'
import type { PageBody } from '../media/page-body.ts'
import type { Authorise } from './caller.ts'

/** Raise it when the bytes of a page change their form. */
const formatVersion = 1

export interface ListingParts {
  readonly authorise: Authorise
  readonly listMedia: ListMedia
  readonly form: PageForm
  readonly envelope: 'bare' | 'wrapped'
  readonly epoch: string
  readonly vary: string
}

/** A 200 with a page, or a 304 without. */
interface ListingAnswer {
  readonly status: 200 | 304
  readonly headers: Readonly<Record<string, string | number>>
  readonly body: PageBody | null
}

export type AnswerListing = (request: IncomingMessage) => Promise<ListingAnswer>

/** What `GET /api/media` answers (docs/interface.md, Listing); throws the Fault that says why nothing is listed. */
export function createAnswerListing(parts: ListingParts): AnswerListing {
  const { authorise, listMedia, form, envelope, epoch, vary } = parts
  const always = { 'cache-control': 'private, no-cache', vary }

  /** What shapes every page alike: the settings, the data's epoch, the format (L16). */
  const shape = createHash('sha256')
    .update(JSON.stringify([formatVersion, epoch, form, envelope]))
    .digest('base64url')
    .slice(0, 16)
  const tagOf = (bucketId: BucketId, revision: number, page: number, coding: Listing['coding']) =>
    `"${shape}.${bucketId}.${revision}.${page}${coding === 'gzip' ? '.gzip' : ''}"`

  return async (request) => {
    const grant = await authorise({ raw: request }, 'media:read')
    const page = parsePageNumber(pageOf(request.url ?? ''))
    const gzip = acceptsCoding(request.headers['accept-encoding'], 'gzip')

    // A tag that names this state was made for it; `*` names none, and waits for the listing's own.
    const match = request.headers['if-none-match']
    if (match !== undefined && match !== '*') {
      const tags = [tagOf(grant.bucketId, grant.revision, page, 'identity')]
      if (gzip) tags.push(tagOf(grant.bucketId, grant.revision, page, 'gzip'))
      const etag = tags.find((tag) => matchesWeakly(match, tag))
      if (etag !== undefined) return { status: 304, headers: { ...always, etag }, body: null }
    }

    const { revision, coding, body } = await listMedia(grant, page, gzip)
    const etag = tagOf(grant.bucketId, revision, page, coding)
    if (match !== undefined && matchesWeakly(match, etag)) {
      return { status: 304, headers: { ...always, etag }, body: null }
    }
    const headers = {
      ...always,
      etag,
      'content-type': 'application/json; charset=utf-8',
      'content-length': body.length,
      ...(coding === 'gzip' ? { 'content-encoding': coding } : {}),
    }
    return { status: 200, headers, body }
  }
}

/** The `page` parameter of a URL: a text, a list where it is repeated, undefined where it is missing. */
function pageOf(url: string): string | readonly string[] | undefined {
  const query = url.indexOf('?')
  if (query === -1) return undefined
  const [only, ...others] = new URLSearchParams(url.slice(query + 1)).getAll('page')
  return only === undefined || others.length === 0 ? only : [only, ...others]
}
