import { BucketVariants } from '../core/bucket-pictures.ts'
import { mediaUrl } from '../core/item-urls.ts'
import type { Variant } from '../core/variants.ts'
import { type BodyWriter, createBodyPreparer } from '../downloads/bytes-body.ts'
import type { CachedBytesOperations } from '../downloads/bytes-cache.ts'
import { createDownloadRecorder, type DownloadLog } from '../downloads/download-log.ts'
import type { PrivateAccess } from '../downloads/private-access.ts'
import { deliveryOf, inertHeaders } from '../downloads/representation.ts'
import type { HttpContext } from '../http/context.ts'
import {
  checkPreconditions,
  createFormatChoice,
  parseByteRange,
  rangeApplies,
  type Validators,
} from '../http/headers.ts'
import type { StoredObject } from '../objects/object-operations.ts'
import type { ObjectPart } from '../objects/object-types.ts'
import type { OpenVariant } from '../pictures/rendered-variants.ts'
import type { BucketId, Item } from '../storage/catalog/records.ts'
import { checksumHeader } from './object-body.ts'
import { headOfObject, readOverrides, urlMetadata } from './object-headers.ts'
import { unlessReplaced } from './replaced-objects.ts'
import { S3Error } from './s3-errors.ts'
import type { S3Request } from './s3-request.ts'

/** A part of an object: its first and its last byte, both inclusive. `parts` is the number of parts, if the request names one. */
interface SentBytes {
  readonly start: number
  readonly end: number
  readonly isPartial: boolean
  readonly parts: number | null
  /** Of these bytes, if they are a part; of the algorithm of the checksum of the object. */
  readonly checksum?: string
}

/** Responds to GetObject and HeadObject (docs/interface.md SP8). */
export class ObjectResponder {
  readonly #http: HttpContext
  readonly #bytes: Pick<CachedBytesOperations, 'openBytes' | 'openVariant'>
  readonly #record: ReturnType<typeof createDownloadRecorder> | null
  readonly #prepareBody: ReturnType<typeof createBodyPreparer>
  readonly #variants: BucketVariants
  readonly #formatFor = createFormatChoice()

