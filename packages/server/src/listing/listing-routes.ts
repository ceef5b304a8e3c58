import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTick } from 'node:timers/promises'
import type { SignLinks } from '../access/signed-links.ts'
import { completedForReads } from '../access/token-operations.ts'
import { listingPaths, parsePageNumber } from '../core/page.ts'
import { requireScope } from '../core/token-rules.ts'
import type { AuthorizationVerifier } from '../http/authorizer.ts'
import type { HttpContext } from '../http/context.ts'
import { corsHead } from '../http/cors.ts'
import {
  acceptsCoding,
  bucketHeader,
  fingerprintOf,
  matchesWeakly,
  namedBucket,
  requireAuthorization,
} from '../http/headers.ts'
import type { RequestLimits } from '../http/limits.ts'
import type { RequestLine } from '../http/request-log.ts'
import { createTextWriter, createWholeWriter } from '../http/response-writers.ts'
import { type Exchange, type Route, route } from '../http/route.ts'
import type { UsageCounter } from '../http/usage-log.ts'
import { listState } from '../storage/catalog/buckets.ts'
import type { BucketId, Grant } from '../storage/catalog/records.ts'
import * as openapi from './listing-routes.openapi.ts'
import type { Listing, ListPage, PageBody } from './pages.ts'

/** `GET /api/media` (docs/interface.md, Listing). */
export function listingRoutes(http: HttpContext, operations: ListingOperations): readonly Route[] {
  const respondToListing = coalesceRequests(http, createListingResponder(http, operations))
  const writeWhole = createWholeWriter()
  const writeText = createTextWriter()

  async function list({ request, response, line, query }: Exchange): Promise<null> {
    const { headers } = request
    const asked = {
      page: query['page'],
      authorization: requireAuthorization(request),
      bucket: namedBucket(request),
      acceptEncoding: headers['accept-encoding'],
      ifNoneMatch: headers['if-none-match'],
    }
    const { status, head, body } = await respondToListing(asked, line)
    const cors = corsHead(http.corsHeaders(headers))
    const isHead = request.method === 'HEAD'
    const whole = body?.whole ?? null
    if (whole === null || isHead || cors.length > 0) {
      response.writeHead(status, cors.length === 0 ? head : [...cors, ...head])
      if (body === null || isHead) response.end()
      else if (whole !== null) response.end(whole)
      else await writeBody(response, body)
    } else if (typeof whole === 'string') writeText(request, response, head, whole)
    else writeWhole(request, response, head, whole)
    return null
  }

  return listingPaths.map((path) => route('GET', path, openapi.listMedia, list, { kind: 'list' }))
}

/** Bytes that one response writes in one event-loop tick: a fast client would receive megabytes before others are served. */
const bytesPerTick = 256 * 1024

