import { shortNameOf, withoutName } from '../core/address-names.ts'
import { BucketVariants } from '../core/bucket-pictures.ts'
import { itemUnknown } from '../core/faults.ts'
import { type ItemId, isItemId } from '../core/ids.ts'
import { allVariants } from '../core/item-urls.ts'
import { TickBatch } from '../core/tasks.ts'
import type { NegotiatedFormat } from '../core/variant-sizes.ts'
import {
  isVariantWait,
  readSelection,
  type Variant,
  type VariantList,
  type VariantSelection,
} from '../core/variants.ts'
import type { HttpContext } from '../http/context.ts'
import { corsHead } from '../http/cors.ts'
import { createFormatChoice } from '../http/headers.ts'
import { createWholeWriter, endWithShared } from '../http/response-writers.ts'
import { type Exchange, type Route, route } from '../http/route.ts'
import type { OpenVariant } from '../pictures/rendered-variants.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Servability } from '../storage/catalog/records.ts'
import { closeWhenSent, createBodyPreparer, wholeLength } from './bytes-body.ts'
import type { CachedBytes, CachedBytesOperations } from './bytes-cache.ts'
import {
  type BytesOperations,
  type BytesRequest,
  BytesResponder,
  type HeadOf,
  hasConditions,
  type PreparedHead,
} from './bytes-response.ts'
import * as openapi from './bytes-routes.openapi.ts'
import { createDownloadRecorder, type DownloadedItem, type DownloadLog } from './download-log.ts'
import { linkOf } from './private-access.ts'
import { problemHeaders } from './representation.ts'

/** `GET /media/{id}[.ext]` (docs/interface.md, Bytes and Variants). */
export function bytesRoutes(
  http: HttpContext,
  operations: BytesOperations & CachedBytesOperations,
  /** Null where downloads are not recorded. */
  downloadLog: DownloadLog | null,
): readonly Route[] {
  const { catalog, settings, addresses, corsHeaders, metrics, log, usage } = http
  const variants = new BucketVariants(settings)
  const formatFor = createFormatChoice()
  const { servability } = catalog
  const cached = createCachedResponses({
    cachedBytes: operations.cachedBytes,
    servability,
    variants: variants.service,
    formatFor,
  })
  const openCached = batchCached(cached)
  const recordDownload = downloadLog && createDownloadRecorder(downloadLog, addresses.wholeOfRequest)
  const prepareBody = createBodyPreparer((err, requestId) => {
    metrics.storage.countError(err)
    log.error({ requestId, err }, 'a response was aborted')
  })
  const responder = new BytesResponder(http, operations, {
    variants,
    formatFor,
    headOf: cached.headOf,
    recordDownload,
    prepareBody,
  })
  const writeWhole = createWholeWriter()

  function sendCached({ request, response, id }: Exchange, found: CachedResponse): void {
    const { head, bytes, blob, variant } = found
    const isHead = request.method === 'HEAD'
    cached.countRequest(found.id, variant)
    usage.countRequest(found.item.bucketId, 'download', isHead ? 0 : bytes.length)
    if (recordDownload !== null && !isHead)
      recordDownload({ id, request }, found.item, { variant, access: null })
    const cors = corsHead(corsHeaders(request.headers))
    try {
      if (isHead) response.writeHead(200, [...cors, ...head]).end()
      else if (cors.length > 0) endWithShared(response.writeHead(200, [...cors, ...head]), bytes)
      else writeWhole(request, response, head, bytes)
    } finally {
      // Closing frees only the memory of long bytes.
      if (bytes.length > wholeLength) closeWhenSent(response, blob)
      else void blob.close()
    }
  }

  const serveBytes = (exchange: Exchange<'name'>) => serve(exchange, exchange.params.name, null)

  /** The name is not a part of what a signature covers, so that it can be added to any URL, and be left out. */
  function serveNamedBytes(exchange: Exchange<'name' | 'filename'>): Promise<null> {
    const { name, filename } = exchange.params
    const short = shortNameOf(name, filename)
    if (short === null) throw itemUnknown()
    return serve(exchange, short, withoutName(exchange.request.url ?? '', short, http.urls.extensions))
  }

  /** `shortTarget` is the target of the request without the name, null if it has none. */
  async function serve(exchange: Exchange, name: string, shortTarget: string | null): Promise<null> {
    const { id, request, response, line, query } = exchange
    const { headers } = request
    const { wait } = query
    const isDownload = query['download'] !== undefined
    const isNamed = shortTarget !== null
    const link = isNamed
      ? linkOf(shortTarget, shortTarget.slice('/media/'.length).replace(/\?.*$/s, ''))
      : linkOf(request.url ?? '', name)
    const choosesSize = link === null || (link !== 'malformed' && link.variant === allVariants)
    const selection = choosesSize ? readSelection(query) : { name: query['variant'] }
    const isHead = request.method === 'HEAD'
    const sent = { id, request, line, isHead, name, selection, wait, isDownload, link, isNamed }
    const found = isPlain(sent) ? await openCached(sent) : null
    if (found !== null) {
      sendCached(exchange, found)
      return null
    }
    const { status, head, write } = await responder.respond(sent)
    response.writeHead(status, [...corsHead(corsHeaders(headers)), ...head])
    if (write) write(response)
    else response.end()
    return null
  }

  const options = { headers: problemHeaders, kind: 'download', servesBytes: true } as const
  return [
    route('GET', '/media/:name', openapi.serveBytes, serveBytes, options),
    route('GET', '/media/:name/:filename', openapi.serveNamedBytes, serveNamedBytes, options),
  ]
}

