import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { create } from 'content-disposition'
import { signatureInvalid } from '../../access/verify-link.ts'
import type { Media } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import type { SendFile } from '../../core/send-file.ts'
import type { Variant, VariantFormat, VariantList } from '../../core/variant.ts'
import type { OpenVariant, Variants } from '../../media/pictures/open-variant.ts'
import { parseByteRange } from '../headers/byte-range.ts'
import type { CorsPolicy } from '../headers/cors.ts'
import { matchesWeakly } from '../headers/entity-tag.ts'
import { checkPreconditions, rangeApplies, type Validators } from '../headers/preconditions.ts'
import { RangeFault } from '../headers/range-fault.ts'
import type { CachedResponses } from './cached-responses.ts'
import { deliveryOf } from './delivery.ts'
import { handOver } from './hand-over.ts'
import type { BodyPreparer, BodyWriter } from './prepare-body.ts'
import type { AccessCheck, PrivateAccess, SentLink } from './private-access.ts'

export interface BytesParts extends Pick<CachedResponses, 'headOf'> {
  /** Finds the item for a name (`id` or `id.ext`); null if there is none. */
  readonly findByName: (name: string) => Promise<Media | null>
  /** For items that are not public, and requests with a signature. */
  readonly checkAccess: AccessCheck
  readonly openBytes: (media: Media) => Promise<OpenVariant>
  readonly openVariant: Variants['open']
  readonly variants: Pick<VariantList, 'parse'>
  readonly formatFor: (accept: string | undefined) => VariantFormat
  readonly prepareBody: BodyPreparer
  /** Milliseconds. */
  readonly maxAge: number
  /** Who sends large items; null where the service does. */
  readonly sendFile: SendFile | null
  /** The values of `Vary`; the first may be empty. */
  readonly vary: { readonly inline: string; readonly attachment: string; readonly variant: string }
}

/** The parts of a request that determine the response. */
interface BytesRequest {
  readonly id: string
  readonly isHead: boolean
  readonly name: string
  readonly variant: unknown
  readonly isDownload: boolean
  readonly link: SentLink
  readonly raw: IncomingMessage
}

/** A response that can begin: its first bytes have been read. */
export interface BytesResponse {
  readonly status: 200 | 206 | 302 | 304
  /** The headers as alternating names and values, the form that Node writes fastest. */
  readonly head: string[]
  /** Null where no bytes are sent. Must be called once. */
  readonly write: BodyWriter | null
}

/** Throws Fault. */
export type BytesResponder = (request: BytesRequest) => Promise<BytesResponse>

/** Forbids scripts and all external sources; allows inline styles, which SVG pictures need. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

const embeddingHeaders = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'cross-origin',
  // The URL of an item grants access to it, so links in a PDF must not send it as their referrer.
  'referrer-policy': 'no-referrer',
}
const sandboxHeaders = { ...embeddingHeaders, 'content-security-policy': policy }

const acceptRanges = ['accept-ranges', 'bytes']

/** Headers of every problem (docs/interface.md B5). */
export const problemHeaders: Readonly<Record<string, string>> = sandboxHeaders

/** The representation that is sent of an item: its bytes or a variant (RFC 9110, section 3.2). */
interface Representation {
  readonly validators: Validators
  /** The headers of every success. */
  readonly common: string[]
  /** The first of them (docs/interface.md B5). */
  readonly security: readonly string[]
  /** The further headers of responses with bytes, except those of ranges and of the length. */
  readonly content: readonly string[]
  readonly contentType: string
  readonly contentDisposition: string
  readonly cacheControl: string
  /** Milliseconds for which others may send the bytes instead of the service; null for any time. */
  readonly validFor: number | null
}

/** A token can be revoked. Milliseconds. */
const tokenHandOver = 60_000

