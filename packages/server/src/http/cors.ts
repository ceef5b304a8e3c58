import type { FastifyReply, FastifyRequest } from 'fastify'

const exposed = [
  'ETag',
  'Location',
  'Content-Range',
  'Content-Disposition',
  'Accept-Ranges',
  'Retry-After',
  'Link',
  'WWW-Authenticate',
]

const requestHeaders = [
  'Authorization',
  'Content-Type',
  'Content-Disposition',
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'If-Range',
  'Range',
]

const preflightHeaders = {
  'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
  'access-control-allow-headers': requestHeaders.join(', '),
  'access-control-max-age': '7200',
}

/**
 * What every answer, problems included, says to pages of the configured origins, and to no others (docs/interface.md
 * C1, C2). A preflight is an OPTIONS like any other, with more headers.
 */
export function createAllowOrigin(origins: readonly string[]) {
  const any = origins.includes('*')
  return (request: FastifyRequest, reply: FastifyReply): void => {
    if (origins.length === 0) return
    if (!any) reply.header('vary', 'Origin')
    const { origin } = request.headers
    if (!any && (origin === undefined || !origins.includes(origin))) return
    reply.headers({
      'access-control-allow-origin': any ? '*' : origin,
      'access-control-expose-headers': exposed.join(', '),
      ...(request.headers['access-control-request-method'] === undefined ? {} : preflightHeaders),
    })
  }
}

/** A `Vary` that names what the answer depends on, the origin included where origins are told apart. */
export const varyOn = (origins: readonly string[], ...names: string[]): string =>
  [...(origins.length > 0 && !origins.includes('*') ? ['Origin'] : []), ...names].join(', ')
