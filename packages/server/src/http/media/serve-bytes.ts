import { create } from 'content-disposition'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { OpenBlob } from '../../blobs/blobs.ts'
import type { Media } from '../../catalog/catalog.ts'
import { Fault } from '../../core/fault.ts'
import { parseVariant, type Variant, variantKey } from '../../core/variant.ts'
import type { OpenVariant, Variants } from '../../media/pictures/open-variant.ts'
import { parseByteRange } from '../headers/byte-range.ts'
import { matchesWeakly } from '../headers/entity-tag.ts'
import { checkPreconditions, rangeApplies } from '../headers/preconditions.ts'
import { exampleBase, type OperationDescription, routeOptions } from '../openapi/operation-description.ts'
import type { ResponseHeader } from '../openapi/response-headers.ts'
import { sampleMedia } from '../openapi/samples.ts'
import { BytesParams, BytesQuery } from '../openapi/schemas.ts'
import { deliveryOf } from './delivery.ts'
import { createByteSender } from './send-bytes.ts'

interface Parts {
  /** Finds the item for a name (`id` or `id.ext`). Throws Fault `media-unknown`. */
  readonly findByName: (name: string) => Promise<Media>
  readonly openBytes: (media: Media) => Promise<OpenBlob>
  readonly openVariant: Variants['open']
  /** Milliseconds. */
  readonly maxAge: number
  /** Counts errors that the storage caused. */
  readonly countStorageError: (error: unknown) => void
}

/** Forbids scripts and all external sources; allows inline styles, which SVG pictures need. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

/** Headers of every response, problems included (docs/interface.md B5). */
const headers = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'cross-origin',
  // The URL of an item grants access to it, so links in a PDF must not send it as their referrer.
  'referrer-policy': 'no-referrer',
  'content-security-policy': policy,
}

/** The route of every item's bytes. */
export const bytesPath = '/media/:name'

type Querystring = { variant?: unknown; download?: unknown }
type BytesRequest = FastifyRequest<{ Params: BytesParams; Querystring: Querystring }>

/** The representation that is sent of an item: its bytes or a variant (RFC 9110, section 3.2). */
interface Representation {
  readonly etag: string
  readonly contentType: string
  readonly filename: string | null
  readonly open: () => Promise<OpenVariant>
}

/** `GET` and `HEAD /media/{id}[.ext]`: the bytes or a variant (docs/interface.md, Bytes and Variants). */
export function serveBytesRoute(app: FastifyInstance, parts: Parts): void {
  const { findByName, openBytes, openVariant, maxAge, countStorageError } = parts
  const sendBytes = createByteSender()
  const cacheControl = `public, max-age=${Math.floor(maxAge / 1000)}, immutable`

  const representationOf = (media: Media, variant: Variant | null): Representation =>
    variant === null
      ? {
          etag: `"${contentKey(media)}"`,
          contentType: media.contentType,
          filename: media.filename,
          open: () => openBytes(media),
        }
      : {
          etag: `"${contentKey(media)}.${variantKey(variant)}"`,
          contentType: 'image/webp',
          filename: media.filename && `${media.filename.replace(/(?<=.)\.[^.]*$/, '')}.webp`,
          open: () => openVariant(media, variant),
        }

  async function serve(request: BytesRequest, reply: FastifyReply) {
    const variant = parseVariant(request.query.variant)
    const media = await findByName(request.params.name)
    const representation = representationOf(media, variant)
    const { contentType, isSandboxed, ...delivery } = deliveryOf(representation.contentType)
    const disposition = request.query.download === undefined ? delivery.disposition : 'attachment'
    if (!isSandboxed) reply.removeHeader('content-security-policy')
    // A cache must not give a download to a page that loads it as code (B10). Browsers do not run inline types.
    if (disposition === 'attachment') appendVary(reply, 'Sec-Fetch-Dest')

    const validators = { etag: representation.etag, lastModified: media.createdAt }
    reply.headers({
      etag: validators.etag,
      'last-modified': new Date(media.createdAt).toUTCString(),
      'cache-control': cacheControl,
    })
    // A missing variant meets no condition (RFC 9110, section 13.2.1). A client with its tag has received it before.
    const opened =
      variant === null || namesTag(request, representation.etag) ? null : await representation.open()
    const outcome = checkPreconditions(request.headers, validators)
    if (outcome !== 'proceed') await opened?.close()
    if (outcome === 'not-modified') return reply.code(304).send()
    if (outcome === 'failed')
      throw new Fault('precondition-failed', 'The current bytes do not meet the precondition.')

    reply.headers({
      'content-type': contentType,
      'content-disposition': create(representation.filename ?? undefined, { type: disposition }),
      'accept-ranges': 'bytes',
    })

    // The size of the bytes is in the row, so a range past their end needs no file.
    const size = opened?.size ?? media.size
    // RFC 9110, section 14.2: Range is defined for GET only.
    const hasRange =
      request.method === 'GET' && rangeApplies(request.headers['if-range']?.toString(), validators)
    const range = parseByteRange(hasRange ? request.headers.range : undefined, size)
    if (range === 'unsatisfiable') {
      await opened?.close()
      reply.header('content-range', `bytes */${size}`)
      throw new Fault('range-unsatisfiable', `The file has ${size} bytes; the range begins after them.`)
    }
    const blob = opened ?? (await representation.open())
    const { start, end } = range === 'whole' ? { start: 0, end: size - 1 } : range
    if (range !== 'whole') reply.code(206).header('content-range', `bytes ${start}-${end}/${size}`)
    reply.header('content-length', end - start + 1)
    if (request.method === 'HEAD' || size === 0) {
      await blob.close()
      return reply.send()
    }
    return sendBytes(reply, blob, start, end, countStorageError)
  }

  const { schema, config } = routeOptions(description)
  app.route<{ Params: BytesParams; Querystring: Querystring }>({
    method: ['GET', 'HEAD'],
    url: bytesPath,
    schema,
    config: { ...config, headers },
    handler: serve,
  })
}

