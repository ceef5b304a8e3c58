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
  /** The item that a name (`id` or `id.ext`) stands for. Throws Fault `media-unknown`. */
  readonly findByName: (name: string) => Promise<Media>
  readonly openBytes: (media: Media) => Promise<OpenBlob>
  readonly openVariant: Variants['open']
  /** Milliseconds. */
  readonly maxAge: number
  /** Counts errors of the storage. */
  readonly countError: (error: unknown) => void
}

/** No script, no source; styles within the file alone, without which pictures in SVG lose their looks. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

/** On every answer, problems included (docs/interface.md B5). */
const headers = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'cross-origin',
  // The URL of an item is a capability: links in a PDF do not send it on.
  'referrer-policy': 'no-referrer',
  'content-security-policy': policy,
}

/** The route of every item's bytes. */
export const bytesPath = '/media/:name'

type Querystring = { variant?: unknown; download?: unknown }
type BytesRequest = FastifyRequest<{ Params: BytesParams; Querystring: Querystring }>

/** What is sent of an item: its bytes as they are, or a variant of them. */
interface Form {
  readonly etag: string
  readonly contentType: string
  readonly filename: string | null
  readonly open: () => Promise<OpenVariant>
}

/** `GET` and `HEAD /media/{id}[.ext]`: the bytes, or a variant of them (docs/interface.md, Bytes and Variants). */
export function serveBytesRoute(app: FastifyInstance, parts: Parts): void {
  const { findByName, openBytes, openVariant, maxAge, countError } = parts
  const sendBytes = createByteSender()
  const cacheControl = `public, max-age=${Math.floor(maxAge / 1000)}, immutable`

  const formOf = (media: Media, variant: Variant | null): Form =>
    variant === null
      ? {
          etag: `"${nameOf(media)}"`,
          contentType: media.contentType,
          filename: media.filename,
          open: () => openBytes(media),
        }
      : {
          etag: `"${nameOf(media)}.${variantKey(variant)}"`,
          contentType: 'image/webp',
          filename: media.filename && `${media.filename.replace(/(?<=.)\.[^.]*$/, '')}.webp`,
          open: () => openVariant(media, variant),
        }

  async function serve(request: BytesRequest, reply: FastifyReply) {
    const variant = parseVariant(request.query.variant)
    const media = await findByName(request.params.name)
    const form = formOf(media, variant)
    const { contentType, sandboxed, ...delivery } = deliveryOf(form.contentType)
    const disposition = request.query.download === undefined ? delivery.disposition : 'attachment'
    // PDF alone goes without the policy.
    if (!sandboxed) reply.removeHeader('content-security-policy')
    // A cache must not give a download to a page that loads it as code (B10). Browsers run no picture, audio or video.
    if (disposition === 'attachment') appendVary(reply, 'Sec-Fetch-Dest')

    const validators = { etag: form.etag, lastModified: media.createdAt }
    reply.headers({
      etag: validators.etag,
      'last-modified': new Date(media.createdAt).toUTCString(),
      'cache-control': cacheControl,
    })
    // What an item has no variant of meets no condition (RFC 9110, section 13.2.1); who knows its tag has had it.
    const opened = variant === null || namesTag(request, form.etag) ? null : await form.open()
    const verdict = checkPreconditions(request.headers, validators)
    if (verdict !== 'proceed') await opened?.close()
    if (verdict === 'not-modified') return reply.code(304).send()
    if (verdict === 'failed')
      throw new Fault('precondition-failed', 'The present bytes do not meet the precondition.')

    reply.headers({
      'content-type': contentType,
      'content-disposition': create(form.filename ?? undefined, { type: disposition }),
      'accept-ranges': 'bytes',
    })

    // Of the bytes themselves the row tells the size, so that a range past them needs no file.
    const size = opened?.size ?? media.size
    // RFC 9110, section 14.2: Range has a meaning for GET alone.
    const asked =
      request.method === 'GET' && rangeApplies(request.headers['if-range']?.toString(), validators)
    const range = parseByteRange(asked ? request.headers.range : undefined, size)
    if (range === 'unsatisfiable') {
      await opened?.close()
      reply.header('content-range', `bytes */${size}`)
      throw new Fault('range-unsatisfiable', `The file has ${size} bytes; the range lies past them.`)
    }
    const blob = opened ?? (await form.open())
    const { start, end } = range === 'whole' ? { start: 0, end: size - 1 } : range
    if (range !== 'whole') reply.code(206).header('content-range', `bytes ${start}-${end}/${size}`)
    reply.header('content-length', end - start + 1)
    if (request.method === 'HEAD' || size === 0) {
      await blob.close()
      return reply.send()
    }
    return sendBytes(reply, blob, start, end, countError)
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
  const present = reply.getHeader('vary')
  reply.header('vary', present === undefined ? name : `${present}, ${name}`)
}

/** From the bytes alone, so that an entity tag of it is strong; an item without bytes is known by its id. */
const nameOf = ({ sha256, id }: Media): string => (sha256 ? Buffer.from(sha256).toString('base64url') : id)

/** Whether If-None-Match names the tag itself; `*` names what exists, whatever it is. */
function namesTag({ headers }: BytesRequest, etag: string): boolean {
  const match = headers['if-none-match']
  return match !== undefined && match.trim() !== '*' && matchesWeakly(match, etag)
}

const embedding: readonly ResponseHeader[] = [
  'Content-Security-Policy',
  'Cross-Origin-Resource-Policy',
  'Referrer-Policy',
]
const safety: readonly ResponseHeader[] = [...embedding, 'X-Content-Type-Options']
const validators: readonly ResponseHeader[] = ['ETag', 'Last-Modified', 'Cache-Control']
const whole: readonly ResponseHeader[] = [
  ...validators,
  'Vary',
  'Content-Disposition',
  'Accept-Ranges',
  ...safety,
]

const description: OperationDescription = {
  operationId: 'serveBytes',
  tag: 'Bytes',
  summary: 'Fetch the bytes',
  description: `The file, byte for byte as it was sent. The id holds 130 random bits: whoever has the URL may fetch it.

Pictures, audio, video, PDF and plain text are served \`inline\`; every other type as an \`attachment\`. The address with the
item's own extension and the one without are the same; any other extension is a 404.

With \`variant\` the answer is a smaller picture of the file, as WebP without metadata, made when it is first asked for. Items
that cannot be pictured answer 404.

With \`download\`, whatever its value, every type is served as an \`attachment\`, so that browsers save the file.`,
  rules: 'B1 to B11, V1 to V7',
  needs: 'nothing',
  path: BytesParams,
  query: BytesQuery,
  headers: ['Range', 'If-Range', 'If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'],
  responses: {
    200: { description: 'The whole file.', headers: whole, content: { '*/*': {} } },
    206: {
      description: 'The range that was asked for.',
      headers: ['Content-Range', ...whole],
      content: { '*/*': {} },
    },
    308: {
      description: 'The bytes are served by another host (`MEDIABUCKET_MEDIA_BASE_URL`).',
      headers: ['Location', 'Cache-Control', 'Vary', ...embedding],
    },
    304: { description: 'The client has these bytes.', headers: [...validators, 'Vary', ...safety] },
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
  problemHeaders: embedding,
  head: true,
  curl: `curl -OJ ${exampleBase}/media/${sampleMedia.id}.jpg`,
}
