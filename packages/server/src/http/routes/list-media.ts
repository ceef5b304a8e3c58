import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BucketId } from '../../catalog/catalog.ts'
import { acceptsGzip } from '../../core/accepts-gzip.ts'
import { matchesWeakly } from '../../core/entity-tag.ts'
import type { PageForm } from '../../core/page.ts'
import { parsePageNumber } from '../../core/page-number.ts'
import type { Listing, ListMedia } from '../../media/list-media.ts'
import type { Authorise } from '../caller.ts'
import { ListingQuery } from '../schemas.ts'
import { sendPage } from '../send-page.ts'

/** Raise it when the bytes of a page change their form. */
const formatVersion = 1

interface Parts {
  readonly authorise: Authorise
  readonly listMedia: ListMedia
  readonly form: PageForm
  readonly envelope: 'bare' | 'wrapped'
  readonly epoch: string
  readonly vary: string
}

/** `GET /api/media`: the listing (docs/interface.md, Listing). */
export function listMediaRoute(app: FastifyInstance, parts: Parts): void {
  const { authorise, listMedia, form, envelope, epoch, vary } = parts

  /** What shapes every page alike: the settings, the data's epoch, the format (L16). */
  const shape = createHash('sha256')
    .update(JSON.stringify([formatVersion, epoch, form, envelope]))
    .digest('base64url')
    .slice(0, 16)
  const tagOf = (bucketId: BucketId, revision: number, page: number, coding: Listing['coding']) =>
    `"${shape}.${bucketId}.${revision}.${page}${coding === 'gzip' ? '.gzip' : ''}"`

  async function list(request: FastifyRequest<{ Querystring: ListingQuery }>, reply: FastifyReply) {
    const grant = await authorise(request, 'media:read')
    const page = parsePageNumber(request.query.page)
    const gzip = acceptsGzip(request.headers['accept-encoding'])
    reply.header('cache-control', 'private, no-cache').header('vary', vary)

    // A tag that names this state was made for it; `*` names none, and waits for the listing's own.
    const match = request.headers['if-none-match']
    if (match !== undefined && match !== '*') {
      const tags = [tagOf(grant.bucketId, grant.revision, page, 'identity')]
      if (gzip) tags.push(tagOf(grant.bucketId, grant.revision, page, 'gzip'))
      const present = tags.find((tag) => matchesWeakly(match, tag))
      if (present !== undefined) return reply.code(304).header('etag', present).send()
    }

    const { revision, coding, body } = await listMedia(grant, page, gzip)
    const etag = tagOf(grant.bucketId, revision, page, coding)
    reply.header('etag', etag)
    if (match !== undefined && matchesWeakly(match, etag)) return reply.code(304).send()
    if (coding === 'gzip') reply.header('content-encoding', coding)
    return sendPage(reply.header('content-type', 'application/json; charset=utf-8'), body)
  }

  for (const url of ['/api/media', '/api/media/', '/v1/media', '/v1/media/']) {
    app.route<{ Querystring: ListingQuery }>({
      method: ['GET', 'HEAD'],
      url,
      schema: { querystring: ListingQuery },
      handler: list,
    })
  }
}