/** Writes the chunks as the client reads them; stops without an error when the connection closes. */
export async function writeBody(
  response: ServerResponse,
  { chunks }: Pick<PageBody, 'chunks'>,
): Promise<void> {
  const closed = new AbortController()
  response.once('close', () => closed.abort())
  const { signal } = closed
  try {
    let written = 0
    for (const chunk of chunks()) {
      if (!response.write(chunk)) await once(response, 'drain', { signal })
      written += chunk.length
      if (written < bytesPerTick) continue
      written = 0
      await nextTick(undefined, { signal })
    }
    response.end()
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** A request by its parts that determine the response. */
export interface CallersRequest extends ListingRequest {
  readonly authorization: string
  /** The header Mediabucket-Bucket. */
  readonly bucket: string | undefined
}

/** Whether both requests get the same response. */
const areIdentical = (one: CallersRequest, other: CallersRequest): boolean =>
  one.page === other.page &&
  one.authorization === other.authorization &&
  one.bucket === other.bucket &&
  one.acceptEncoding === other.acceptEncoding &&
  one.ifNoneMatch === other.ifNoneMatch

// A response is correct for every request that arrived before its data were read, and for no later one. So identical
// requests are collected during one event-loop tick, and the data are read after it. No result is kept for later requests.

/** The requests of one tick with the same Authorization header, and the same bucket if they name one, whose token is verified once. */
interface RequestsOfCaller {
  readonly grant: Promise<Grant>
  readonly groups: Group[]
}

/** Identical requests of one caller: all accepted ones get the same response. */
interface Group {
  readonly request: CallersRequest
  response: Promise<ListingResponse> | null
}

/**
 * Returns a function that verifies each token once in an event-loop tick, and calls `respondToListing` once for identical
 * requests. It adds the token to the line of every request, also of one that is refused afterwards.
 */
export function coalesceRequests(
  {
    verifyAuthorization,
    limits: { countToken },
    usage,
  }: {
    readonly verifyAuthorization: AuthorizationVerifier
    readonly limits: Pick<RequestLimits, 'countToken'>
    readonly usage: Pick<UsageCounter, 'countRequest'>
  },
  respondToListing: ListingResponder,
): (request: CallersRequest, line: Pick<RequestLine, 'token'>) => Promise<ListingResponse> {
  /** The callers of the current tick by Authorization header, and bucket. */
  let callers: Map<string, RequestsOfCaller> | null = null
  let tickEnd = Promise.resolve()

  function startTick() {
    tickEnd = new Promise((resolve) => {
      setImmediate(() => {
        // Later requests start a new tick.
        callers = null
        resolve()
      })
    })
    return new Map<string, RequestsOfCaller>()
  }

  async function verifyAfter(
    end: Promise<void>,
    { authorization, bucket }: Pick<CallersRequest, 'authorization' | 'bucket'>,
  ): Promise<Grant> {
    await end
    const verify = () => verifyAuthorization(authorization, bucket)
    return await completedForReads(await verify(), verify)
  }

  async function respond(grant: Grant, request: CallersRequest): Promise<ListingResponse> {
    requireScope(grant, 'media:read')
    return await respondToListing(grant, request)
  }

  function callerOf(request: CallersRequest): RequestsOfCaller {
    callers ??= startTick()
    const { authorization, bucket } = request
    // A header has no line feed.
    const key = bucket === undefined ? authorization : `${authorization}\n${bucket}`
    const existing = callers.get(key)
    if (existing) return existing
    const caller = { grant: verifyAfter(tickEnd, request), groups: [] }
    callers.set(key, caller)
    return caller
  }

  function groupOf({ groups }: RequestsOfCaller, request: CallersRequest): Group {
    const existing = groups.find((group) => areIdentical(group.request, request))
    if (existing) return existing
    const group = { request, response: null }
    groups.push(group)
    return group
  }

  return async (request, line) => {
    const caller = callerOf(request)
    const group = groupOf(caller, request)
    const grant = await caller.grant
    line.token = grant.tokenId
    const refusal = countToken(grant.tokenId)
    if (refusal) throw refusal
    usage.countRequest(grant.bucketId, 'list')
    group.response ??= respond(grant, request)
    return await group.response
  }
}

/** The operations that these routes call. */
interface ListingOperations {
  readonly listPage: ListPage
  /** For buckets whose pages list signed URLs. */
  readonly signLinks: SignLinks
}

/** Part of every entity tag. Increase it when the format of pages changes. */
const formatVersion = 1

/** The parts of HttpContext that determine the responses. */
export interface ListingContext extends Pick<HttpContext, 'urls' | 'vary'> {
  readonly settings: Pick<HttpContext['settings'], 'envelope'>
  readonly catalog: Pick<HttpContext['catalog'], 'epoch'>
}

/** The parts of a request that determine the response to a listing. */
interface ListingRequest {
  /** The parameter `page` as sent. */
  readonly page: unknown
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** A 200 with a page, or a 304 without a body. */
export interface ListingResponse {
  readonly status: 200 | 304
  /** The headers as alternating names and values, the form that Node writes fastest. */
  readonly head: string[]
  readonly body: PageBody | null
}

/** Creates the response for a caller whose token has been verified for this request. */
export type ListingResponder = (
  grant: Pick<Grant, 'bucketId' | 'revision' | 'expired' | 'signsPages'>,
  request: ListingRequest,
) => Promise<ListingResponse>

/** Responds to `GET /api/media` (docs/interface.md, Listing). The responder throws Fault for an invalid request. */
export function createListingResponder(
  { urls, vary, settings: { envelope }, catalog: { epoch } }: ListingContext,
  /** `signLinks` is for buckets whose pages list signed URLs. */
  { listPage, signLinks }: ListingOperations,
): ListingResponder {
  const { baseUrl, mediaBaseUrl, extensions, links: linkStyle } = urls
  const varyHeader = vary('Authorization', bucketHeader, 'Accept-Encoding')
  const commonHeaders = ['cache-control', 'private, no-cache', 'vary', varyHeader]

  /** Identifies what determines all pages: the settings, the epoch of the data and the format (L16). */
  const fingerprint = fingerprintOf([
    formatVersion,
    epoch,
    baseUrl,
    mediaBaseUrl,
    extensions,
    linkStyle,
    envelope,
  ])
  /** `links` identifies the signed URLs of the page; it is empty for plain ones. */
  const entityTag = (
    bucketId: BucketId,
    state: string,
    page: number,
    links: string,
    coding: Listing['coding'],
  ) => `"${fingerprint}.${bucketId}.${state}.${page}${links}${coding === 'gzip' ? '.gzip' : ''}"`

  const notModified = (etag: string): ListingResponse => ({
    status: 304,
    head: [...commonHeaders, 'etag', etag],
    body: null,
  })
  const ok = (etag: string, { coding, body }: Listing): ListingResponse => {
    const head = [...commonHeaders, 'etag', etag, 'content-type', 'application/json; charset=utf-8']
    head.push('content-length', `${body.length}`)
    if (coding === 'gzip') head.push('content-encoding', coding)
    return { status: 200, head, body }
  }
  /** The responses of cached listings, for as long as these are cached: building the headers costs more than a lookup. */
  const responses = new WeakMap<Listing, ListingResponse>()

  return async (grant, { page: sent, acceptEncoding, ifNoneMatch }) => {
    const { bucketId, signsPages } = grant
    const current = listState(grant)
    const page = parsePageNumber(sent)
    const gzip = acceptsCoding(acceptEncoding, 'gzip')

    const signer = signsPages ? await signLinks(null) : null
    const links = signer === null ? '' : `.${signer.tag}`

    // A tag of the current state needs no listing. `*` names no state, so it is compared with the listing's own.
    if (ifNoneMatch !== undefined && ifNoneMatch !== '*') {
      const tags = [entityTag(bucketId, current, page, links, 'identity')]
      if (gzip) tags.push(entityTag(bucketId, current, page, links, 'gzip'))
      const etag = tags.find((tag) => matchesWeakly(ifNoneMatch, tag))
      if (etag !== undefined) return notModified(etag)
    }

    const listing = await listPage({ bucketId, state: current }, page, gzip, signer)
    const cached = listing.isCached ? responses.get(listing) : undefined
    if (cached !== undefined && ifNoneMatch === undefined) return cached
    const etag = entityTag(bucketId, listing.state, page, links, listing.coding)
    if (ifNoneMatch !== undefined && matchesWeakly(ifNoneMatch, etag)) return notModified(etag)
    const response = ok(etag, listing)
    if (listing.isCached) responses.set(listing, response)
    return response
  }
}
