import { requireScope } from '../../access/require-scope.ts'
import type { Grant, TokenId } from '../../catalog/catalog.ts'
import type { Fault } from '../../core/fault.ts'
import type { CorsPolicy } from '../headers/cors.ts'
import type { AuthorizationVerifier } from '../tokens/authorizer.ts'
import { areIdentical, type FastPathRequest } from './fast-path-request.ts'
import type { ListingResponder, ListingResponse } from './listing-response.ts'

// An answer is right for every request that was there before its reading began, and for no other. So requests that
// come in together and ask the same of the same bucket share one: collect, then look; never look, then reuse.

/** What identical requests share: the check of their token, and the answer once one of them was accepted. */
interface Shared {
  readonly asked: FastPathRequest
  readonly grant: Promise<Grant>
  answer: Promise<ListingResponse> | null
}

/** `answer`, shared by the requests of one turn of the event loop that are alike in all that shapes it. */
export function coalesceRequests(parts: {
  readonly verifyAuthorization: AuthorizationVerifier
  /** Counts each request, shared or not; returns why it is refused, null where it is accepted. */
  readonly countToken: (id: TokenId) => Fault | null
  readonly answer: ListingResponder
  readonly corsHeaders: CorsPolicy
}): (asked: FastPathRequest) => Promise<ListingResponse> {
  const { verifyAuthorization, countToken, answer, corsHeaders } = parts
  /** By Authorization header: who asks tells most requests apart. */
  let gathered: Map<string, Shared[]> | null = null
  let over = Promise.resolve()

  function gather() {
    over = new Promise((resolve) => {
      setImmediate(() => {
        // From here on nobody can join.
        gathered = null
        resolve()
      })
    })
    return new Map<string, Shared[]>()
  }

  async function verify(authorization: string, turnOver: Promise<void>): Promise<Grant> {
    await turnOver
    return verifyAuthorization(authorization)
  }

  async function begin(grant: Grant, asked: FastPathRequest): Promise<ListingResponse> {
    requireScope(grant, 'media:read')
    const answered = await answer(grant, asked)
    // A listing's own Vary names the origin where it matters.
    const { vary, ...cors } = corsHeaders({ origin: asked.origin })
    const added = Object.entries(cors).flat()
    return added.length === 0 ? answered : { ...answered, head: [...added, ...answered.head] }
  }

  function join(asked: FastPathRequest): Shared {
    gathered ??= gather()
    const sameCaller = gathered.get(asked.authorization)
    const known = sameCaller?.find((one) => areIdentical(one.asked, asked))
    if (known) return known
    const shared = { asked, grant: verify(asked.authorization, over), answer: null }
    if (sameCaller) sameCaller.push(shared)
    else gathered.set(asked.authorization, [shared])
    return shared
  }

  return async (asked) => {
    const shared = join(asked)
    const grant = await shared.grant
    const limited = countToken(grant.tokenId)
    if (limited) throw limited
    shared.answer ??= begin(grant, asked)
    return shared.answer
  }
}
