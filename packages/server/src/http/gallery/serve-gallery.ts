import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../core/fault.ts'
import { acceptsCoding } from '../headers/accept-encoding.ts'
import { matchesWeakly } from '../headers/entity-tag.ts'
import { sameHost } from '../media/media-host.ts'
import type { Gallery, GalleryFile } from './gallery-files.ts'

/**
 * Nothing from within the page itself, code from `assets` alone, data from this origin and that of the bytes. The page
 * narrows `'self'` to its assets once it runs (packages/gallery/src/restrict-scripts.ts), since only it knows where it is.
 */
const policyOf = (assets: string, media: string): string =>
  [
    "default-src 'none'",
    `script-src ${assets}`,
    `style-src ${assets}`,
    `img-src 'self'${media}`,
    `media-src 'self'${media}`,
    `connect-src 'self'${media}`,
    "worker-src 'none'",
    "manifest-src 'none'",
    "object-src 'none'",
    "frame-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

interface Addresses {
  readonly baseUrl: string
  /** The base URL is configured, and does not follow host and port. */
  readonly hasOwnAddress: boolean
  readonly mediaBaseUrl: string | null
}

/** In a policy `;` and `,` end a path. */
const source = (url: string): string => url.replaceAll(';', '%3B').replaceAll(',', '%2C')

/** The policy for a page that is requested from this host. */
function createPolicy({ baseUrl, hasOwnAddress, mediaBaseUrl }: Addresses): (host: string) => string {
  const media = mediaBaseUrl === null ? '' : ` ${new URL(mediaBaseUrl).origin}`
  const anywhere = policyOf("'self'", media)
  if (!hasOwnAddress) return () => anywhere
  const base = new URL(baseUrl)
  const atBase = policyOf(source(`${baseUrl}/assets/`), media)
  return (host) => (sameHost(host, base) ? atBase : anywhere)
}

const shared = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
}
const pageHeaders = {
  ...shared,
  'cache-control': 'no-cache',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
}
/** Their names hold a hash of their bytes. */
const assetHeaders = { ...shared, 'cache-control': 'public, max-age=31536000, immutable' }

/** `/` and `/assets/{name}`: the page for people (docs/interface.md, Gallery). */
export function galleryRoutes(
  app: FastifyInstance,
  { gallery, settings, vary }: { gallery: Gallery; settings: Addresses; vary: string },
): void {
  function serve(request: FastifyRequest, reply: FastifyReply, file: GalleryFile) {
    const accepted = request.headers['accept-encoding']
    const coding = (['br', 'gzip'] as const).find((name) => file[name] && acceptsCoding(accepted, name))
    const { bytes, etag } = (coding && file[coding]) ?? file.plain
    reply.headers({ etag, vary, ...(coding ? { 'content-encoding': coding } : {}) })
    const match = request.headers['if-none-match']
    if (match !== undefined && matchesWeakly(match, etag)) return reply.code(304).send()
    return reply.type(file.contentType).send(bytes)
  }

  const policyFor = createPolicy(settings)
  app.get('/', (request, reply) => {
    reply.headers({ ...pageHeaders, 'content-security-policy': policyFor(request.headers.host ?? '') })
    return serve(request, reply, gallery.page)
  })

  app.get<{ Params: { name: string } }>('/assets/:name', (request, reply) => {
    const file = gallery.assets.get(request.params.name)
    if (!file) throw new Fault('route-unknown', 'The service has no such path.')
    return serve(request, reply.headers(assetHeaders), file)
  })
}
