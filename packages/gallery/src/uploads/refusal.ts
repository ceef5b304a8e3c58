import { formatSize } from '../format/size.ts'
import { strings } from '../strings.ts'
import { problemDetail } from './problem-detail.ts'

/** The service refused an upload. */
export class Refusal extends Error {
  readonly status: number
  readonly body: string
  /** Milliseconds that the service asked to wait; null where it did not. */
  readonly retryAfter: number | null

  constructor(status: number, body: string, retryAfter: number | null) {
    super(`The service answered ${status}`)
    this.status = status
    this.body = body
    this.retryAfter = retryAfter
  }

  /** Only a proxy responded, in place of a service that is gone. */
  get isGateway(): boolean {
    return (
      this.status === 502 || this.status === 504 || (this.status === 503 && problemDetail(this.body) === null)
    )
  }

  /** Milliseconds to wait before the request is repeated; null where a repeat would be refused too. */
  delayAfter(tries: number): number | null {
    const patient = this.status === 429 || this.status === 503
    if (!patient && (tries > 4 || ![408, 409, 423, 500].includes(this.status))) return null
    return this.retryAfter ?? Math.min(8000, 500 * 2 ** (tries - 1))
  }
}

/** Why the server did not take a file, in its own words; of a file that is too large, with the limit where it says one. */
export function refusal(status: number, body: string): string {
  const detail = problemDetail(body)
  if (status !== 413) return detail ?? strings.uploads.unknown
  const limit = /(\d+) bytes/.exec(detail ?? '')?.[1]
  return limit === undefined
    ? strings.uploads.tooLarge
    : strings.uploads.tooLargeFor(formatSize(Number(limit)))
}
