import type { FastifyReply } from 'fastify'
import type { Upload } from '../../catalog/uploads.ts'

/** Sets the headers that describe the state of an upload. */
export function describeUpload(
  reply: FastifyReply,
  { finished, mediaId, expiresAt }: Pick<Upload, 'finished' | 'mediaId' | 'expiresAt'>,
  baseUrl: string,
): FastifyReply {
  // tus 1.0.0, HEAD: "The Server MUST prevent the client and/or proxies from caching the response by adding the
  // Cache-Control: no-store header".
  reply.header('cache-control', 'no-store')
  if (finished) return reply.header('content-location', `${baseUrl}/api/media/${mediaId}`)
  // tus 1.0.0, Expiration: "This header MUST be included in every PATCH response if the upload is going to expire. If the
  // expiration is known at the creation, the Upload-Expires header MUST be included in the response to the initial POST
  // request. […] The value of the Upload-Expires header MUST be in RFC 9110 datetime format."
  return reply.header('upload-expires', new Date(expiresAt).toUTCString())
}