/** Whether the response has all bytes, and depends only on the name, the variant and its format. */
const isPlain = ({ link, isDownload, isNamed, wait, request: { headers } }: BytesRequest): boolean =>
  link === null &&
  !isNamed &&
  !isDownload &&
  isVariantWait(wait) &&
  headers.range === undefined &&
  !hasConditions(headers)

/** A request that waits for the end of the event-loop tick. */
interface WaitingRequest {
  readonly sent: BytesRequest
  readonly resolve: (found: CachedResponse | null) => void
}

/**
 * Returns a function that opens the cached response to a request; null if it is not cached, or may not be sent. Requests of one tick
 * read their rows in one transaction, after the last of them has arrived: each response is correct for the time of its request.
 */
function batchCached(cached: CachedResponses): (sent: BytesRequest) => Promise<CachedResponse | null> {
  /** The variants of a styled item are those of its bucket and its focus, not those of the service. */
  const isSendable = ({ variant }: CachedResponse, state: Servability | undefined) =>
    state === 'servable' || (state === 'styled' && variant === null)

  async function openAll(requests: readonly WaitingRequest[]): Promise<void> {
    const found: { readonly response: CachedResponse; readonly resolve: WaitingRequest['resolve'] }[] = []
    for (const { sent, resolve } of requests) {
      const response = cached.open(sent.name, sent.selection, sent.request.headers.accept)
      if (response === null) resolve(null)
      else found.push({ response, resolve })
    }
    if (found.length === 0) return
    // Null if the catalog cannot be read: then the response to each request finds the error.
    const states = await cached.servability(found.map(({ response }) => response.id)).catch(() => null)
    for (const [index, { response, resolve }] of found.entries()) {
      const state = states?.[index]
      if (isSendable(response, state)) {
        resolve(response)
        continue
      }
      void response.blob.close()
      if (state === 'not') cached.remove(response.id)
      resolve(null)
    }
  }

  const waiting = new TickBatch<WaitingRequest>((requests) => void openAll(requests))
  return (sent) => new Promise((resolve) => waiting.add({ sent, resolve }))
}

/** The measured memory of the headers of a response, for as long as its bytes are in memory. Bytes. */
export const headersMemory = 900

/** A response that may be sent if its item is servable. */
interface CachedResponse {
  readonly id: ItemId
  readonly item: DownloadedItem
  readonly variant: Variant | null
  readonly head: string[]
  /** They have `headRoom` in front of them. */
  readonly bytes: Uint8Array
  /** Must be closed. */
  readonly blob: OpenVariant
}

/** The responses to plain requests for cached bytes: building their headers costs more than everything else. */
export interface CachedResponses {
  /**
   * `name` is an id with or without an extension. Null if the bytes or their headers are not in memory, or if
   * the service has no such variant, or the item another extension. `accept` chooses the format of a variant.
   */
  open(name: string, selection: VariantSelection, accept?: string): CachedResponse | null
  /** For each id, whether its cached response can be sent now: the response to a later request needs another call. */
  readonly servability: Catalog['servability']
  /** Counts a request to which a cached response is sent. */
  readonly countRequest: CachedBytes['countRequest']
  /** Removes the bytes of an item that is not servable. */
  readonly remove: CachedBytes['remove']
  readonly headOf: HeadOf
}

export function createCachedResponses(parts: {
  readonly cachedBytes: CachedBytes
  readonly servability: Catalog['servability']
  readonly variants: Pick<VariantList, 'find' | 'nameOf'>
  readonly formatFor: (accept: string | undefined) => NegotiatedFormat
}): CachedResponses {
  const { cachedBytes, servability, variants, formatFor } = parts
  /** For as long as the bytes are in memory. */
  const heads = new WeakMap<Uint8Array, PreparedHead>()

  return {
    open(name, selection, accept) {
      const variantName = variants.nameOf(selection)
      const dot = name.indexOf('.')
      const id = dot < 0 ? name : name.slice(0, dot)
      const variant =
        typeof variantName === 'string'
          ? variants.find(variantName, formatFor(accept))
          : variantName === undefined
            ? null
            : undefined
      if (variant === undefined || !isItemId(id)) return null
      const blob = cachedBytes.open(id, variant)
      if (blob === null) return null
      const bytes = blob.content.type === 'bytes' ? blob.content.bytes : null
      const prepared = bytes && heads.get(bytes)
      const hasExtension = dot < 0 || name.slice(dot + 1) === prepared?.extension
      if (bytes && prepared && hasExtension && isSameSize(prepared.variant, variant))
        return { id, item: prepared.item, variant, head: prepared.head, bytes, blob }
      void blob.close()
      return null
    },
    servability,
    countRequest: cachedBytes.countRequest,
    remove: cachedBytes.remove,
    headOf(bytes, filename, variant, build) {
      const prepared = heads.get(bytes)
      if (prepared && prepared.item.filename === filename && isSameSize(prepared.variant, variant))
        return prepared
      const built = build()
      heads.set(bytes, built)
      return built
    },
  }
}

/** Whether responses with these variants, whose bytes are equal, have the same headers. */
const isSameSize = (one: Variant | null, other: Variant | null): boolean =>
  one?.name === other?.name && one?.isNegotiated === other?.isNegotiated
