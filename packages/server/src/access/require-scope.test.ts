import { expect, test } from 'vitest'
import { type Scope, scopes } from '../core/scopes.ts'
import { requireScope } from './require-scope.ts'

test('A3: each scope permits its own operations, and no other scope does', () => {
  for (const needed of scopes) {
    requireScope({ scopes: new Set<Scope>([needed]) }, needed)
    const others = new Set<Scope>(scopes.filter((scope) => scope !== needed))
    const refused = { code: 'scope-missing', message: expect.stringContaining(needed) }
    expect(() => requireScope({ scopes: others }, needed)).toThrow(expect.objectContaining(refused))
  }
})
