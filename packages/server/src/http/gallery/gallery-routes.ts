import type { ClientMetadata } from '../../access/issuer/discover.ts'
import type { BoundConfig } from '../../config/config.ts'
import { Fault } from '../../core/fault.ts'
import type { SignInSettings } from '../../core/issuer-settings.ts'
import type { HttpContext } from '../context.ts'
import { acceptsCoding } from '../headers/accept-encoding.ts'
import { matchesWeakly } from '../headers/entity-tag.ts'
import { isSameHost } from '../routing/media-host.ts'
import { type Exchange, type Reply, type Route, route } from '../routing/route.ts'
import type { Gallery, GalleryFile } from './gallery-files.ts'

/** The sign-in of people at the gallery with an issuer. */
export interface GallerySignIn extends SignInSettings {
  /** Null while the issuer has not been reached. */
  metadata(): ClientMetadata | null
}

/**
 * Allows code from `assets` only, data from this origin and from those of the bytes, and nothing inline. The page itself
 * narrows `'self'` to its assets (packages/gallery/src/restrict-scripts.ts), since only the page knows its path.
 */
const contentSecurityPolicy = (assets: string, bytesHosts: string, issuer: string): string =>
  [
    "default-src 'none'",
    `script-src ${assets}`,
    `style-src ${assets}`,
    `img-src 'self'${bytesHosts}`,
    `media-src 'self'${bytesHosts}`,
    `connect-src 'self'${bytesHosts}${issuer}`,
    "worker-src 'none'",
    "manifest-src 'none'",
    "object-src 'none'",
    "frame-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

/** Escapes the characters that end a path in a policy. */
const escapeSource = (url: string): string => url.replaceAll(';', '%3B').replaceAll(',', '%2C')

/** Returns a function from the requested host to the policy of the page. */
function createPolicy({
  baseUrl,
  hasOwnAddress,
  mediaBaseUrl,
  storeOrigin,
}: BoundConfig): (host: string, issuer: string) => string {
  const hosts = [mediaBaseUrl !== baseUrl && new URL(mediaBaseUrl).origin, storeOrigin]
  const bytesHosts = hosts.map((origin) => (origin ? ` ${origin}` : '')).join('')
  const elsewhere = (issuer: string) => contentSecurityPolicy("'self'", bytesHosts, issuer)
  if (!hasOwnAddress) return (_host, issuer) => elsewhere(issuer)
  const base = new URL(baseUrl)
  const assets = escapeSource(`${baseUrl}/assets/`)
  return (host, issuer) =>
    isSameHost(host, base) ? contentSecurityPolicy(assets, bytesHosts, issuer) : elsewhere(issuer)
}

const commonHeaders = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
}
const pageHeaders = {
  ...commonHeaders,
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
}
/** The names of assets contain a hash of their bytes. */
const assetHeaders = { ...commonHeaders, 'cache-control': 'public, max-age=31536000, immutable' }

/**
 * The gallery (docs/interface.md, Gallery): its page, its assets, and `/sign-in.json`, what the page needs to sign people in with the
 * issuer (G25). The OpenAPI document does not contain them.
 */
export function galleryRoutes(
  http: HttpContext,
  { page, assets }: Gallery,
  /** Null where people sign in with tokens only. */
  signIn: GallerySignIn | null,
): readonly Route[] {
  const policyFor = createPolicy(http.settings)
  const vary = http.vary('Accept-Encoding')

  function serveFile(
    { request }: Exchange,
    file: GalleryFile,
    more: Readonly<Record<string, string>>,
  ): Reply {
    const accepted = request.headers['accept-encoding']
    const coding = (['br', 'gzip'] as const).find((name) => file[name] && acceptsCoding(accepted, name))
    const { bytes, etag } = (coding && file[coding]) ?? file.identity
    const headers = { ...more, etag, vary, ...(coding ? { 'content-encoding': coding } : {}) }
    const match = request.headers['if-none-match']
    if (match !== undefined && matchesWeakly(match, etag)) return { status: 304, headers }
    return { status: 200, headers: { ...headers, 'content-type': file.contentType }, body: bytes }
  }

  async function servePage(exchange: Exchange): Promise<Reply> {
    const policy = policyFor(exchange.request.headers.host ?? '', issuerSource(signIn))
    return serveFile(exchange, page, { ...pageHeaders, 'content-security-policy': policy })
  }

  async function serveAsset(exchange: Exchange<'name'>): Promise<Reply> {
    const file = assets.get(exchange.params.name)
    if (!file) throw new Fault('route-unknown', 'The service has no such path.')
    return serveFile(exchange, file, assetHeaders)
  }

  async function describeSignIn(): Promise<Reply> {
    const headers = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
    return { status: 200, headers, json: { issuer: signIn && issuerObject(signIn) } }
  }

  return [
    route('GET', '/', null, servePage),
    route('GET', '/sign-in.json', null, describeSignIn),
    route('GET', '/assets/:name', null, serveAsset),
  ]
}

/** The origins of the issuer, to which the page sends codes and refresh tokens. */
function issuerSource(signIn: GallerySignIn | null): string {
  const metadata = signIn?.metadata()
  if (!metadata) return ''
  const { token_endpoint, revocation_endpoint = token_endpoint } = metadata
  const origins = [token_endpoint, revocation_endpoint].map((url) => ` ${new URL(url).origin}`)
  return [...new Set(origins)].join('')
}

const issuerObject = ({ name, clientId, scope, parameters, metadata }: GallerySignIn) => ({
  name,
  client_id: clientId,
  scope,
  parameters,
  metadata: metadata(),
})
