import { formatSize } from '../../format/size.ts'
import { strings } from '../../strings.ts'
import { problemDetail } from '../problem-detail.ts'

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

/** Why the server refused a file: a limit in the units of the page, everything else in the server's own words. */
export function refusal(status: number, body: string): string {
  const detail = problemDetail(body)
  const { uploads, files } = strings
  const bytes = /(\d+) bytes/.exec(detail ?? '')?.[1]
  const size = bytes === undefined ? null : formatSize(Number(bytes))
  if (status === 413) return size === null ? uploads.tooLarge : uploads.tooLargeFor(size)
  if (status === 507 && body.includes('"max_bytes"') && size !== null) return uploads.noRoom(size)
  const items = status === 507 ? /(\d+) items/.exec(detail ?? '')?.[1] : undefined
  if (items !== undefined) return uploads.noRoom(files(Number(items)))
  return detail ?? uploads.unknown
}
