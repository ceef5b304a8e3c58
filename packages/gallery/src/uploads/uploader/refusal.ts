import { formatSize } from '../../format.ts'
import { strings } from '../../strings.ts'

/** The server refused an upload. */
export class Refusal extends Error {
  readonly status: number
  readonly body: string
  /** Milliseconds, from Retry-After; null if the server sent none. */
  readonly retryAfter: number | null

  constructor(status: number, body: string, retryAfter: number | null) {
    super(`The server responded with ${status}`)
    this.status = status
    this.body = body
    this.retryAfter = retryAfter
  }

  /** Whether a proxy responded, because the server does not. */
  get isGateway(): boolean {
    return (
      this.status === 502 || this.status === 504 || (this.status === 503 && problemDetail(this.body) === null)
    )
  }

  /** Milliseconds to wait before the next try; null if it would be refused too. */
  delayAfter(tries: number): number | null {
    const isTemporary = this.status === 429 || this.status === 503
    if (!isTemporary && (tries > 4 || ![408, 409, 423, 500].includes(this.status))) return null
    return this.retryAfter ?? Math.min(8000, 500 * 2 ** (tries - 1))
  }
}

/** The message for a refused file: the limit that it exceeds, or else the server's own text. */
export function refusalMessage(status: number, body: string): string {
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

/** The text of a problem (RFC 9457); null if the body is not a problem. */
export function problemDetail(body: string): string | null {
  try {
    const problem: unknown = JSON.parse(body)
    if (typeof problem !== 'object' || problem === null) return null
    if ('detail' in problem && typeof problem.detail === 'string') return problem.detail
    if ('title' in problem && typeof problem.title === 'string') return problem.title
    return null
  } catch {
    return null
  }
}
