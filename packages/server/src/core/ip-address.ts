import { compile } from '@fastify/proxy-addr'
import ipaddr from 'ipaddr.js'

/** The names of private ranges that Express accepts. */
const rangeNames = new Set(['loopback', 'linklocal', 'uniquelocal'])

/** A list of addresses, CIDR ranges and range names, separated by commas. Null if an entry is invalid. */
export function parseAddressRanges(text: string): readonly string[] | null {
  const entries = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
  return entries.every(isRange) ? entries : null
}

/** 4 or 6; 0 for any other text, including IPv4 addresses that are not four decimal numbers. */
export function addressFamily(text: string): 4 | 6 | 0 {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return 4
  return ipaddr.IPv6.isValid(text) ? 6 : 0
}

function isRange(entry: string): boolean {
  if (rangeNames.has(entry)) return true
  const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? []
  const family = addressFamily(address)
  const maxLength = family === 6 ? 128 : 32
  const length = prefix === undefined ? maxLength : Number(prefix)
  // A prefix length of 0 would match every address.
  return family !== 0 && length >= 1 && length <= maxLength
}

/** Whether an address lies in one of the ranges. */
export function inRanges(ranges: readonly string[]): (address: string) => boolean {
  if (ranges.length === 0) return () => false
  const matches = compile([...ranges])
  return (address) => matches(address, 0)
}

/** The address in its usual form: an IPv4 address that is mapped to IPv6 as IPv4. */
export function plainAddress(address: string): string {
  if (addressFamily(address) !== 6) return address
  const ip = ipaddr.parse(address)
  return 'parts' in ip && ip.isIPv4MappedAddress() ? ip.toIPv4Address().toString() : ip.toString()
}

/** The key for limits of one client: its IPv4 address, or the /64 of its IPv6 address, because one client has a whole /64. */
export function addressGroup(address: string): string {
  if (addressFamily(address) !== 6) return address
  const ip = ipaddr.parse(address)
  if (!('parts' in ip)) return address
  if (ip.isIPv4MappedAddress()) return ip.toIPv4Address().toString()
  return `${ip.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`
}

/** Addresses that are public by their ranges, and serve the metadata of virtual machines: that of Azure. */
const metadataAddresses = new Set(['168.63.129.16'])

/** Global unicast addresses of IPv6 (RFC 4291, section 2.4). */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether an address belongs to the public internet. Not so are private, local, shared, multicast, reserved and documentation addresses, and
 * IPv6 addresses that contain an IPv4 address (mapped, translated, 6to4, Teredo). `address` is in the usual form, as of `plainAddress`.
 */
export function isPublicAddress(address: string): boolean {
  if (addressFamily(address) === 0) return false
  const ip = ipaddr.parse(address)
  if (ip.range() !== 'unicast' || metadataAddresses.has(address)) return false
  return !('parts' in ip) || ip.match(globalUnicast)
}
