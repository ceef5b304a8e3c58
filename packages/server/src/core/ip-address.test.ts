import { expect, test } from 'vitest'
import { addressGroup, inRanges, parseAddressRanges } from './ip-address.ts'

test.each([
  ['', []],
  ['10.0.0.1', ['10.0.0.1']],
  [' loopback, 10.0.0.0/8 ,2001:db8::/32,', ['loopback', '10.0.0.0/8', '2001:db8::/32']],
])('the ranges of %j are %j', (text, ranges) => {
  expect(parseAddressRanges(text)).toEqual(ranges)
})

test.each([
  ...['10.0.0', '1', '0x7f.1', '10.0.0.0/0', '10.0.0.0/33', '::/0', '::/129', '10.0.0.0/', '10.0.0.0/a'],
  ...['all', 'true', 'proxy.example.org', 'constructor', '10.0.0.1 10.0.0.2', '10.0.0.0/255.0.0.0'],
])('%j is not a list of address ranges', (text) => {
  expect(parseAddressRanges(text)).toBe(null)
})

test.each([
  [['loopback'], '127.0.0.9', true],
  [['loopback'], '::1', true],
  [['loopback'], '10.0.0.1', false],
  [['loopback', '10.0.0.0/8'], '::ffff:10.1.2.3', true],
  [['10.0.0.0/8'], '11.0.0.1', false],
  [['uniquelocal'], 'fd00::1', true],
  [['2001:db8::/32'], '2001:db8:ffff::1', true],
  [['2001:db8::/32'], '2001:db9::1', false],
  [['10.0.0.0/8'], 'no address', false],
  [[], '127.0.0.1', false],
])('the ranges %j contain %s: %s', (ranges, address, expected) => {
  expect(inRanges(ranges)(address)).toBe(expected)
})

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['unknown', 'unknown'],
])('%s is counted as %s', (address, group) => {
  expect(addressGroup(address)).toBe(group)
})