function appendVary(reply: FastifyReply, name: string): void {
  const current = reply.getHeader('vary')
  reply.header('vary', current === undefined ? name : `${current}, ${name}`)
}

/** The hash of the bytes, which makes a strong entity tag; the id for an item without bytes. */
const contentKey = ({ sha256, id }: Media): string =>
  sha256 ? Buffer.from(sha256).toString('base64url') : id

/** Whether If-None-Match contains the tag; `*` does not count, since it matches tags that the client does not know. */
function namesTag({ headers }: BytesRequest, etag: string): boolean {
  const match = headers['if-none-match']
  return match !== undefined && match.trim() !== '*' && matchesWeakly(match, etag)
}

const embeddingHeaders: readonly ResponseHeader[] = [
  'Content-Security-Policy',
  'Cross-Origin-Resource-Policy',
  'Referrer-Policy',
]
const securityHeaders: readonly ResponseHeader[] = [...embeddingHeaders, 'X-Content-Type-Options']
const validatorHeaders: readonly ResponseHeader[] = ['ETag', 'Last-Modified', 'Cache-Control']
const fullHeaders: readonly ResponseHeader[] = [
  ...validatorHeaders,
  'Vary',
  'Content-Disposition',
  'Accept-Ranges',
  ...securityHeaders,
]

const description: OperationDescription = {
  operationId: 'serveBytes',
  tag: 'Bytes',
  summary: 'Get the bytes',
  description: `Returns the file byte for byte as it was sent. The id has 130 random bits, and the URL alone grants access.

Pictures, audio, video, PDF and plain text are served \`inline\`, all other types as an \`attachment\`. The extension of the
item is optional in the URL; any other extension returns 404.

With \`variant\` the response is a smaller picture of the file, as WebP without metadata, rendered at the first request. Items
without variants return 404.

With \`download\`, with any value, every type is served as an \`attachment\`, so that browsers save the file.`,
  rules: 'B1 to B11, V1 to V7',
  needs: 'nothing',
  path: BytesParams,
  query: BytesQuery,
  headers: ['Range', 'If-Range', 'If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'],
  responses: {
    200: { description: 'The whole file.', headers: fullHeaders, content: { '*/*': {} } },
    206: {
      description: 'The requested range.',
      headers: ['Content-Range', ...fullHeaders],
      content: { '*/*': {} },
    },
    308: {
      description: 'Another host serves the bytes (`MEDIABUCKET_MEDIA_BASE_URL`).',
      headers: ['Location', 'Cache-Control', 'Vary', ...embeddingHeaders],
    },
    304: {
      description: 'The bytes have not changed since the response with this tag.',
      headers: [...validatorHeaders, 'Vary', ...securityHeaders],
    },
  },
  problems: [
    'destination-refused',
    'variant-unknown',
    'media-unknown',
    'variant-unavailable',
    'precondition-failed',
    'range-unsatisfiable',
    'bytes-missing',
    'variants-busy',
    'catalog-busy',
  ],
  problemHeaders: embeddingHeaders,
  head: true,
  curl: `curl -OJ ${exampleBase}/media/${sampleMedia.id}.jpg`,
}
