import { Fault } from '../../core/fault.ts'
import type { RequestRate } from '../../core/request-rate.ts'

/** What is counted: the requests of a token, those of an address, and the unusable tokens that an address sends. */
export type LimitName = 'token' | 'address' | 'authentication'

const subjects: Readonly<Record<LimitName, string>> = {
  token: 'This token has sent',
  address: 'This address has sent',
  authentication: 'This address has sent, with tokens that are not valid,',
}

/** Fault `rate-limited`, with the headers that say when to come back (docs/interface.md W5). */
export class RateLimitFault extends Fault {
  readonly headers: Readonly<Record<string, string>>

  /** `wait` are milliseconds until the next request is accepted. */
  constructor(limit: LimitName, { requests, window }: RequestRate, wait: number) {
    const seconds = Math.ceil(wait / 1000)
    super(
      'rate-limited',
      `${subjects[limit]} more than ${requests} requests in ${window / 1000} s. Try again in ${seconds} s.`,
    )
    // draft-ietf-httpapi-ratelimit-headers-11; a client that honours Retry-After alone does the right thing.
    this.headers = {
      'retry-after': `${seconds}`,
      'ratelimit-policy': `"${limit}";q=${requests};w=${window / 1000}`,
      ratelimit: `"${limit}";r=0;t=${seconds}`,
    }
  }
}
