import { expect, test } from 'vitest'
import { isIssuerUrl, readClaim, scopesOfClaim } from './issuer.ts'

test.each([
  'https://issuer.example.org',
  'https://issuer.example.org/realms/a/',
  'https://issuer.example.org/keys?policy=a',
  'http://localhost:3000',
  'http://127.0.0.1:3000',
  'http://[::1]:3000/a',
])('J8 %s is accepted', (url) => {
  expect(isIssuerUrl(url)).toBe(true)
})

test.each([
  '',
  'issuer.example.org',
  'http://issuer.example.org',
  'http://127.0.0.1.example.org',
  'http://localhost.example.org',
  'http://192.168.0.1',
  'https://user:password@issuer.example.org',
  'https://issuer.example.org/#a',
  'file:///etc/keys',
  'javascript:alert(1)',
])('J8 %s is not accepted', (url) => {
  expect(isIssuerUrl(url)).toBe(false)
})

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