  constructor(
    http: HttpContext,
    bytes: Pick<CachedBytesOperations, 'openBytes' | 'openVariant'>,
    downloadLog: DownloadLog | null,
  ) {
    this.#http = http
    this.#bytes = bytes
    this.#variants = new BucketVariants(http.settings)
    this.#record = downloadLog && createDownloadRecorder(downloadLog, http.addresses.wholeOfRequest)
    this.#prepareBody = createBodyPreparer((err, requestId) => {
      http.metrics.storage.countError(err)
      http.log.error({ requestId, err }, 'a response was aborted')
    })
  }

  /**
   * Sends the object that `find` returns; one that is replaced before its bytes are open is found again (docs/interface.md OK2). `access` is null for an object
   * that everybody may read. Throws S3Error, Fault, and what `find` throws.
   */
  async send(
    request: S3Request,
    bucketId: BucketId,
    find: () => Promise<{ readonly object: StoredObject<Item> }>,
    access: PrivateAccess | null,
  ): Promise<void> {
    await unlessReplaced(find, ({ object }) => this.#sendObject(request, bucketId, object, access))
  }

  async #sendObject(
    request: S3Request,
    bucketId: BucketId,
    object: StoredObject<Item>,
    access: PrivateAccess | null,
  ): Promise<void> {
    const { headers, method } = request.request
    const isHead = method === 'HEAD'
    const { pictures, focus } = object.item
    const selection = { name: request.parameter('variant') }
    const variant = this.#variants.of(pictures).parse(selection, this.#formatFor(headers.accept), focus)
    const replaced = readOverrides(request)
    const etag = variant === null ? `"${object.etag}"` : `"${object.etag}.${variant.key}"`
    // Of a variant it is unknown (V4).
    const validators = { etag, lastModified: variant === null ? object.lastModified : null }
    requireConditions(request, validators)

    // The size is in the row, so that a range past the end opens nothing.
    let blob = variant === null ? null : await this.#open(object, variant)
    const size = blob?.size ?? object.item.size
    const sent = await closeIfThrown(blob, () =>
      sentBytes(request, variant === null ? object : { parts: null }, size, validators),
    )
    const { response } = request
    const head = this.#headOf(request, object, { variant, replaced, sent, etag, size })
    if (isHead || sent.end < sent.start) {
      await blob?.close()
      this.#http.usage.countRequest(bucketId, 'download')
      response.writeHead(sent.isPartial ? 206 : 200, head)
      response.end()
      return
    }
    blob ??= await this.#open(object, null)
    const range = sent.isPartial ? { range: `${sent.start}-${sent.end}` } : {}
    const write: BodyWriter = await this.#prepareBody(blob, sent.start, sent.end, request.id, (bytes) =>
      this.#http.usage.countBytes(bucketId, bytes),
    )
    this.#http.usage.countRequest(bucketId, 'download')
    this.#record?.(request, { ...object.item, bucketId }, { variant, access, ...range })
    response.writeHead(sent.isPartial ? 206 : 200, head)
    write(response)
  }

  #open({ item }: StoredObject<Item>, variant: Variant | null): Promise<OpenVariant> {
    return variant === null ? this.#bytes.openBytes(item) : this.#bytes.openVariant(item, variant, null)
  }

  #headOf(
    request: S3Request,
    object: StoredObject,
    about: {
      readonly variant: Variant | null
      readonly replaced: ReturnType<typeof readOverrides>
      readonly sent: SentBytes
      readonly etag: string
      readonly size: number
    },
  ): string[] {
    const { variant, replaced, sent, etag, size } = about
    const { item, headers, lastModified } = object
    const isPublic = request.signing === 'none'
    const own = headers.contentType ?? item.contentType
    const type = variant === null ? (replaced.contentType ?? own) : `image/${variant.format}`
    const shown = {
      ...headers,
      ...replaced,
      ...inert(request, type, replaced.contentDisposition ?? headers.contentDisposition),
    }
    // A cache asks each time, so that it does not keep an object that is replaced or no longer public.
    if (isPublic) shown.cacheControl = 'public, no-cache'
    const { start, end, isPartial, parts } = sent
    const vary = variant?.isNegotiated ? this.#http.vary('Accept') : this.#http.vary()
    return [
      ...inertHeaders(type),
      ...['content-type', type, 'etag', etag],
      ...(variant === null ? ['last-modified', new Date(lastModified).toUTCString()] : []),
      ...['accept-ranges', 'bytes'],
      ...(isPartial ? ['content-range', `bytes ${start}-${end}/${size}`] : []),
      ...(parts === null ? [] : ['x-amz-mp-parts-count', `${parts}`]),
      ...headOfObject(variant === null ? shown : { metadata: headers.metadata, ...cacheOf(shown) }),
      // Not in the response to a GET: programs compare the metadata of what they read with those that they sent. Not for everybody who has a URL: the media URL
      // is valid when that of the object no longer is.
      ...(request.request.method === 'HEAD' && !request.isUrl
        ? [urlMetadata, mediaUrl(this.#http.urls, item.id, item.extension)]
        : []),
      ...(variant === null ? checksumHead(request, object, sent) : []),
      ...(vary === '' ? [] : ['vary', vary]),
      // The last one: Node decodes a Content-Disposition that comes after it as UTF-8, and writes it as Latin-1.
      ...['content-length', `${end - start + 1}`],
    ]
  }
}

const cacheOf = ({ cacheControl }: { cacheControl?: string }) =>
  cacheControl === undefined ? {} : { cacheControl }

/** A page that a browser opens by a URL is a download, if its type could be active. */
function inert(
  request: S3Request,
  type: string,
  disposition: string | undefined,
): { contentDisposition?: string } {
  if (!request.isUrl || deliveryOf(type).disposition === 'inline') return {}
  if (disposition !== undefined && /^attachment\b/i.test(disposition.trim())) return {}
  const name = /;.*$/s.exec(disposition ?? '')?.[0] ?? ''
  return { contentDisposition: `attachment${name}` }
}

function checksumHead(
  request: S3Request,
  { headers: { checksum } }: StoredObject,
  { isPartial, checksum: ofPart }: SentBytes,
): string[] {
  const value = isPartial ? ofPart : checksum?.value
  if (checksum === undefined || value === undefined) return []
  if (request.header('x-amz-checksum-mode')?.toUpperCase() !== 'ENABLED') return []
  return [checksumHeader(checksum.algorithm), value, 'x-amz-checksum-type', checksum.type]
}

/** Clients of S3 may leave the quotes of an entity tag out. */
export const quoted = (tags: string | undefined): string | undefined =>
  tags === undefined || tags.includes('"') || tags.trim() === '*' ? tags : `"${tags.trim()}"`

/** Throws S3Error `NotModified` and `PreconditionFailed`. */
function requireConditions({ request: { headers } }: S3Request, validators: Validators): void {
  const { lastModified } = validators
  const outcome = checkPreconditions(
    {
      'if-match': quoted(headers['if-match']),
      'if-none-match': quoted(headers['if-none-match']),
      'if-modified-since': headers['if-modified-since'],
      'if-unmodified-since': headers['if-unmodified-since'],
    },
    validators,
  )
  if (outcome === 'failed') throw new S3Error('PreconditionFailed')
  if (outcome === 'not-modified')
    throw new S3Error('NotModified', undefined, {
      etag: validators.etag,
      ...(lastModified !== null && { 'last-modified': new Date(lastModified).toUTCString() }),
    })
}

/** Throws S3Error `InvalidRange` and `InvalidPart`. */
function sentBytes(
  request: S3Request,
  { parts }: Pick<StoredObject, 'parts'>,
  size: number,
  validators: Validators,
): SentBytes {
  const { headers } = request.request
  const number = request.parameter('partNumber')
  if (number !== undefined) {
    if (headers.range !== undefined)
      throw new S3Error('InvalidRequest', 'A request has partNumber or Range, not both.')
    return bytesOfPart(readPartNumber(number), parts, size)
  }
  const applies = rangeApplies(headers['if-range']?.toString(), validators)
  const range = parseByteRange(applies ? headers.range : undefined, size)
  if (range === 'unsatisfiable')
    throw new S3Error('InvalidRange', undefined, { 'content-range': `bytes */${size}` })
  return range === 'whole'
    ? { start: 0, end: size - 1, isPartial: false, parts: null }
    : { ...range, isPartial: true, parts: null }
}

/** Throws S3Error `InvalidArgument`. */
export function readPartNumber(text: string | undefined): number {
  const number = /^\d{1,5}$/.test(text ?? '') ? Number(text) : 0
  if (number < 1 || number > 10_000)
    throw new S3Error('InvalidArgument', 'partNumber must be a number from 1 to 10000.')
  return number
}

function bytesOfPart(number: number, parts: readonly ObjectPart[] | null, size: number): SentBytes {
  const all = parts ?? [{ size }]
  const part = all[number - 1]
  if (part === undefined) throw new S3Error('InvalidPart', 'The object has no such part.')
  const start = all.slice(0, number - 1).reduce((sum, each) => sum + each.size, 0)
  return {
    ...{ start, end: start + part.size - 1, isPartial: part.size > 0 },
    parts: parts === null ? null : parts.length,
    ...(part.checksum !== undefined && { checksum: part.checksum }),
  }
}

async function closeIfThrown<T>(blob: OpenVariant | null, work: () => T): Promise<T> {
  try {
    return work()
  } catch (error) {
    await blob?.close()
    throw error
  }
}
