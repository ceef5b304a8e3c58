import type { ItemOptions, Media } from '@mediabucket/client'

export type Order = 'newest' | 'oldest'

/** Selects the items that are shown. */
export interface ItemFilter {
  /** Null for all kinds. */
  readonly kind: NonNullable<ItemOptions['kind']> | null
  /** Words of the name (docs/interface.md, K11); empty for all names. */
  readonly name: string
  /** The start of the time that was chosen; null for all. */
  readonly from: Date | null
}

export const kindChoices = {
  all: null,
  image: 'image',
  video: 'video',
  audio: 'audio',
  document: 'document',
  other: 'other',
} as const

const day = 24 * 3_600_000
export const timeChoices: Readonly<
  Record<'all' | 'day' | 'week' | 'month' | 'year', (now: number) => Date | null>
> = {
  all: () => null,
  day: (now) => new Date(now - day),
  week: (now) => new Date(now - 7 * day),
  month: (now) => new Date(now - 30 * day),
  year: (now) => new Date(now - 365 * day),
}

export const isFiltered = ({ kind, name, from }: ItemFilter): boolean =>
  kind !== null || name !== '' || from !== null

/** The words of a typed text, as many as the service accepts. */
export const wordsOf = (typed: string): string =>
  typed.trim().split(/\s+/).slice(0, 8).join(' ').slice(0, 200).trim()

const before = new Date(0)

/**
 * The query for the items from `start` on, in an order; from the start if `start` is null. Includes `start` and other items of
 * its millisecond. Every query has a time, because the items are then in the order of their times (docs/interface.md, K9):
 * lists in both orders, and from any item on, have one order.
 */
export function queryFrom(order: Order, filter: ItemFilter, start: Media | null): ItemOptions {
  const kind = filter.kind ?? undefined
  const name = filter.name || undefined
  const from = filter.from ?? before
  if (start === null) return { order, kind, name, from }
  const at = Date.parse(start.created_at)
  return order === 'newest'
    ? { order, kind, name, from, to: new Date(at + 1) }
    : { order, kind, name, from: new Date(at) }
}

/** Whether an item is after another in an order, by their times. */
export function isAfter(order: Order, item: Media, other: Media): boolean {
  const difference = Date.parse(item.created_at) - Date.parse(other.created_at)
  return order === 'newest' ? difference < 0 : difference > 0
}

export const reverse = (order: Order): Order => (order === 'newest' ? 'oldest' : 'newest')
