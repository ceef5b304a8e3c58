import type { Grant } from '../catalog/records.ts'
import { Fault } from '../core/fault.ts'
import type { Scope } from '../core/scopes.ts'

/** Throws Fault `scope-missing`, which names the scope, unless the token has it (docs/interface.md A3). */
export function requireScope(grant: Pick<Grant, 'scopes'>, scope: Scope): void {
  if (grant.scopes.has(scope)) return
  throw new Fault('scope-missing', `This operation needs a token with the scope ${scope}.`, {
    parameters: [{ parameter: 'scope', detail: scope }],
  })
}
