import type { IncomingHttpHeaders } from 'node:http'
import type { BaseLogger } from 'pino'

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
  'X-Request-Id',
  'Mediabucket-Variant',
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

const preflightHeaders = {
  'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
  'access-control-max-age': '7200',
}

/** A list of names of headers, of at most 1,000 characters, which no program exceeds. `*` would be read as all names. */
const requestedHeaders = /^(?!(?:.*,)? *\* *(?:,|$))[\w!#$%&'*+.^`|~ ,-]{1,1000}$/

/** A preflight allows the headers that it asks for, because libraries send ones that no list foresees. No header is a credential here. */
function allowRequestedHeaders(request: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const requested = request['access-control-request-headers']
  if (requested === undefined || !requestedHeaders.test(requested)) return preflightHeaders
  return { ...preflightHeaders, 'access-control-allow-headers': requested }
}

const noCorsHeaders: Readonly<Record<string, string>> = {}

/** Returns the response headers for the headers of a request. */
export type CorsPolicy = (request: IncomingHttpHeaders) => Readonly<Record<string, string>>

/**
 * Allows pages of the configured origins, and no others, to read every response, problems included (docs/interface.md C1,
 * C2). A preflight is an ordinary OPTIONS request whose response has more headers. `reportRefused` is called for each request of another origin.
 * A reload replaces the list that `readOrigins` returns.
 */
export function createCorsPolicy(
  readOrigins: () => readonly string[],
  reportRefused: (request: IncomingHttpHeaders) => void,
): CorsPolicy {
  let origins = readOrigins()
  let policy = policyOf(origins, reportRefused)
  return (request) => {
    const now = readOrigins()
    if (now !== origins) {
      origins = now
      policy = policyOf(origins, reportRefused)
    }
    return policy(request)
  }
}

function policyOf(
  origins: readonly string[],
  reportRefused: (request: IncomingHttpHeaders) => void,
): CorsPolicy {
  const allowsAny = origins.includes('*')
  const base = allowsAny || origins.length === 0 ? noCorsHeaders : { vary: 'Origin' }
  return (request) => {
    const { origin } = request
    if (origin === undefined && !allowsAny) return base
    const allowed = allowsAny ? '*' : origins.find((configured) => configured === origin)
    if (allowed === undefined) {
      reportRefused(request)
      return base
    }
    const headers = {
      ...base,
      'access-control-allow-origin': allowed,
      'access-control-expose-headers': exposedHeaders.join(', '),
    }
    if (request['access-control-request-method'] === undefined) return headers
    const vary = [...Object.values(base), 'Access-Control-Request-Headers'].join(', ')
    return { ...headers, ...allowRequestedHeaders(request), vary }
  }
}

const emptyHead: readonly string[] = []

/** The headers as alternating names and values, without `Vary`: for responses whose own `Vary` includes it. */
export function corsHead(headers: ReturnType<CorsPolicy>): readonly string[] {
  // Most services have no other origins.
  if (headers === noCorsHeaders) return emptyHead
  const { vary, ...cors } = headers
  return Object.entries(cors).flat()
}

/** The most origins that are logged, because anybody can send any number of them. */
const maxLoggedOrigins = 10

/** Logs each refused origin once, because the browser shows the reason only to the developer of the page. Pages of the service itself have one of `ownOrigins`. */
export function createRefusalHint(
  ownOrigins: readonly string[],
  log: Pick<BaseLogger, 'warn'>,
): (request: IncomingHttpHeaders) => void {
  const known = new Set(ownOrigins)
  const most = known.size + maxLoggedOrigins
  return ({ origin = '', host = '' }) => {
    if (known.size >= most || known.has(origin) || !/^https?:\/\/[!-~]{1,255}$/.test(origin)) return
    // The gallery at an address other than the base URL.
    if (origin.endsWith(`//${host}`)) return
    known.add(origin)
    log.warn(
      { origin },
      'the browser does not let a page of this origin read responses; if the page is yours, add the origin to MEDIABUCKET_CORS_ORIGINS',
    )
  }
}

/** The value of `Vary`: the given names, and `Origin` where responses differ by origin. */
export const varyHeader = (origins: readonly string[], ...names: string[]): string =>
  [...(origins.length > 0 && !origins.includes('*') ? ['Origin'] : []), ...names].join(', ')