/** Responds to `GET` and `HEAD /media/{id}[.ext]` (docs/interface.md, Bytes and Variants). */
export function createBytesResponder(parts: BytesParts): BytesResponder {
  const { findByName, checkAccess, openBytes, openVariant, variants, formatFor, headOf, prepareBody } = parts
  const { sendFile, vary } = parts
  const maxAge = Math.floor(parts.maxAge / 1000)
  const publicCaching = { cacheControl: `public, max-age=${maxAge}, immutable`, validFor: null }
  // A cache asks each time, so that it does not keep an item that has expired (E2).
  const expiringCaching = { cacheControl: 'public, no-cache', validFor: null }
  const inlineVary = vary.inline === '' ? [] : ['vary', vary.inline]

  /** How long a response may be used after its request (docs/interface.md H4). */
  function cachingOf({ expiresAt }: Media, access: PrivateAccess | null) {
    if (access === null) return expiresAt == null ? publicCaching : expiringCaching
    if (access.by === 'token') return { cacheControl: 'private, no-cache', validFor: tokenHandOver }
    const end = Math.min(access.expires, Math.floor((expiresAt ?? Number.POSITIVE_INFINITY) / 1000))
    const left = Math.max(0, end - Math.ceil(Date.now() / 1000))
    return { cacheControl: `private, max-age=${Math.min(maxAge, left)}, immutable`, validFor: left * 1000 }
  }

  function describe(
    media: Media,
    variant: Variant | null,
    isDownload: boolean,
    access: PrivateAccess | null,
  ): Representation {
    const { sha256, id, filename: name } = media
    const key = sha256 ? Buffer.from(sha256).toString('base64url') : id
    const etag = variant === null ? `"${key}"` : `"${key}.${variant.key}"`
    const filename =
      variant === null ? name : name && `${name.replace(/(?<=.)\.[^.]*$/, '')}.${variant.format}`
    const { contentType, disposition, isSandboxed } = deliveryOf(
      variant === null ? media.contentType : `image/${variant.format}`,
    )
    const type = isDownload ? 'attachment' : disposition
    const contentDisposition = create(filename ?? undefined, { type })
    const security = Object.entries(isSandboxed ? sandboxHeaders : embeddingHeaders).flat()
    const caching = cachingOf(media, access)
    return {
      ...{ contentType, contentDisposition, ...caching, security },
      validators: { etag, lastModified: media.createdAt },
      common: [
        ...security,
        ...varyOf(variant, type, access?.by === 'token'),
        ...['etag', etag],
        ...['last-modified', new Date(media.createdAt).toUTCString()],
        ...['cache-control', caching.cacheControl],
      ],
      content: ['content-type', contentType, 'content-disposition', contentDisposition],
    }
  }

  function varyOf(variant: Variant | null, type: string, hasToken: boolean): readonly string[] {
    // A cache must not give a download to a page that loads it as code (B10). Browsers do not run inline types.
    const values = [
      ...(hasToken ? ['Authorization'] : []),
      ...(type === 'attachment' ? [vary.attachment] : []),
      ...(variant === null ? [] : [vary.variant]),
    ]
    if (values.length === 0) return inlineVary
    return ['vary', (hasToken && vary.inline !== '' ? [vary.inline, ...values] : values).join(', ')]
  }

  async function fullResponse(
    blob: OpenVariant,
    { extension, filename }: Media,
    { id, isHead }: Pick<BytesRequest, 'id' | 'isHead'>,
    describeIt: () => Representation,
    isPublic: boolean,
  ) {
    const build = () => {
      const { common, content } = describeIt()
      const head = [...common, ...content, ...acceptRanges, 'content-length', `${blob.size}`]
      return { head, extension, filename }
    }
    const { head } =
      isPublic && blob.content.type === 'bytes' ? headOf(blob.content.bytes, filename, build) : build()
    return { status: 200, head, write: await bodyOf(blob, isHead, 0, blob.size - 1, id) } as const
  }

  async function bodyOf(blob: OpenVariant, isHead: boolean, start: number, end: number, id: string) {
    if (!isHead && end >= start) return prepareBody(blob, start, end, id)
    await blob.close()
    return null
  }

  return async ({ id, isHead, name, variant: variantText, isDownload, link, raw }) => {
    const { headers } = raw
    if (link === 'malformed') throw signatureInvalid()
    const variant = variants.parse(variantText, formatFor(headers.accept))
    const found = await findByName(name)
    const isPublic = found !== null && !found.isPrivate && link === null
    const { media, access } = isPublic
      ? { media: found, access: null }
      : await checkAccess(found, { id, raw, link })
    const open = () => (variant === null ? openBytes(media) : openVariant(media, variant))
    const canHandOver = sendFile !== null && !isHead && variant === null && !hasConditions(headers)
    if (!isDownload && headers.range === undefined && !hasConditions(headers)) {
      const blob = await open()
      const describeIt = () => describe(media, variant, false, access)
      const handedOver = canHandOver && (await handOver(sendFile, blob, describeIt))
      return handedOver
        ? { ...handedOver, write: null }
        : fullResponse(blob, media, { id, isHead }, describeIt, isPublic)
    }

    const representation = describe(media, variant, isDownload, access)
    const { validators, common, content } = representation
    // A missing variant meets no condition (RFC 9110, section 13.2.1). A client with its tag has received it before.
    const opened = variant === null || namesTag(headers, validators.etag) ? null : await open()
    const outcome = checkPreconditions(headers, validators)
    if (outcome !== 'proceed') await opened?.close()
    if (outcome === 'not-modified') return { status: 304, head: common, write: null }
    if (outcome === 'failed')
      throw new Fault('precondition-failed', 'The current bytes do not meet the precondition.')

    // The size of the bytes is in the row, so a range past their end needs no file.
    const size = opened?.size ?? media.size
    // RFC 9110, section 14.2: Range is defined for GET only.
    const hasRange = !isHead && rangeApplies(headers['if-range']?.toString(), validators)
    const range = parseByteRange(hasRange ? headers.range : undefined, size)
    if (range === 'unsatisfiable') {
      await opened?.close()
      throw new RangeFault(size)
    }
    const blob = opened ?? (await open())
    // A proxy would evaluate conditions too, but against the time of the file.
    const handedOver = canHandOver && (await handOver(sendFile, blob, () => representation))
    if (handedOver) return { ...handedOver, write: null }
    const { start, end } = range === 'whole' ? { start: 0, end: size - 1 } : range
    const part = range === 'whole' ? [] : ['content-range', `bytes ${start}-${end}/${size}`]
    return {
      status: range === 'whole' ? 200 : 206,
      head: [...common, ...content, ...acceptRanges, ...part, 'content-length', `${end - start + 1}`],
      write: await bodyOf(blob, isHead, start, end, id),
    }
  }
}

/** The CORS headers of a response whose own `Vary` includes that of CORS. */
export const corsHead = ({ vary, ...cors }: ReturnType<CorsPolicy>): string[] => Object.entries(cors).flat()

/** Begins the response, with the CORS headers of its request. */
export function sendBytes(
  response: ServerResponse,
  { status, head, write }: BytesResponse,
  cors: ReturnType<CorsPolicy>,
): void {
  response.writeHead(status, [...corsHead(cors), ...head])
  if (write) write(response)
  else response.end()
}

export const hasConditions = (headers: IncomingHttpHeaders): boolean =>
  headers['if-none-match'] !== undefined ||
  headers['if-modified-since'] !== undefined ||
  headers['if-match'] !== undefined ||
  headers['if-unmodified-since'] !== undefined

/** Whether If-None-Match contains the tag; `*` does not count, since it matches tags that the client does not know. */
function namesTag(headers: IncomingHttpHeaders, etag: string): boolean {
  const match = headers['if-none-match']
  return match !== undefined && match.trim() !== '*' && matchesWeakly(match, etag)
}
