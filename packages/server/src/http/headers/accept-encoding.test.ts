import { expect, test } from 'vitest'
import { acceptsCoding } from './accept-encoding.ts'

test.each([
  ['gzip', true],
  ['gzip, deflate, br', true],
  ['GZIP;q=0.5', true],
  ['deflate , gzip ; q=1', true],
  ['x-gzip', true],
  ['*', true],
  ['gzip;q=0', false],
  ['gzip;q=0, *', false],
  ['*;q=0', false],
  ['identity', false],
  ['br', false],
  ['gzipped', false],
  ['gzip;q=0.5, identity;q=1', false],
  ['identity, *;q=0.1', false],
  ['gzip, identity;q=0.5', true],
  ['gzip;q=0.5, identity;q=0.5', true],
  ['', false],
  [undefined, false],
])('RFC 9110, section 12.5.3: %j allows gzip: %j', (header, allowed) => {
  expect(acceptsCoding(header, 'gzip')).toBe(allowed)
})

test.each([
  ['gzip, deflate, br', true],
  ['*', true],
  ['br;q=0, *', false],
  ['gzip', false],
])('RFC 9110, section 12.5.3: %j allows br: %j', (header, allowed) => {
  expect(acceptsCoding(header, 'br')).toBe(allowed)
})
