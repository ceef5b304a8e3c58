import type { IncomingHttpHeaders } from 'node:http'
import { signatureInvalid, type VerifyLink } from '../access/signed-links.ts'
import type { BucketVariants } from '../core/bucket-pictures.ts'
import { Fault } from '../core/faults.ts'
import { mediaUrl, type UrlSettings } from '../core/item-urls.ts'
import type { SendFile } from '../core/storage-urls.ts'
import { essenceOf } from '../core/stored-type.ts'
import type { NegotiatedFormat } from '../core/variant-sizes.ts'
import { parseVariantWait, type Variant, type VariantSelection, type VariantWait } from '../core/variants.ts'
import type { HttpContext } from '../http/context.ts'
import {
  checkPreconditions,
  HeaderFault,
  matchesWeakly,
  parseByteRange,
  rangeApplies,
} from '../http/headers.ts'
import type { RequestParts } from '../http/route.ts'
import type { UsageCounter } from '../http/usage-log.ts'
import type { findByNameOperation } from '../items/item-operations.ts'
import { VariantPending } from '../pictures/picture-queue.ts'
import type { OpenVariant } from '../pictures/rendered-variants.ts'
import type { Item } from '../storage/catalog/records.ts'
import type { BodyPreparer, BodyWriter } from './bytes-body.ts'
import type { CachedBytesOperations } from './bytes-cache.ts'
import type { DownloadedItem, DownloadRecorder, Sender } from './download-log.ts'
import { createAccessCheck, type PrivateAccess, type SentLink } from './private-access.ts'
import { describeRepresentation, problemHeaders, type Representation } from './representation.ts'

/** The operations that these routes call. */
export interface BytesOperations extends Omit<CachedBytesOperations, 'cachedBytes'> {
  readonly findByName: ReturnType<typeof findByNameOperation>
  readonly verifyLink: VerifyLink
}

/** The headers of a response with all bytes, as alternating names and values. */
export interface PreparedHead {
  readonly head: string[]
  readonly extension: string | null
  readonly item: DownloadedItem
  /** Sizes whose pictures are equal share their bytes, but neither the name nor `Vary`. */
  readonly variant: Variant | null
}

/** Returns the headers of these bytes in memory, which `build` creates unless those in memory have this filename and this size. */
export type HeadOf = (
  bytes: Uint8Array,
  filename: string | null,
  variant: Variant | null,
  build: () => PreparedHead,
) => PreparedHead

/** What the responses to plain requests share with others. */
interface SharedParts {
  readonly headOf: HeadOf
  readonly variants: BucketVariants
  readonly formatFor: (accept: string | undefined) => NegotiatedFormat
  /** Null if downloads are not recorded. */
  readonly recordDownload: DownloadRecorder | null
  readonly prepareBody: BodyPreparer
}

/** The parts of HttpContext that determine the responses. */
interface BytesContext extends Pick<HttpContext, 'vary' | 'authorize' | 'usage'> {
  readonly urls: UrlSettings
  readonly settings: Pick<HttpContext['settings'], 'sendfile' | 'mediaMaxAge'>
}

/** The parts of a request that determine the response. */
export interface BytesRequest extends RequestParts {
  readonly isHead: boolean
  /** An id with or without an extension. */
  readonly name: string
  readonly selection: VariantSelection
  readonly wait: unknown
  readonly isDownload: boolean
  readonly link: SentLink
  /** Whether the URL has a name, so that the response names the short one. */
  readonly isNamed: boolean
}

/** A response that can begin: its first bytes have been read. */
interface BytesResponse {
  readonly status: 200 | 202 | 206 | 302 | 304
  /** The headers as alternating names and values, the form that Node writes fastest. */
  readonly head: string[]
  /** Null where no bytes are sent. Must be called once. */
  readonly write: BodyWriter | null
  /** Who sends the bytes. */
  readonly sentBy?: Sender
  /** The range that is sent, such as `0-99`; left out for all bytes. */
  readonly range?: string
}

