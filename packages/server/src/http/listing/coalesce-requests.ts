import { requireScope } from '../../access/require-scope.ts'
import type { Grant, TokenId } from '../../catalog/records.ts'
import type { Fault } from '../../core/fault.ts'
import type { CorsPolicy } from '../headers/cors.ts'
import type { AuthorizationVerifier } from '../tokens/authorizer.ts'
import { areIdentical, type FastPathRequest } from './fast-path-request.ts'
import type { ListingResponder, ListingResponse } from './listing-response.ts'

// A response is correct for every request that arrived before its data were read, and for no later one. So identical
// requests are collected during one event-loop tick, and the data are read after it. No result is kept for later requests.

/** Identical requests of one tick: the token is verified once, and all accepted ones get the same response. */
interface Group {
  readonly request: FastPathRequest
  readonly grant: Promise<Grant>
  response: Promise<ListingResponse> | null
}

/** Returns a function that calls `respondToListing` once for identical requests of one event-loop tick. */
export function coalesceRequests(parts: {
  readonly verifyAuthorization: AuthorizationVerifier
  /** Counts each request; returns the reason for a refusal, null if the request is accepted. */
  readonly countToken: (id: TokenId) => Fault | null
  readonly respondToListing: ListingResponder
  readonly corsHeaders: CorsPolicy
}): (request: FastPathRequest) => Promise<ListingResponse> {
  const { verifyAuthorization, countToken, respondToListing, corsHeaders } = parts
  /** The groups of the current tick by Authorization header, the part in which requests differ most often. */
  let groups: Map<string, Group[]> | null = null
  let tickEnd = Promise.resolve()

  function startTick() {
    tickEnd = new Promise((resolve) => {
      setImmediate(() => {
        // Later requests start a new tick.
        groups = null
        resolve()
      })
    })
    return new Map<string, Group[]>()
  }

  async function verifyAfter(end: Promise<void>, authorization: string): Promise<Grant> {
    await end
    return verifyAuthorization(authorization)
  }

  async function respond(grant: Grant, request: FastPathRequest): Promise<ListingResponse> {
    requireScope(grant, 'media:read')
    const response = await respondToListing(grant, request)
    // The Vary of a listing already contains Origin where responses differ by origin.
    const { vary, ...cors } = corsHeaders({ origin: request.origin })
    const corsHead = Object.entries(cors).flat()
    return corsHead.length === 0 ? response : { ...response, head: [...corsHead, ...response.head] }
  }

  function groupOf(request: FastPathRequest): Group {
    groups ??= startTick()
    const sameToken = groups.get(request.authorization)
    const existing = sameToken?.find((group) => areIdentical(group.request, request))
    if (existing) return existing
    const group = { request, grant: verifyAfter(tickEnd, request.authorization), response: null }
    if (sameToken) sameToken.push(group)
    else groups.set(request.authorization, [group])
    return group
  }

  return async (request) => {
    const group = groupOf(request)
    const grant = await group.grant
    const refusal = countToken(grant.tokenId)
    if (refusal) throw refusal
    group.response ??= respond(grant, request)
    return group.response
  }
}
