import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { acceptsCoding } from '../../core/accepts-coding.ts'
import { matchesWeakly } from '../../core/entity-tag.ts'
import { Fault } from '../../core/fault.ts'
import type { Gallery, GalleryFile } from '../gallery-files.ts'

/** Everything from this origin, and nothing from within the page itself. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "media-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const shared = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
}
const pageHeaders = {
  ...shared,
  'cache-control': 'no-cache',
  'content-security-policy': policy,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
}
/** Their names hold a hash of their bytes. */
const assetHeaders = { ...shared, 'cache-control': 'public, max-age=31536000, immutable' }

/** `/` and `/assets/{name}`: the page for people (docs/interface.md, Gallery). */
export function galleryRoutes(
  app: FastifyInstance,
  { gallery, vary }: { gallery: Gallery; vary: string },
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

  app.get('/', (request, reply) => serve(request, reply.headers(pageHeaders), gallery.page))

  app.get<{ Params: { name: string } }>('/assets/:name', (request, reply) => {
    const file = gallery.assets.get(request.params.name)
    if (!file) throw new Fault('route-unknown', 'The service has no such path.')
    return serve(request, reply.headers(assetHeaders), file)
  })
}
