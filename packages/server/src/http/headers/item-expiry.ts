import type { IncomingMessage } from 'node:http'
import { Fault } from '../../core/fault.ts'
import { defaultExpiry, parseExpiry } from '../../core/item-expiry.ts'
import { countHeader } from './raw-headers.ts'

const name = 'mediabucket-expires-at'

/**
 * When the items of an upload expire (docs/interface.md E1): milliseconds since 1970, null for never. Throws Fault `request-malformed`.
 * A request that can be a repetition (`isKeyed`) may state a time that has passed since the first one.
 */
export function itemExpiryOf(
  request: IncomingMessage,
  { itemDays }: { readonly itemDays: number | null },
  isKeyed: boolean,
): number | null {
  const header = request.headers[name]
  const now = Date.now()
  if (header === undefined) return defaultExpiry(itemDays, now)
  const expiry =
    countHeader(request, name) > 1 ? undefined : parseExpiry(header.toString(), isKeyed ? 0 : now)
  if (expiry === undefined)
    throw new Fault(
      'request-malformed',
      'Mediabucket-Expires-At must be one time of RFC 3339 in the future, such as 2030-01-31T12:00:00Z.',
    )
  return expiry
}
