import type { ItemOptions, Media } from '@mediabucket/client'
import type { ItemKind, ListOrder } from '@mediabucket/client/rules'
import { computed, type ReadonlySignal } from '@preact/signals'
import type { Preferences } from '../preferences.tsx'
import type { Router } from '../router.ts'
import { formatChoice, type ListChoice, noChoice, parseChoice, splitLabel } from '../router.ts'
import { compareNames } from './name-order.ts'

/** Days. */
const durations = { day: 1, week: 7, month: 30, year: 365 }

/** When the chosen time began, up to now; null for all times. */
const startOf = (time: ListChoice['time']): Date | null =>
  time === 'all' ? null : new Date(Date.now() - durations[time] * 86_400_000)

/** What the timeline shows, as the address names it. */
export interface ShownList {
  readonly filter: ReadonlySignal<ItemFilter>
  readonly order: ReadonlySignal<ListOrder>
  readonly view: ReadonlySignal<'grid' | 'list'>
  /** The address of the files with a label, `key=value`. */
  hashOfLabel(label: string): string
  /** Changes the address, and the order and the view of the next visit. Adds an entry to the browser's history, or replaces the current one if `replace`. */
  choose(changes: Partial<ListChoice>, replace?: boolean): void
}

export function createShownList(router: Router, preferences: Preferences): ShownList {
  const order = computed(() => router.list.value.order)
  const view = computed(() => router.list.value.view)
  const chosenFilter = computed(() => {
    const { kind, time, name, labels } = router.list.value
    return formatChoice({ ...noChoice, kind, time, name, labels })
  })
  const filter = computed((): ItemFilter => {
    const { kind, time, name, labels } = parseChoice(new URLSearchParams(chosenFilter.value))
    return { kind: kind === 'all' ? null : kind, name, labels, from: startOf(time) }
  })
  return {
    filter,
    order,
    view,
    hashOfLabel: (label) => router.hashOf({ item: null, list: { ...noChoice, labels: [label] } }),
    choose(changes, replace = false) {
      const next = { item: null, list: { ...router.list.peek(), ...changes } }
      if (replace) router.replace(next)
      else router.go(next)
      if (changes.order) preferences.order.value = changes.order
      if (changes.view) preferences.layout.value = changes.view
    },
  }
}

/** By the time of the upload, by that at which pictures and videos were taken, or by name (docs/interface.md, K19, K20). */
export type OrderKey = 'added' | 'taken' | 'name'

const directions = {
  added: { first: 'newest', last: 'oldest' },
  taken: { first: 'taken-desc', last: 'taken' },
  name: { first: 'name', last: 'name-desc' },
} as const satisfies Record<OrderKey, { first: ListOrder; last: ListOrder }>

export const keyOf = (order: ListOrder): OrderKey =>
  order.startsWith('name') ? 'name' : order.startsWith('taken') ? 'taken' : 'added'

export const isByTaken = (order: ListOrder): boolean => keyOf(order) === 'taken'
export const isByName = (order: ListOrder): boolean => keyOf(order) === 'name'
/** Whether the latest times, or the last names, are first. */
export const isDescending = (order: ListOrder): boolean => order === 'newest' || order.endsWith('-desc')

/** The order by another key. Times keep their direction; names begin with A, and times after names with the newest. */
export const orderBy = (key: OrderKey, order: ListOrder): ListOrder => {
  const isReversed = !isByName(order) && key !== 'name' && !isDescending(order)
  return directions[key][isReversed ? 'last' : 'first']
}

/**
 * The time by which an order has an item, as a text of RFC 3339 in UTC; its first characters are the day. That of a camera is what its clock
 * showed, as if it were UTC.
 */
export const timeOf = (order: ListOrder, { taken_at, created_at }: Media): string =>
  isByTaken(order) && taken_at ? `${taken_at.slice(0, 23)}Z` : created_at

/** Selects the items that are shown. */
export interface ItemFilter {
  /** Null for all kinds. */
  readonly kind: ItemKind | null
  /** Words of the name (docs/interface.md, K11); empty for all names. */
  readonly name: string
  /** Labels, `key=value`, that the items have all; empty for all items. */
  readonly labels: readonly string[]
  /** The start of the time that was chosen; null for all. */
  readonly from: Date | null
}

export const isFiltered = ({ kind, name, labels, from }: ItemFilter): boolean =>
  kind !== null || name !== '' || labels.length > 0 || from !== null

/** The label of a filter that is nothing else; null for other filters. */
export const soleLabelOf = ({ kind, name, labels, from }: ItemFilter): string | null =>
  kind === null && name === '' && from === null && labels.length === 1 ? (labels[0] ?? null) : null

/** Pictures may be older than 1970. */
const before = new Date('0001-01-01T00:00:00Z')

/** What a clock of this place shows at a time, as if it were UTC: cameras are mostly at the place of their people. */
const shownByClock = (time: Date): Date => new Date(time.valueOf() - time.getTimezoneOffset() * 60_000)

/**
 * The query for the items from `start` on, in an order; from the start if `start` is null. Includes `start` and other items of
 * its millisecond, or of its name. Every query by time has a time, because the items are then in the order of their times
 * (docs/interface.md, K9): lists in both orders, and from any item on, have one order.
 */
export function queryFrom(order: ListOrder, filter: ItemFilter, start: Media | null): ItemOptions {
  const kind = filter.kind ?? undefined
  const name = filter.name || undefined
  const labels = filter.labels.length > 0 ? Object.fromEntries(filter.labels.map(splitLabel)) : undefined
  if (isByName(order))
    return {
      ...{ order, kind, name, labels, from: filter.from ?? undefined },
      startName: start === null ? undefined : (start.filename ?? ''),
    }
  const from = filter.from === null ? before : isByTaken(order) ? shownByClock(filter.from) : filter.from
  if (start === null) return { order, kind, name, labels, from }
  const at = Date.parse(timeOf(order, start))
  return isDescending(order)
    ? { order, kind, name, labels, from, to: new Date(at + 1) }
    : { order, kind, name, labels, from: new Date(at) }
}

/** Whether an item is after another in an order, by their times or names. */
export function isAfter(order: ListOrder, item: Media, other: Media): boolean {
  const difference = isByName(order)
    ? compareNames(item.filename, other.filename)
    : Date.parse(timeOf(order, item)) - Date.parse(timeOf(order, other))
  return isDescending(order) ? difference < 0 : difference > 0
}

export function reverse(order: ListOrder): ListOrder {
  const { first, last } = directions[keyOf(order)]
  return order === first ? last : first
}
