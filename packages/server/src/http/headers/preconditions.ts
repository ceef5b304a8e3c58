import { matchesStrongly, matchesWeakly } from './entity-tag.ts'

/** The validators of an item: its entity tag with quotes, and its time of storage in milliseconds since 1970. */
export interface Validators {
  readonly etag: string
  readonly lastModified: number
}

/** The conditional headers; Node's IncomingHttpHeaders are assignable. */
export type PreconditionHeaders = Readonly<
  Partial<
    Record<
      'if-match' | 'if-none-match' | 'if-modified-since' | 'if-unmodified-since' | 'if-range',
      string | undefined
    >
  >
>

/** Evaluates the preconditions of a GET or HEAD of an existing item in the order of RFC 9110, section 13.2.2 (docs/interface.md B4). */
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
 * Whether the Range header applies (RFC 9110, section 13.1.5): always without If-Range, otherwise only where If-Range
 * matches. The bytes of a URL never change, so its date is a strong validator.
 */
export function rangeApplies(ifRange: string | undefined, validators: Validators): boolean {
  if (ifRange === undefined) return true
  // If-Range allows neither a list nor `*`, and a weak tag never matches.
  if (ifRange.startsWith('"')) return ifRange === validators.etag
  return parseHttpDate(ifRange) === seconds(validators.lastModified)
}

/** HTTP dates have whole seconds. */
const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000)

/**
 * Seconds since 1970; null for anything but IMF-fixdate (RFC 9110, section 5.6.7), the only form in use. Date.parse alone
 * accepts any text; an ignored date only costs a full response.
 */
function parseHttpDate(text: string | undefined): number | null {
  if (text === undefined) return null
  const time = new Date(text)
  return !Number.isNaN(time.valueOf()) && time.toUTCString() === text ? seconds(time.valueOf()) : null
}
