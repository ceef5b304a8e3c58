import type { FastifyInstance } from 'fastify'
import type { SignLinks } from '../../access/sign-links.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Turns } from '../../core/turns.ts'
import { findMedia } from '../../media/find-media.ts'
import type { RecordLinks } from '../../media/record-links.ts'
import { jsonBodyProblems } from '../bodies/read-json.ts'
import { leaveBodiesUnread } from '../bodies/unread-bodies.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import { LinkBody, MediaParams } from '../openapi/request-schemas.ts'
import { sampleLink, sampleMedia } from '../openapi/samples.ts'
import { SignedLink } from '../openapi/schemas.ts'
import type { AuthorizedJsonReader } from '../tokens/read-authorized-json.ts'
import { type LinkLimits, linkMembers, readLinkRequest } from './link-body.ts'

export interface LinkParts {
  readonly readAuthorizedJson: AuthorizedJsonReader
  readonly catalog: Pick<Catalog, 'media'>
  readonly signLinks: SignLinks
  /** Null if the audit log is off. */
  readonly recordLinks: RecordLinks | null
  readonly turns: Turns
  readonly limits: LinkLimits
}

/** `POST /api/media/{id}/links` (docs/interface.md H7). */
export async function createLinkRoute(app: FastifyInstance, parts: LinkParts): Promise<void> {
  const { readAuthorizedJson, catalog, signLinks, recordLinks, limits } = parts
  leaveBodiesUnread(app)
  app.post<{ Params: MediaParams }>(
    '/api/media/:id/links',
    routeOptions(description),
    async (request, reply) => {
      const { caller, body } = await readAuthorizedJson(request, 'media:read', linkMembers)
      const { bucketId, actor } = caller
      const { lifetime, ...options } = readLinkRequest(body, limits)
      const media = await findMedia(catalog, bucketId, request.params.id)
      const { sign, expires } = await signLinks(lifetime)
      if (lifetime !== null) await recordLinks?.(actor, [media], { ...options, expires })
      const link = { url: sign(media, options), expires_at: new Date(expires * 1000).toISOString() }
      return reply.code(201).header('cache-control', 'no-store').send(link)
    },
  )
}

const description: OperationDescription = {
  operationId: 'createLink',
  tag: 'Items',
  summary: 'Create a link that expires',
  description: `Returns a signed URL of the bytes, or of a variant. It needs no token until it expires, also in a private bucket. It is
used unchanged: the signature covers the path, \`variant\`, \`download\` and the expiry.

In a public bucket the plain URL works too.`,
  rules: 'H5 to H8 and M3',
  needs: 'media:read',
  path: MediaParams,
  body: {
    description: 'The lifetime, and what the link returns.',
    content: {
      'application/json': {
        schema: LinkBody,
        examples: {
          'for a day': { expires_in: 86_400 },
          'a thumbnail, the same URL for 15 minutes': { variant: 'thumb' },
        },
      },
    },
  },
  responses: {
    201: {
      description: 'Created.',
      headers: ['Cache-Control'],
      content: { 'application/json': { schema: SignedLink, examples: { 'for a day': sampleLink } } },
    },
  },
  problems: [...jsonBodyProblems, 'media-unknown', 'storage-full'],
  curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"expires_in": 86400}' ${exampleBase}/api/media/${sampleMedia.id}/links`,
}
