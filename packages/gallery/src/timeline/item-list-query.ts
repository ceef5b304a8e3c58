import type { ItemOptions, Media } from '@mediabucket/client'

export type Order = 'newest' | 'oldest'

/** Selects the items that are shown. */
export interface ItemFilter {
  /** Null for all kinds. */
  readonly kind: NonNullable<ItemOptions['kind']> | null
  readonly from: Date | null
  readonly to: Date | null
}

export const noFilter: ItemFilter = { kind: null, from: null, to: null }

export const isFiltered = ({ kind, from, to }: ItemFilter): boolean =>
  kind !== null || from !== null || to !== null

const before = new Date(0)

/**
 * The query for the items from `start` on, in an order; from the begin if `start` is null. Includes `start` and other items of
 * its millisecond. Every query has a time, because the items are then in the order of their times (docs/interface.md, K9):
 * lists in both orders, and from any item on, have one order.
 */
export function queryFrom(order: Order, filter: ItemFilter, start: Media | null): ItemOptions {
  const kind = filter.kind ?? undefined
  const from = filter.from ?? before
  const to = filter.to ?? undefined
  if (start === null) return { order, kind, from, to }
  const at = Date.parse(start.created_at)
  return order === 'newest'
    ? { order, kind, from, to: new Date(at + 1) }
    : { order, kind, from: new Date(at), to }
}

/** Whether an item is after another in an order, by their times. */
export function isAfter(order: Order, item: Media, other: Media): boolean {
  const difference = Date.parse(item.created_at) - Date.parse(other.created_at)
  return order === 'newest' ? difference < 0 : difference > 0
}

export const reverse = (order: Order): Order => (order === 'newest' ? 'oldest' : 'newest')
