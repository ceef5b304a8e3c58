import { computed, type ReadonlySignal } from '@preact/signals'
import type { Preferences } from '../preferences.ts'
import { formatChoice, type ListChoice, noChoice, parseChoice } from '../routing/list-choice.ts'
import type { Router } from '../routing/router.ts'
import { type ItemFilter, kindChoices, type Order, timeChoices } from './item-list-query.ts'

/** What the timeline shows, as the address names it. */
export interface ShownList {
  readonly filter: ReadonlySignal<ItemFilter>
  readonly order: ReadonlySignal<Order>
  readonly view: ReadonlySignal<'grid' | 'list'>
  /** Changes the address, and the order and the view of the next visit. Adds an entry to the browser's history, or replaces the current one if `replace`. */
  choose(changes: Partial<ListChoice>, replace?: boolean): void
}

export function createShownList(router: Router, preferences: Preferences): ShownList {
  const order = computed(() => router.list.value.order)
  const view = computed(() => router.list.value.view)
  const chosenFilter = computed(() => {
    const { kind, time, name } = router.list.value
    return formatChoice({ ...noChoice, kind, time, name })
  })
  const filter = computed((): ItemFilter => {
    const { kind, time, name } = parseChoice(new URLSearchParams(chosenFilter.value))
    return { kind: kindChoices[kind], name, from: timeChoices[time](Date.now()) }
  })
  return {
    filter,
    order,
    view,
    choose(changes, replace = false) {
      const next = { page: null, item: null, list: { ...router.list.peek(), ...changes } }
      if (replace) router.replace(next)
      else router.go(next)
      if (changes.order) preferences.order.value = changes.order
      if (changes.view) preferences.layout.value = changes.view
    },
  }
}
