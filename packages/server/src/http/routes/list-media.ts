import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { BucketId } from '../../catalog/catalog.ts'
import { matchesWeakly } from '../../core/entity-tag.ts'
import type { PageForm } from '../../core/page.ts'
import { parsePageNumber } from '../../core/page-number.ts'
import type { Listing } from '../../media/list-media.ts'
import type { Authorise } from '../caller.ts'
import { ListingQuery } from '../schemas.ts'

/** Raise it when the bytes of a page change their form. */
const formatVersion = 1

interface Parts {
  readonly authorise: Authorise
  readonly listMedia: (bucketId: BucketId, page: number) => Promise<Listing>
  readonly form: PageForm
  readonly envelope: 'bare' | 'wrapped'
  readonly epoch: string
  readonly vary: string
}

/** `GET /api/media`: the listing (docs/interface.md, Listing). */
export function listMediaRoute(app: FastifyInstance, parts: Parts): void {
  const { authorise, listMedia, form, envelope, epoch, vary } = parts
  const wrap = envelope === 'wrapped' ? <T>(page: T) => ({ data: page }) : <T>(page: T) => page

  /** What shapes every page alike: the settings, the data's epoch, the format (L16). */
  const shape = createHash('sha256')
    .update(JSON.stringify([formatVersion, epoch, form, envelope]))
    .digest('base64url')
    .slice(0, 16)
  const tagOf = (bucketId: BucketId, revision: number, page: number) =>
    `"${shape}.${bucketId}.${revision}.${page}"`

  for (const url of ['/api/media', '/api/media/', '/v1/media', '/v1/media/']) {
    app.get<{ Querystring: ListingQuery }>(
      url,
      { schema: { querystring: ListingQuery } },
      async (request, reply) => {
        const grant = await authorise(request, 'media:read')
        const page = parsePageNumber(request.query.page)
        const match = request.headers['if-none-match']
        reply.headers({ 'cache-control': 'private, no-cache', vary })

        const present = tagOf(grant.bucketId, grant.revision, page)
        if (match !== undefined && matchesWeakly(match, present))
          return reply.code(304).header('etag', present).send()

        const listing = await listMedia(grant.bucketId, page)
        return reply
          .header('etag', tagOf(grant.bucketId, listing.revision, page))
          .type('application/json; charset=utf-8')
          .send(JSON.stringify(wrap(listing.page)))
      },
    )
  }
}
