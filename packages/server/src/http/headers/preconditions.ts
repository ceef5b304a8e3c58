import { matchesStrongly, matchesWeakly } from './entity-tag.ts'

/** What a stored item is compared by: its entity tag, quotes included, and milliseconds since 1970. */
export interface Validators {
  readonly etag: string
  readonly lastModified: number
}

/** The headers that ask conditionally; Node's IncomingHttpHeaders fit. */
export type PreconditionHeaders = Readonly<
  Partial<
    Record<
      'if-match' | 'if-none-match' | 'if-modified-since' | 'if-unmodified-since' | 'if-range',
      string | undefined
    >
  >
>

/** For GET and HEAD of what exists, in the order of RFC 9110, section 13.2.2 (docs/interface.md B4). */
export function checkPreconditions(
  headers: PreconditionHeaders,
  validators: Validators,
): 'proceed' | 'not-modified' | 'failed' {
  const modified = seconds(validators.lastModified)

  const ifMatch = headers['if-match']
  if (ifMatch !== undefined) {
    if (!matchesStrongly(ifMatch, validators.etag)) return 'failed'
  } else {
    const since = parseHttpDate(headers['if-unmodified-since'])
    if (since !== null && modified > since) return 'failed'
  }

  const ifNoneMatch = headers['if-none-match']
  if (ifNoneMatch !== undefined) {
    if (matchesWeakly(ifNoneMatch, validators.etag)) return 'not-modified'
  } else {
    const since = parseHttpDate(headers['if-modified-since'])
    if (since !== null && modified <= since) return 'not-modified'
  }

  return 'proceed'
}

/**
 * Whether a Range is to be honoured (RFC 9110, section 13.1.5): always without If-Range, else only when it names
 * exactly this state. Bytes never change under their URL, which makes the date a strong validator.
 */
export function rangeApplies(ifRange: string | undefined, validators: Validators): boolean {
  if (ifRange === undefined) return true
  // A list or `*` is not allowed here, and a weak tag never matches.
  if (ifRange.startsWith('"')) return ifRange === validators.etag
  return parseHttpDate(ifRange) === seconds(validators.lastModified)
}

/** HTTP dates know whole seconds only. */
const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

/**
 * Seconds since 1970. Only the one form that is generated today (IMF-fixdate, RFC 9110, section 5.6.7) is taken:
 * Date.parse alone guesses at anything, and a date not understood only costs a full answer.
 */
function parseHttpDate(text: string | undefined): number | null {
  if (text === undefined) return null
  const time = new Date(text)
  return !Number.isNaN(time.valueOf()) && time.toUTCString() === text ? seconds(time.valueOf()) : null
}
