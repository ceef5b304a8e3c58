import { requireScope } from '../../access/require-scope.ts'
import type { Grant } from '../../catalog/records.ts'
import type { RequestLimits } from '../limits/request-limits.ts'
import type { AuthorizationVerifier } from '../routing/authorizer.ts'
import type { ListingRequest, ListingResponder, ListingResponse } from './listing-response.ts'

/** A request by its parts that determine the response. */
export interface CallersRequest extends ListingRequest {
  readonly authorization: string
}

/** Whether both requests get the same response. */
const areIdentical = (one: CallersRequest, other: CallersRequest): boolean =>
  one.page === other.page &&
  one.authorization === other.authorization &&
  one.acceptEncoding === other.acceptEncoding &&
  one.ifNoneMatch === other.ifNoneMatch

// A response is correct for every request that arrived before its data were read, and for no later one. So identical
// requests are collected during one event-loop tick, and the data are read after it. No result is kept for later requests.

/** The requests of one tick with the same Authorization header, whose token is verified once. */
interface Caller {
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
 * requests.
 */
export function coalesceRequests(
  {
    verifyAuthorization,
    limits: { countToken },
  }: {
    readonly verifyAuthorization: AuthorizationVerifier
    readonly limits: Pick<RequestLimits, 'countToken'>
  },
  respondToListing: ListingResponder,
): (request: CallersRequest) => Promise<ListingResponse> {
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

  async function respond(grant: Grant, request: CallersRequest): Promise<ListingResponse> {
    requireScope(grant, 'media:read')
    return await respondToListing(grant, request)
  }

  function callerOf({ authorization }: CallersRequest): Caller {
    callers ??= startTick()
    const existing = callers.get(authorization)
    if (existing) return existing
    const caller = { grant: verifyAfter(tickEnd, authorization), groups: [] }
    callers.set(authorization, caller)
    return caller
  }

  function groupOf({ groups }: Caller, request: CallersRequest): Group {
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
