import type { FastifyInstance } from 'fastify'
import type { Authorise } from '../caller.ts'
import { listMedia as description } from '../descriptions/list-media.ts'
import type { AnswerListing } from '../listing-answer.ts'
import { described } from '../openapi/description.ts'
import { sendPage } from '../send-page.ts'

/** The four paths of the one operation (docs/interface.md L1). */
export const listingPaths = ['/api/media', '/api/media/', '/v1/media', '/v1/media/']

/** `GET` and `HEAD` of the listing; most requests take the straight way of listing-lane.ts instead. */
export function listMediaRoute(
  app: FastifyInstance,
  parts: { readonly authorise: Authorise; readonly answerListing: AnswerListing },
): void {
  const { authorise, answerListing } = parts
  for (const url of listingPaths) {
    app.route({
      method: ['GET', 'HEAD'],
      url,
      ...described(description),
      handler: async (request, reply) => {
        const grant = await authorise(request, 'media:read')
        const { status, head, body } = await answerListing(grant, {
          url: request.raw.url ?? '',
          acceptEncoding: request.headers['accept-encoding'],
          ifNoneMatch: request.headers['if-none-match'],
        })
        for (let i = 1; i < head.length; i += 2) reply.header(head[i - 1] ?? '', head[i])
        return sendPage(reply.code(status), body)
      },
    })
  }
}
