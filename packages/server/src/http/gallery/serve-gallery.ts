import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BoundConfig } from '../../config/config.ts'
import { Fault } from '../../core/fault.ts'
import { acceptsCoding } from '../headers/accept-encoding.ts'
import { matchesWeakly } from '../headers/entity-tag.ts'
import { isSameHost } from '../media/media-host.ts'
import type { Gallery, GalleryFile } from './gallery-files.ts'
import { type GallerySignIn, signInRoute } from './sign-in-route.ts'

/**
 * Allows code from `assets` only, data from this origin and from those of the bytes, and nothing inline. The page itself
 * narrows `'self'` to its assets (packages/gallery/src/restrict-scripts.ts), since only the page knows its path.
 */
const contentSecurityPolicy = (assets: string, media: string, issuer: string): string =>
  [
    "default-src 'none'",
    `script-src ${assets}`,
    `style-src ${assets}`,
    `img-src 'self'${media}`,
    `media-src 'self'${media}`,
    `connect-src 'self'${media}${issuer}`,
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
  const media = hosts.map((origin) => (origin ? ` ${origin}` : '')).join('')
  const elsewhere = (issuer: string) => contentSecurityPolicy("'self'", media, issuer)
  if (!hasOwnAddress) return (_host, issuer) => elsewhere(issuer)
  const base = new URL(baseUrl)
  const assets = escapeSource(`${baseUrl}/assets/`)
  return (host, issuer) =>
    isSameHost(host, base) ? contentSecurityPolicy(assets, media, issuer) : elsewhere(issuer)
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

/** `/` and `/assets/{name}`: the gallery (docs/interface.md, Gallery). The OpenAPI document does not contain them. */
export function galleryRoutes(
  app: FastifyInstance,
  {
    gallery,
    settings,
    vary,
    signIn,
  }: { gallery: Gallery; settings: BoundConfig; vary: string; signIn: GallerySignIn | null },
): void {
  function serve(request: FastifyRequest, reply: FastifyReply, file: GalleryFile) {
    const accepted = request.headers['accept-encoding']
    const coding = (['br', 'gzip'] as const).find((name) => file[name] && acceptsCoding(accepted, name))
    const { bytes, etag } = (coding && file[coding]) ?? file.identity
    reply.headers({ etag, vary, ...(coding ? { 'content-encoding': coding } : {}) })
    const match = request.headers['if-none-match']
    if (match !== undefined && matchesWeakly(match, etag)) return reply.code(304).send()
    return reply.type(file.contentType).send(bytes)
  }

  const policyFor = createPolicy(settings)
  /** The page sends codes and refresh tokens to the issuer. */
  const issuerSource = () => {
    const metadata = signIn?.metadata()
    if (!metadata) return ''
    const { token_endpoint, revocation_endpoint = token_endpoint } = metadata
    const origins = [token_endpoint, revocation_endpoint].map((url) => ` ${new URL(url).origin}`)
    return [...new Set(origins)].join('')
  }
  app.get('/', (request, reply) => {
    reply.headers({
      ...pageHeaders,
      'content-security-policy': policyFor(request.headers.host ?? '', issuerSource()),
    })
    return serve(request, reply, gallery.page)
  })

  signInRoute(app, signIn)

  app.get<{ Params: { name: string } }>('/assets/:name', (request, reply) => {
    const file = gallery.assets.get(request.params.name)
    if (!file) throw new Fault('route-unknown', 'The service has no such path.')
    return serve(request, reply.headers(assetHeaders), file)
  })
}
