import type { FastifyInstance } from 'fastify'
import { listMedia as description } from '../descriptions/list-media.ts'
import type { AnswerListing } from '../listing-answer.ts'
import { described } from '../openapi/description.ts'
import { sendPage } from '../send-page.ts'

/** The four paths of the one operation (docs/interface.md L1). */
export const listingPaths = ['/api/media', '/api/media/', '/v1/media', '/v1/media/']

/** `GET` and `HEAD` of the listing; most requests take the straight way of listing-lane.ts instead. */
export function listMediaRoute(app: FastifyInstance, answerListing: AnswerListing): void {
  for (const url of listingPaths) {
    app.route({
      method: ['GET', 'HEAD'],
      url,
      ...described(description),
      handler: async (request, reply) => {
        const { status, headers, body } = await answerListing(request.raw)
        return sendPage(reply.code(status).headers(headers), body)
      },
    })
  }
}
