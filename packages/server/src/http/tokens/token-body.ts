import type { GrantedToken } from '../../catalog/tokens.ts'
import type { ParameterFault } from '../../core/fault.ts'
import { isScope, type Scope, scopes } from '../../core/scopes.ts'
import { parseTimestamp } from '../../core/timestamp.ts'
import { isTokenName, tokenNameRule } from '../../core/token-name.ts'
import { defaultOverlap, maxOverlap } from '../../core/token-rotation.ts'
import { type JsonObject, malformed } from '../bodies/read-json.ts'

export const newTokenMembers = ['scopes', 'name', 'expires_at'] as const
export const rotationMembers = ['expires_at', 'overlap_seconds'] as const

/** Reads the body of a request that creates a token (docs/interface.md T6). Throws Fault `json-malformed`. */
export function readNewToken(
  body: JsonObject,
  now: number,
): Pick<GrantedToken, 'name' | 'scopes' | 'expiresAt'> {
  const faults: ParameterFault[] = []
  const names = readScopes(body['scopes'])
  if (names === null)
    faults.push({ parameter: 'scopes', detail: `An array of 1 or more of: ${scopes.join(', ')}.` })
  const { name = '' } = body
  if (!isName(name)) faults.push({ parameter: 'name', detail: tokenNameRule })
  const expiresAt = readExpiry(body['expires_at'] ?? null, now)
  if (expiresAt === undefined) faults.push(expiryFault)
  if (names === null || !isName(name) || expiresAt === undefined) throw malformed(faults)
  return { name, scopes: names, expiresAt }
}

/** Reads the body of a request that replaces a token (docs/interface.md T8). Throws Fault `json-malformed`. */
export function readRotation(
  body: JsonObject,
  now: number,
): {
  /** Milliseconds. */
  readonly overlap: number
  readonly expiresAt: number | null
} {
  const faults: ParameterFault[] = []
  const expiresAt = readExpiry(body['expires_at'], now)
  if (expiresAt === undefined) faults.push(expiryFault)
  const { overlap_seconds: overlap = defaultOverlap } = body
  if (!isOverlap(overlap))
    faults.push({ parameter: 'overlap_seconds', detail: `An integer from 0 to ${maxOverlap}.` })
  if (expiresAt === undefined || !isOverlap(overlap)) throw malformed(faults)
  return { overlap: overlap * 1000, expiresAt }
}

/** Null if the value is not a list of scopes. */
function readScopes(value: unknown): readonly Scope[] | null {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isScopeName)) return null
  return scopes.filter((scope) => value.includes(scope))
}

const isScopeName = (value: unknown): value is Scope => typeof value === 'string' && isScope(value)
const isName = (value: unknown): value is string => typeof value === 'string' && isTokenName(value)
const isOverlap = (value: unknown): value is number =>
  Number.isInteger(value) && typeof value === 'number' && value >= 0 && value <= maxOverlap

/** The last time that RFC 3339 can express in UTC. Milliseconds since 1970. */
const lastTime = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Milliseconds since 1970; null for no expiry, undefined if the value is neither a future time nor null. */
function readExpiry(value: unknown, now: number): number | null | undefined {
  if (value === null) return null
  const time = typeof value === 'string' ? parseTimestamp(value) : null
  return time !== null && time > now && time <= lastTime ? time : undefined
}

const expiryFault: ParameterFault = {
  parameter: 'expires_at',
  detail: 'A time of RFC 3339 in the future, such as 2030-05-01T00:00:00Z, or null.',
}
