import { computed, type ReadonlySignal } from '@preact/signals'
import type { ItemFilter } from './item-list-query.ts'
import type { ItemCount } from './loaded-part.ts'

/** The exact numbers of matches of filters, kept until the number of all items changes or `forget` is called. */
export function createKnownCounts(total: ReadonlySignal<number | null>) {
  const counts = computed(() => ({ total: total.value, byFilter: new Map<string, number>() }))
  return {
    /** The known number if there is one, otherwise what the loaded items show. */
    of(filter: ItemFilter, seen: ItemCount): ItemCount {
      const count = seen.isExact ? undefined : counts.value.byFilter.get(JSON.stringify(filter))
      return count === undefined || count < seen.count ? seen : { count, isExact: true }
    },
    keep(filter: ItemFilter, { count, isExact }: ItemCount): void {
      if (isExact) counts.peek().byFilter.set(JSON.stringify(filter), count)
    },
    forget: () => counts.peek().byFilter.clear(),
  }
}
