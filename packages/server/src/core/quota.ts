import { Fault } from './fault.ts'

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

/** Throws Fault `quota-exceeded`, which names the limit, unless `taken` and `more` together fit (docs/interface.md Q1). */
export function requireWithinQuota({ maxItems, maxBytes }: Quota, taken: Amount, more: Amount): void {
  if (maxItems !== null && more.items > 0 && taken.items + more.items > maxItems)
    throw exceeded('max_items', `${maxItems} items`)
  if (maxBytes !== null && more.bytes > 0 && taken.bytes + more.bytes > maxBytes)
    throw exceeded('max_bytes', `${maxBytes} bytes`)
}

const exceeded = (parameter: string, limit: string) =>
  new Fault('quota-exceeded', `The bucket may hold ${limit}, and this upload would exceed that.`, {
    parameters: [{ parameter, detail: `The bucket may hold ${limit}.` }],
  })
