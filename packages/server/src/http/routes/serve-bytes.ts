import { create } from 'content-disposition'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { OpenBlob } from '../../blobs/blobs.ts'
import type { Media } from '../../catalog/catalog.ts'
import { parseByteRange } from '../../core/byte-range.ts'
import { deliveryOf } from '../../core/delivery.ts'
import { Fault } from '../../core/fault.ts'
import { checkPreconditions, rangeApplies } from '../../core/preconditions.ts'
import { serveBytes as description } from '../descriptions/serve-bytes.ts'
import { described } from '../openapi/description.ts'
import type { BytesParams } from '../schemas.ts'

interface Parts {
  /** The item that a name (`id` or `id.ext`) stands for. Throws Fault `media-unknown`. */
  readonly findByName: (name: string) => Promise<Media>
  readonly openBytes: (media: Media) => Promise<OpenBlob>
  /** Milliseconds. */
  readonly maxAge: number
}

/** No script, no source; styles within the file alone, without which pictures in SVG lose their looks. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

type BytesRequest = FastifyRequest<{ Params: BytesParams }>

/** `GET` and `HEAD /media/{id}[.ext]`: the bytes (docs/interface.md, Bytes). */
export function serveBytesRoute(app: FastifyInstance, parts: Parts): void {
  const { findByName, openBytes, maxAge } = parts
  const cacheControl = `public, max-age=${Math.floor(maxAge / 1000)}, immutable`

  async function serve(request: BytesRequest, reply: FastifyReply) {
    // On every answer, problems included (B5); PDF alone goes without the policy.
    reply.headers({
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'cross-origin',
      'content-security-policy': policy,
    })
    const media = await findByName(request.params.name)
    const { contentType, disposition, sandboxed } = deliveryOf(media.contentType)
    if (!sandboxed) reply.removeHeader('content-security-policy')

    const validators = { etag: tagOf(media), lastModified: media.createdAt }
    reply.headers({
      etag: validators.etag,
      'last-modified': new Date(media.createdAt).toUTCString(),
      'cache-control': cacheControl,
    })
    const verdict = checkPreconditions(request.headers, validators)
    if (verdict === 'not-modified') return reply.code(304).send()
    if (verdict === 'failed')
      throw new Fault('precondition-failed', 'The present bytes do not meet the precondition.')

    reply.headers({
      'content-type': contentType,
      'content-disposition': create(media.filename ?? undefined, { type: disposition }),
      'accept-ranges': 'bytes',
    })

    // RFC 9110, section 14.2: Range has a meaning for GET alone.
    const asked =
      request.method === 'GET' && rangeApplies(request.headers['if-range']?.toString(), validators)
    const range = parseByteRange(asked ? request.headers.range : undefined, media.size)
    if (range === 'unsatisfiable') {
      reply.header('content-range', `bytes */${media.size}`)
      throw new Fault('range-unsatisfiable', `The file has ${media.size} bytes; the range lies past them.`)
    }
    const blob = await openBytes(media)
    const { start, end } = range === 'whole' ? { start: 0, end: media.size - 1 } : range
    if (range !== 'whole') reply.code(206).header('content-range', `bytes ${start}-${end}/${media.size}`)
    reply.header('content-length', end - start + 1)
    if (request.method === 'HEAD' || media.size === 0) {
      await blob.close()
      return reply.send()
    }
    return reply.send(blob.stream(start, end))
  }

  app.route<{ Params: BytesParams }>({
    method: ['GET', 'HEAD'],
    url: '/media/:name',
    ...described(description),
    handler: serve,
  })
}

/** Strong, from the bytes alone; an item without bytes is known by its id. */
const tagOf = ({ sha256, id }: Media): string =>
  `"${sha256 ? Buffer.from(sha256).toString('base64url') : id}"`
