import type { IncomingHttpHeaders } from 'node:http'

const exposed = [
  'ETag',
  'Location',
  'Content-Range',
  'Content-Disposition',
  'Accept-Ranges',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'Link',
  'WWW-Authenticate',
  'Content-Location',
  'Tus-Resumable',
  'Tus-Version',
  'Tus-Extension',
  'Tus-Max-Size',
  'Tus-Checksum-Algorithm',
  'Upload-Offset',
  'Upload-Length',
  'Upload-Defer-Length',
  'Upload-Metadata',
  'Upload-Expires',
]

const requestHeaders = [
  'Authorization',
  'Content-Type',
  'Content-Disposition',
  'Idempotency-Key',
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'If-Range',
  'Range',
  'Tus-Resumable',
  'Upload-Length',
  'Upload-Defer-Length',
  'Upload-Metadata',
  'Upload-Offset',
  'Upload-Checksum',
  'X-HTTP-Method-Override',
]

const preflightHeaders = {
  'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
  'access-control-allow-headers': requestHeaders.join(', '),
  'access-control-max-age': '7200',
}

export type CorsPolicy = (asked: IncomingHttpHeaders) => Readonly<Record<string, string>>

/**
 * What every answer, problems included, says to pages of the configured origins, and to no others (docs/interface.md
 * C1, C2). A preflight is an OPTIONS like any other, with more headers.
 */
export function createCorsPolicy(origins: readonly string[]): CorsPolicy {
  const any = origins.includes('*')
  const none = {}
  const stranger = any || origins.length === 0 ? none : { vary: 'Origin' }
  return (asked) => {
    if (origins.length === 0) return none
    const { origin } = asked
    const allowed = any ? '*' : origins.find((known) => known === origin)
    if (allowed === undefined) return stranger
    return {
      ...stranger,
      'access-control-allow-origin': allowed,
      'access-control-expose-headers': exposed.join(', '),
      ...(asked['access-control-request-method'] === undefined ? {} : preflightHeaders),
    }
  }
}

/** A `Vary` that names what the answer depends on, the origin included where origins are told apart. */
export const varyHeader = (origins: readonly string[], ...names: string[]): string =>
  [...(origins.length > 0 && !origins.includes('*') ? ['Origin'] : []), ...names].join(', ')
