import { expect, test } from 'vitest'
import { readClaim, scopesOfClaim } from './claims.ts'

const claims = {
  scope: 'a',
  'https://example.org/roles': ['b'],
  app: { 'media/x~': { roles: 'c' } },
  list: ['d'],
}

test.each([
  ['scope', 'a'],
  ['https://example.org/roles', ['b']],
  ['/app/media~1x~0/roles', 'c'],
  ['/list/0', 'd'],
  ['/scope/length', undefined],
  ['/app/none/roles', undefined],
  ['constructor', undefined],
  ['/app/__proto__', undefined],
  ['/list/length', 1],
])('J3 the claim %s is read', (name, value) => {
  expect(readClaim(claims, name)).toEqual(value)
})

test('J3 scopes are in the order of the service, each once', () => {
  expect(scopesOfClaim('media:delete media:read media:read')).toEqual(['media:read', 'media:delete'])
  expect(scopesOfClaim(['media:read media:write', null])).toEqual([])
  expect(scopesOfClaim(null)).toEqual([])
})