/** An item that the client may read. */
interface Target {
  readonly item: Item
  readonly variant: Variant | null
  readonly wait: VariantWait
  readonly access: PrivateAccess | null
}

/** The client may ask again after a second. An empty picture is an error for an `<img>`, which a placeholder would not be (V17). */
const pendingHead = [
  ...Object.entries(problemHeaders).flat(),
  ...['cache-control', 'no-store', 'retry-after', '1', 'content-length', '0'],
]

const acceptRanges = ['accept-ranges', 'bytes']

/** Responds to `GET` and `HEAD /media/{id}[.ext]` (docs/interface.md, Bytes and Variants). */
export class BytesResponder {
  readonly #operations: BytesOperations
  readonly #shared: SharedParts
  readonly #sendFile: SendFile | null
  readonly #usage: UsageCounter
  readonly #urls: UrlSettings
  readonly #checkAccess: ReturnType<typeof createAccessCheck>
  readonly #describe: ReturnType<typeof describeRepresentation>

  constructor(
    { vary, authorize, usage, settings, urls }: BytesContext,
    operations: BytesOperations,
    shared: SharedParts,
  ) {
    this.#operations = operations
    this.#shared = shared
    this.#usage = usage
    this.#urls = urls
    this.#sendFile = settings.sendfile
    this.#checkAccess = createAccessCheck({ verifyLink: operations.verifyLink, authorize })
    this.#describe = describeRepresentation({
      maxAge: settings.mediaMaxAge,
      vary: { inline: vary(), attachment: vary('Sec-Fetch-Dest'), variant: vary('Accept') },
    })
  }

  /** Throws Fault. */
  async respond(sent: BytesRequest): Promise<BytesResponse> {
    const { recordDownload } = this.#shared
    const { isHead } = sent
    const target = await this.#findTarget(sent)
    const { item, variant, access } = target
    this.#usage.countRequest(item.bucketId, 'download')
    try {
      const found = await this.#respondWith(sent, target)
      const response = sent.isNamed
        ? { ...found, head: [...this.#canonicalOf(target), ...found.head] }
        : found
      if (recordDownload !== null && !isHead && response.status !== 304)
        recordDownload(sent, item, { ...response, variant, access })
      return response
    } catch (error) {
      if (!(error instanceof VariantPending)) throw error
      return { status: 202, head: pendingHead, write: null }
    }
  }

  /** The short URL of what a response has (docs/interface.md B13). Nothing of it is as the client has sent it. */
  #canonicalOf({ item: { id, extension }, variant }: Target): readonly string[] {
    const url = mediaUrl(this.#urls, id, extension)
    return ['link', `<${url}${variant === null ? '' : `?variant=${variant.name}`}>; rel="canonical"`]
  }

  /** The item and its variant, by the sizes of its bucket. Throws Fault. */
  async #findTarget({
    id,
    request,
    line,
    name,
    link,
    selection,
    wait: sentWait,
  }: BytesRequest): Promise<Target> {
    const { variants, formatFor } = this.#shared
    if (link === 'malformed') throw signatureInvalid()
    const format = formatFor(request.headers.accept)
    const wait = parseVariantWait(sentWait)
    const find = () => this.#operations.findByName(name)
    const isPublic = ({ pictures }: Item) => variants.of(pictures).isPublic(selection)
    const { item, access } = await this.#checkAccess(find, { id, request, line, link }, isPublic).catch(
      (error: unknown) => {
        // Unknown names get the same response for an item that the caller may not read as for no item.
        if (link === null) variants.service.parse(selection, format)
        throw error
      },
    )
    const variant = variants.of(item.pictures).parse(selection, format, item.focus)
    return { item, variant, wait, access }
  }

  async #respondWith(request: BytesRequest, target: Target): Promise<BytesResponse> {
    const { id, isHead, isDownload, link } = request
    const { headers } = request.request
    const { item, variant, wait, access } = target
    const { openBytes, openVariant } = this.#operations
    const open = () => (variant === null ? openBytes(item) : openVariant(item, variant, wait))
    const sendFile = this.#sendFile
    const canHandOver = sendFile !== null && !isHead && variant === null && !hasConditions(headers)
    if (!isDownload && headers.range === undefined && !hasConditions(headers)) {
      const blob = await open()
      const describeIt = () => this.#describe(item, variant, false, access)
      const handedOver = canHandOver && (await handOver(sendFile, blob, describeIt))
      if (handedOver) {
        this.#usage.countBytes(item.bucketId, item.size)
        return { ...handedOver, write: null }
      }
      return this.#fullResponse(blob, target, { id, isHead }, describeIt, link === null)
    }

    const representation = this.#describe(item, variant, isDownload, access)
    const { validators, common, content } = representation
    // Conditions are not evaluated for a missing variant (RFC 9110, section 13.2.1). If the client sends the tag of the variant, the
    // variant exists, because the client has received it before.
    const opened = variant === null || namesTag(headers, validators.etag) ? null : await open()
    const outcome = checkPreconditions(headers, validators)
    if (outcome !== 'proceed') await opened?.close()
    if (outcome === 'not-modified') return { status: 304, head: common, write: null }
    if (outcome === 'failed')
      throw new Fault('precondition-failed', 'The current bytes do not meet the precondition.')

    // The size of the bytes is in the row, so a range past their end needs no file.
    const size = opened?.size ?? item.size
    // RFC 9110, section 14.2: Range is defined for GET only.
    const hasRange = !isHead && rangeApplies(headers['if-range']?.toString(), validators)
    const range = parseByteRange(hasRange ? headers.range : undefined, size)
    if (range === 'unsatisfiable') {
      await opened?.close()
      throw rangeUnsatisfiable(size)
    }
    const blob = opened ?? (await open())
    // A proxy would evaluate conditions too, but against the time of the file.
    const handedOver = canHandOver && (await handOver(sendFile, blob, () => representation))
    const { start, end } = range === 'whole' ? { start: 0, end: size - 1 } : range
    const sentRange = range === 'whole' ? {} : { range: `${start}-${end}` }
    if (handedOver) {
      this.#usage.countBytes(item.bucketId, end - start + 1)
      return { ...handedOver, ...sentRange, write: null }
    }
    const part = range === 'whole' ? [] : ['content-range', `bytes ${start}-${end}/${size}`]
    return {
      ...sentRange,
      status: range === 'whole' ? 200 : 206,
      head: [...common, ...content, ...acceptRanges, ...part, 'content-length', `${end - start + 1}`],
      write: await this.#bodyOf(blob, item, { id, isHead }, start, end),
    }
  }

  async #fullResponse(
    blob: OpenVariant,
    { item, variant, access }: Target,
    request: Pick<BytesRequest, 'id' | 'isHead'>,
    describeIt: () => Representation,
    isPlain: boolean,
  ): Promise<BytesResponse> {
    const { id, bucketId, size, extension, filename } = item
    const build = () => {
      const { common, content } = describeIt()
      const head = [...common, ...content, ...acceptRanges, 'content-length', `${blob.size}`]
      return { head, extension, variant, item: { id, bucketId, size, filename } }
    }
    const { head } =
      isPlain && access === null && blob.content.type === 'bytes'
        ? this.#shared.headOf(blob.content.bytes, filename, variant, build)
        : build()
    return { status: 200, head, write: await this.#bodyOf(blob, item, request, 0, blob.size - 1) }
  }

  async #bodyOf(
    blob: OpenVariant,
    { bucketId }: Pick<Item, 'bucketId'>,
    { id, isHead }: Pick<BytesRequest, 'id' | 'isHead'>,
    start: number,
    end: number,
  ) {
    const onSent = (bytes: number) => this.#usage.countBytes(bucketId, bytes)
    if (!isHead && end >= start) return this.#shared.prepareBody(blob, start, end, id, onSent)
    await blob.close()
    return null
  }
}

