import { Fault } from './faults.ts'

const powers = ['', 'k', 'm', 'g', 't']

/**
 * Bytes of `500`, `10kB`, `5 MB`, `1TB` (powers of 1000) and `5MiB`, `5GiB` (powers of 1024), in any case;
 * null when malformed or beyond 2^53 − 1.
 */
export function parseSize(text: string): number | null {
  const match = /^(0|[1-9][0-9]*)(?: ?(?:([kmgt]?)b|([kmgt])ib))?$/i.exec(text)
  if (match === null) return null
  const [, amount, decimal = '', binary] = match
  const power = powers.indexOf((binary ?? decimal).toLowerCase())
  const bytes = Number(amount) * (binary === undefined ? 1000 : 1024) ** power
  return Number.isSafeInteger(bytes) ? bytes : null
}

/** A number of items, and their total bytes. */
export interface Amount {
  readonly items: number
  readonly bytes: number
}

/** The limits of a bucket; null for no limit. */
export interface Quota {
  readonly maxItems: number | null
  readonly maxBytes: number | null
}

/** `1 item`, `2 items`. */
export const countText = (count: number, unit: 'item' | 'byte'): string =>
  `${count} ${unit}${count === 1 ? '' : 's'}`

/** Throws Fault `quota-exceeded`, which names the limit, unless `taken` and `more` together fit (docs/interface.md Q1). */
export function requireWithinQuota({ maxItems, maxBytes }: Quota, taken: Amount, more: Amount): void {
  if (maxItems !== null && more.items > 0 && taken.items + more.items > maxItems)
    throw exceeded('max_items', countText(maxItems, 'item'))
  if (maxBytes !== null && more.bytes > 0 && taken.bytes + more.bytes > maxBytes)
    throw exceeded('max_bytes', countText(maxBytes, 'byte'))
}

const exceeded = (parameter: string, limit: string) =>
  new Fault('quota-exceeded', `The bucket may hold ${limit}, and this upload would exceed that.`, {
    parameters: [{ parameter, detail: `The bucket may hold ${limit}.` }],
  })
