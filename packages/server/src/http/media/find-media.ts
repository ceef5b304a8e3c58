import type { FastifyInstance } from 'fastify'
import type { SignLinks } from '../../access/sign-links.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { Fault } from '../../core/fault.ts'
import { readListedUrls, signsUrls } from '../../core/listed-urls.ts'
import type { UrlSettings } from '../../core/media-url.ts'
import { findMedia } from '../../media/find-media.ts'
import { matchesWeakly } from '../headers/entity-tag.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { MediaParams, MediaQuery } from '../openapi/request-schemas.ts'
import { sampleMedia } from '../openapi/samples.ts'
import { MediaObject } from '../openapi/schemas.ts'
import type { Authorizer } from '../tokens/authorizer.ts'
import { itemResponse, matchesState } from './item-response.ts'

/** `GET /api/media/{id}`: the media object of an item (docs/interface.md M1, M3). */
export function findMediaRoute(
  app: FastifyInstance,
  parts: { authorize: Authorizer; catalog: Catalog; signLinks: SignLinks; urlSettings: UrlSettings },
): void {
  const { authorize, catalog, signLinks, urlSettings } = parts
  app.get<{ Params: MediaParams; Querystring: Record<string, unknown> }>(
    '/api/media/:id',
    routeOptions(description),
    async (request, reply) => {
      const grant = await authorize(request, 'media:read')
      const media = await findMedia(catalog, grant.bucketId, request.params.id)
      const signer = signsUrls(grant, readListedUrls(request.query)) ? await signLinks(null) : null
      const response = itemResponse(urlSettings, media, signer)
      reply.headers(response.headers)
      const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers
      if (ifMatch !== undefined && !matchesState(ifMatch, response))
        throw new Fault('precondition-failed', 'If-Match does not name the current ETag of the item.')
      if (ifNoneMatch !== undefined && matchesWeakly(ifNoneMatch, response.etag))
        return reply.code(304).send()
      return reply.send(response.media)
    },
  )
}

const description: OperationDescription = {
  operationId: 'findMedia',
  tag: 'Items',
  summary: 'Get one item',
  description:
    'Returns the media object. Ids that are unknown, deleted or in another bucket return the same 404.',
  rules: 'M1, M3, M6 and H10',
  needs: 'media:read',
  path: MediaParams,
  query: MediaQuery,
  responses: {
    200: {
      description: 'The item.',
      headers: ['ETag', 'Cache-Control'],
      content: { 'application/json': { schema: MediaObject, examples: { picture: sampleMedia } } },
    },
    304: { description: 'The item still has this `ETag`.', headers: ['ETag', 'Cache-Control'] },
  },
  headers: ['If-Match', 'If-None-Match'],
  problems: ['parameter-malformed', 'media-unknown', 'precondition-failed'],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/media/${sampleMedia.id}`,
}
