import { maxNote, maxTokenName } from '@mediabucket/client/rules'
import type { ParameterFault } from '../core/faults.ts'
import type { JsonObject } from '../core/json.ts'
import { isNote, noteRule, readLimits } from '../core/quotas.ts'
import { parseExpiry } from '../core/times.ts'
import {
  isScope,
  isTokenName,
  type Scope,
  scopes,
  serviceScopes,
  tokenNameRule,
} from '../core/token-rules.ts'
import type { GrantedToken } from '../storage/catalog/access/tokens.ts'

/** The properties of a new token that a request states. */
export interface TokenRequest
  extends Pick<GrantedToken, 'name' | 'scopes' | 'expiresAt' | 'note' | 'limits'> {
  /** Whether the response has its keys for the S3 protocol. */
  readonly wantsKeys: boolean
}

/** The members of a JSON object with a new token. */
export const newTokenMembers = ['scopes', 'name', 'expires_at', 'note', 'limits', 's3'] as const

/** Reads the members of a new token (docs/interface.md T6). The request is null if there are faults. */
export function readNewToken(
  body: JsonObject,
  now: number,
): { readonly request: TokenRequest | null; readonly faults: readonly ParameterFault[] } {
  const faults: ParameterFault[] = []
  const names = readScopes(body['scopes'])
  if (names === null)
    faults.push({
      parameter: 'scopes',
      detail: `An array of 1 or more of: ${scopes.join(', ')}.${serviceScopeHint(body['scopes'])}`,
      accepted: scopes,
    })
  const { name = '' } = body
  if (!isName(name))
    faults.push({ parameter: 'name', detail: tokenNameRule, maximum: maxTokenName, unit: 'characters' })
  const expiresAt = readExpiry(body['expires_at'] ?? null, now)
  if (expiresAt === undefined) faults.push(expiryFault)
  const note = body['note'] ?? null
  const isValidNote = note === null || (typeof note === 'string' && isNote(note))
  if (!isValidNote) faults.push({ parameter: 'note', detail: noteRule, maximum: maxNote, unit: 'characters' })
  const given = body['limits'] ?? null
  const read = given === null ? null : readLimits(given)
  const limits = read?.limits ?? null
  faults.push(...(read?.faults ?? []))
  const { s3: wantsKeys = false } = body
  if (typeof wantsKeys !== 'boolean') faults.push({ parameter: 's3', detail: 'true or false.' })
  if (limits !== null && names?.includes('tokens:manage')) faults.push(limitedManagerFault)
  if (
    names === null ||
    !isName(name) ||
    expiresAt === undefined ||
    !isValidNote ||
    typeof wantsKeys !== 'boolean' ||
    faults.length > 0
  )
    return { request: null, faults }
  return { request: { name, scopes: names, expiresAt, note, limits, wantsKeys }, faults }
}

/** Such a token could create one without limits. */
const limitedManagerFault: ParameterFault = {
  parameter: 'limits',
  detail: 'A token with limits cannot have the scope tokens:manage.',
}

/** Null if the value is not a list of scopes. */
function readScopes(value: unknown): readonly Scope[] | null {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isScopeName)) return null
  return scopes.filter((scope) => value.includes(scope))
}

/** No request grants a scope of service tokens (docs/interface.md ST1). */
function serviceScopeHint(value: unknown): string {
  const named = Array.isArray(value)
    ? serviceScopes.find((scope) => !isScope(scope) && value.includes(scope))
    : undefined
  return named === undefined
    ? ''
    : ` Only service tokens have the scope ${named}: mediabucket token create --service --scope ${named}`
}

const isScopeName = (value: unknown): value is Scope => typeof value === 'string' && isScope(value)

const isName = (value: unknown): value is string => typeof value === 'string' && isTokenName(value)

/** Milliseconds since 1970; null for no expiry, undefined if the value is neither a future time nor null. */
export function readExpiry(value: unknown, now: number): number | null | undefined {
  if (value === null) return null
  return typeof value === 'string' ? parseExpiry(value, now) : undefined
}

export const expiryFault: ParameterFault = {
  parameter: 'expires_at',
  detail: 'A time of RFC 3339 in the future, such as 2030-05-01T00:00:00Z, or null.',
}
