import { expect, test } from 'vitest'
import { isIssuerUrl } from './issuer-url.ts'

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
