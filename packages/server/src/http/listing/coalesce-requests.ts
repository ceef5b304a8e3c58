import { requireScope } from '../../access/require-scope.ts'
import type { Grant, TokenId } from '../../catalog/records.ts'
import type { Fault } from '../../core/fault.ts'
import { type CorsPolicy, noCorsHeaders } from '../headers/cors.ts'
import type { AuthorizationVerifier } from '../tokens/authorizer.ts'
import { areIdentical, type FastPathRequest } from './fast-path-request.ts'
import type { ListingResponder, ListingResponse } from './listing-response.ts'

/** The response to a request, and the headers that its origin adds. Those of a page are the same for all origins. */
export interface CoalescedResponse extends ListingResponse {
  /** Alternating names and values; empty if the policy has none for this origin. */
  readonly cors: readonly string[]
}

// A response is correct for every request that arrived before its data were read, and for no later one. So identical
// requests are collected during one event-loop tick, and the data are read after it. No result is kept for later requests.

/** The requests of one tick with the same Authorization header, whose token is verified once. */
interface Caller {
  readonly grant: Promise<Grant>
  readonly groups: Group[]
}

/** Identical requests of one caller: all accepted ones get the same response. */
interface Group {
  readonly request: FastPathRequest
  response: Promise<CoalescedResponse> | null
}

/**
 * Returns a function that verifies each token once in an event-loop tick, and calls `respondToListing` once for identical
 * requests.
 */
export function coalesceRequests(parts: {
  readonly verifyAuthorization: AuthorizationVerifier
  /** Counts each request; returns the reason for a refusal, null if the request is accepted. */
  readonly countToken: (id: TokenId) => Fault | null
  readonly respondToListing: ListingResponder
  readonly corsHeaders: CorsPolicy
}): (request: FastPathRequest) => Promise<CoalescedResponse> {
  const { verifyAuthorization, countToken, respondToListing, corsHeaders } = parts
  /** The callers of the current tick by Authorization header. */
  let callers: Map<string, Caller> | null = null
  let tickEnd = Promise.resolve()

  function startTick() {
    tickEnd = new Promise((resolve) => {
      setImmediate(() => {
        // Later requests start a new tick.
        callers = null
        resolve()
      })
    })
    return new Map<string, Caller>()
  }

  async function verifyAfter(end: Promise<void>, authorization: string): Promise<Grant> {
    await end
    return await verifyAuthorization(authorization)
  }

  async function respond(grant: Grant, request: FastPathRequest): Promise<CoalescedResponse> {
    requireScope(grant, 'media:read')
    const response = await respondToListing(grant, request)
    // The Vary of a listing already contains Origin where responses differ by origin.
    const headers = corsHeaders({ origin: request.origin })
    if (headers === noCorsHeaders) return { ...response, cors: [] }
    const { vary, ...cors } = headers
    return { ...response, cors: Object.entries(cors).flat() }
  }

  function callerOf({ authorization }: FastPathRequest): Caller {
    callers ??= startTick()
    const existing = callers.get(authorization)
    if (existing) return existing
    const caller = { grant: verifyAfter(tickEnd, authorization), groups: [] }
    callers.set(authorization, caller)
    return caller
  }

  function groupOf({ groups }: Caller, request: FastPathRequest): Group {
    const existing = groups.find((group) => areIdentical(group.request, request))
    if (existing) return existing
    const group = { request, response: null }
    groups.push(group)
    return group
  }

  return async (request) => {
    const caller = callerOf(request)
    const group = groupOf(caller, request)
    const grant = await caller.grant
    const refusal = countToken(grant.tokenId)
    if (refusal) throw refusal
    group.response ??= respond(grant, request)
    return await group.response
  }
}