/** A range that begins after the end of the bytes (docs/interface.md B3). */
const rangeUnsatisfiable = (size: number) =>
  new HeaderFault('range-unsatisfiable', `The file has ${size} bytes; the range begins after them.`, {
    'content-range': `bytes */${size}`,
  })

export const hasConditions = (headers: IncomingHttpHeaders): boolean =>
  headers['if-none-match'] !== undefined ||
  headers['if-modified-since'] !== undefined ||
  headers['if-match'] !== undefined ||
  headers['if-unmodified-since'] !== undefined

/** Whether If-None-Match contains the tag; `*` does not count, since it matches every tag, not only those of earlier responses. */
function namesTag(headers: IncomingHttpHeaders, etag: string): boolean {
  const match = headers['if-none-match']
  return match !== undefined && match.trim() !== '*' && matchesWeakly(match, etag)
}

/** Milliseconds for which signed URLs are valid. Clients of a proxy may read slowly, and it fetches an object in several requests. */
const lifetime = { redirect: 3_600_000, proxy: 86_400_000 }
/** The service sends the bytes itself if they may be sent for a shorter time, because a signed URL of the store can be half as old. */
const leastLifetime = 10_000

/** A response without a body: a proxy or the store sends it. */
interface HandedOver {
  readonly status: 200 | 302
  readonly head: string[]
  readonly sentBy: 'proxy' | 'store'
}

