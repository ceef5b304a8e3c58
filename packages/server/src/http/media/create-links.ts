import type { FastifyInstance } from 'fastify'
import type { Media } from '../../catalog/records.ts'
import { isMediaId } from '../../core/media-id.ts'
import { jsonBodyProblems } from '../bodies/read-json.ts'
import { leaveBodiesUnread } from '../bodies/unread-bodies.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { LinksBody } from '../openapi/request-schemas.ts'
import { otherMedia, sampleLink, sampleMedia } from '../openapi/samples.ts'
import { SignedLinks } from '../openapi/schemas.ts'
import type { LinkParts } from './create-link.ts'
import { readIds } from './id-list.ts'
import { linkMembers, readLinkRequest } from './link-body.ts'

/** `POST /api/links` (docs/interface.md H7). */
export async function createLinksRoute(app: FastifyInstance, parts: LinkParts): Promise<void> {
  const { readAuthorizedJson, catalog, signLinks, recordLinks, turns, limits } = parts
  leaveBodiesUnread(app)
  app.post('/api/links', routeOptions(description), async (request, reply) => {
    const { caller, body } = await readAuthorizedJson(request, 'media:read', ['ids', ...linkMembers])
    const { tokenId, bucketId, actor } = caller
    const { lifetime, ...options } = readLinkRequest(body, limits)
    const ids = [...new Set(readIds(body['ids']))]
    await turns.next(tokenId)
    const found = await Promise.all(ids.map((id) => (isMediaId(id) ? catalog.media(id) : null)))
    const isOwn = (media: Media | null | undefined): media is Media => media?.bucketId === bucketId
    const items = found.filter(isOwn)
    const { sign, expires } = await signLinks(lifetime)
    if (lifetime !== null) await recordLinks?.(actor, items, { ...options, expires })
    return reply.header('cache-control', 'no-store').send({
      links: items.map((media) => ({ id: media.id, url: sign(media, options) })),
      missing: ids.filter((_, index) => !isOwn(found[index])),
      expires_at: new Date(expires * 1000).toISOString(),
    })
  })
}

const ids = [sampleMedia.id, otherMedia.id]

const description: OperationDescription = {
  operationId: 'createLinks',
  tag: 'Items',
  summary: 'Create links of many items',
  description: `Returns a signed URL of each item, with the same expiry. \`missing\` are the ids of which the bucket has no item.`,
  rules: 'H5 to H8',
  needs: 'media:read',
  body: {
    description: 'The ids of 1 to 500 items, the lifetime, and what the links return.',
    content: {
      'application/json': { schema: LinksBody, examples: { 'for a day': { ids, expires_in: 86_400 } } },
    },
  },
  responses: {
    200: {
      description: 'Created.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: SignedLinks,
          examples: {
            'one item is missing': {
              links: [{ id: sampleMedia.id, url: sampleLink.url }],
              missing: ids.slice(1),
              expires_at: sampleLink.expires_at,
            },
          },
        },
      },
    },
  },
  problems: [...jsonBodyProblems, 'storage-full'],
  curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"ids": ["${ids.join('", "')}"], "expires_in": 86400}' ${exampleBase}/api/links`,
}
