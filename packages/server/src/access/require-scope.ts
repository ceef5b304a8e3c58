import type { Grant } from '../catalog/records.ts'
import { Fault } from '../core/fault.ts'
import type { Scope } from '../core/scopes.ts'

/** Throws Fault `scope-missing`, which names the scope, unless the token has it (docs/interface.md A3). */
export function requireScope(grant: Pick<Grant, 'scopes'>, scope: Scope): void {
  if (grant.scopes.has(scope)) return
  throw scopesMissing(`This operation needs a token with the scope ${scope}.`, [scope])
}

/** Throws Fault `scope-missing` unless the token of the request has all scopes of the new token (docs/interface.md T5). */
export function requireGrantable(grant: Pick<Grant, 'scopes'>, scopes: readonly Scope[]): void {
  const missing = scopes.filter((scope) => !grant.scopes.has(scope))
  if (missing.length === 0) return
  throw scopesMissing(
    `A token grants only scopes that it has. The token of this request lacks ${missing.join(', ')}.`,
    missing,
  )
}

/** RFC 6750, section 3: the scopes are separated by spaces. */
const scopesMissing = (detail: string, scopes: readonly Scope[]): Fault =>
  new Fault('scope-missing', detail, { parameters: [{ parameter: 'scope', detail: scopes.join(' ') }] })
