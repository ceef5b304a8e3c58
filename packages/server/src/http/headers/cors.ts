import type { IncomingHttpHeaders } from 'node:http'

const exposedHeaders = [
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

const allowedHeaders = [
  'Authorization',
  'Content-Type',
  'Content-Disposition',
  'Idempotency-Key',
  'Mediabucket-Expires-At',
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
  'access-control-allow-headers': allowedHeaders.join(', '),
  'access-control-max-age': '7200',
}

export const noCorsHeaders: Readonly<Record<string, string>> = {}

/** Returns the response headers for the headers of a request. */
export type CorsPolicy = (request: IncomingHttpHeaders) => Readonly<Record<string, string>>

/**
 * Allows pages of the configured origins, and no others, to read every response, problems included (docs/interface.md C1,
 * C2). A preflight is an ordinary OPTIONS request whose response has more headers.
 */
export function createCorsPolicy(origins: readonly string[]): CorsPolicy {
  const allowsAny = origins.includes('*')
  const base = allowsAny || origins.length === 0 ? noCorsHeaders : { vary: 'Origin' }
  return (request) => {
    if (origins.length === 0) return noCorsHeaders
    const { origin } = request
    const allowed = allowsAny ? '*' : origins.find((configured) => configured === origin)
    if (allowed === undefined) return base
    return {
      ...base,
      'access-control-allow-origin': allowed,
      'access-control-expose-headers': exposedHeaders.join(', '),
      ...(request['access-control-request-method'] === undefined ? {} : preflightHeaders),
    }
  }
}

/** The value of `Vary`: the given names, and `Origin` where responses differ by origin. */
export const varyHeader = (origins: readonly string[], ...names: string[]): string =>
  [...(origins.length > 0 && !origins.includes('*') ? ['Origin'] : []), ...names].join(', ')