/**
 * Leaves the body, and the range, to a proxy or to the store (docs/interface.md B12). Closes the blob then. Null if the service sends the
 * bytes.
 */
async function handOver(
  sendFile: SendFile,
  blob: Pick<OpenVariant, 'content' | 'close'>,
  describe: () => Representation,
): Promise<HandedOver | null> {
  const { content } = blob
  if (content.type === 'bytes') return null
  const own = describe()
  const { contentType, contentDisposition, cacheControl } = own

  async function leave(status: 200 | 302, head: readonly string[]): Promise<HandedOver> {
    await blob.close()
    return { status, head: [...head, 'content-length', '0'], sentBy: status === 302 ? 'store' : 'proxy' }
  }

  const head = [...own.common, ...own.content]
  if (content.type === 'file') {
    const { path } = content
    if (sendFile.header === 'x-sendfile') return leave(200, [...head, sendFile.header, path])
    if (sendFile.header !== 'x-accel-redirect') return null
    // The last two parts are `shard/id`.
    const location = [sendFile.prefix, ...path.split('/').slice(-2)].join('/')
    return leave(200, [...head, sendFile.header, location])
  }
  if (sendFile.header === 'x-accel-redirect') {
    const { pathname, search } = new URL(await content.signUrl(null, lifetime.proxy))
    return leave(200, [...head, sendFile.header, `${sendFile.prefix}${pathname}${search}`])
  }
  if (sendFile.header !== 'location' || !isNeverCode(contentType)) return null
  // An even number of seconds, because the store counts seconds and equal URLs are signed for half of the lifetime.
  const redirectLifetime = Math.floor(Math.min(lifetime.redirect, own.validFor ?? Infinity) / 2_000) * 2_000
  if (redirectLifetime < leastLifetime) return null
  const url = await content.signUrl({ contentType, contentDisposition, cacheControl }, redirectLifetime)
  return leave(302, [...own.security, 'cache-control', 'no-store', 'location', url])
}

/**
 * Types that browsers neither run nor display as a document with links, also without `nosniff` and a policy, which a store cannot send
 * (Fetch, "Should response to request be blocked due to its MIME type?").
 */
const isNeverCode = (contentType: string): boolean =>
  /^(audio|image|video)\/(?!svg)/.test(essenceOf(contentType))
