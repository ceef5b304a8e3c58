import { isScope, type Scope, scopes } from './scopes.ts'

/** The members of a JSON object, such as the claims of a verified token. */
export type Claims = Readonly<Record<string, unknown>>

/** Returns the value of a claim: a name, or a JSON Pointer (RFC 6901) such as `/resource_access/media/roles`. */
export function readClaim(claims: Claims, name: string): unknown {
  if (!name.startsWith('/')) return member(claims, name)
  const names = name.slice(1).split('/')
  return names.reduce<unknown>(
    (value, part) => member(value, part.replaceAll('~1', '/').replaceAll('~0', '~')),
    claims,
  )
}

const member = (value: unknown, name: string): unknown =>
  isClaims(value) && Object.hasOwn(value, name) ? value[name] : undefined

export const isClaims = (value: unknown): value is Claims => typeof value === 'object' && value !== null

/** Returns the scopes of this service in a claim: names separated by spaces, or an array of names. Ignores all others. */
export function scopesOfClaim(value: unknown): readonly Scope[] {
  const names: readonly unknown[] =
    typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : []
  const known = new Set(names.filter((name) => typeof name === 'string' && isScope(name)))
  return scopes.filter((scope) => known.has(scope))
}
