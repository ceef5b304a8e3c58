import { Fault } from '../../core/fault.ts'
import type { RequestRate } from '../../core/request-rate.ts'

/** The limits: requests of a token, requests of an address, and requests of an address with invalid tokens. */
export type LimitName = 'token' | 'address' | 'authentication'

const subjects: Readonly<Record<LimitName, string>> = {
  token: 'This token has sent',
  address: 'This address has sent',
  authentication: 'This address has sent, with invalid tokens,',
}

/** Fault `rate-limited`, with the headers that state when to try again (docs/interface.md W5). */
export class RateLimitFault extends Fault {
  readonly headers: Readonly<Record<string, string>>

  /** `wait` is the time until the next request is accepted. Milliseconds. */
  constructor(limit: LimitName, { requests, window }: RequestRate, wait: number) {
    const seconds = Math.ceil(wait / 1000)
    super(
      'rate-limited',
      `${subjects[limit]} more than ${requests} requests in ${window / 1000} s. Try again in ${seconds} s.`,
    )
    // draft-ietf-httpapi-ratelimit-headers-11. Retry-After alone is sufficient for clients.
    this.headers = {
      'retry-after': `${seconds}`,
      'ratelimit-policy': `"${limit}";q=${requests};w=${window / 1000}`,
      ratelimit: `"${limit}";r=0;t=${seconds}`,
    }
  }
}
