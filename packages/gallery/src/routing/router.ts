import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { formatHash, hasInvalidPage, parseHash, type Route } from './hash-route.ts'

/** The route in the page's URL, as signals that follow the browser's history. */
export interface Router {
  /** The number of the page; null for the timeline. */
  readonly page: ReadonlySignal<number | null>
  readonly item: ReadonlySignal<string | null>
  /** Whether the trash is shown. */
  readonly trash: ReadonlySignal<boolean>
  /** Whether the list of tokens is shown. */
  readonly tokens: ReadonlySignal<boolean>
  /** Adds an entry to the browser's history. */
  go(route: Route): void
  /** Replaces the current entry of the browser's history. */
  replace(route: Route): void
  /** Shows another item, or none, on the same page. Replaces the current entry of the browser's history. */
  show(item: string | null): void
  close(): void
}

export function createRouter(): Router {
  const read = () => {
    const parsed = parseHash(location.hash)
    if (hasInvalidPage(location.hash)) history.replaceState(null, '', formatHash(parsed))
    return parsed
  }
  const route = signal(read())
  const update = () => {
    route.value = read()
  }
  // A typed hash fires `hashchange`; back and forward after pushState fire `popstate`.
  addEventListener('hashchange', update)
  addEventListener('popstate', update)
  const replace = (next: Route) => {
    history.replaceState(null, '', formatHash(next))
    route.value = next
  }
  return {
    page: computed(() => route.value.page),
    item: computed(() => route.value.item),
    trash: computed(() => route.value.trash === true),
    tokens: computed(() => route.value.tokens === true),
    go(next) {
      if (formatHash(next) !== formatHash(route.value)) history.pushState(null, '', formatHash(next))
      route.value = next
    },
    replace,
    show: (item) => replace({ page: route.peek().page, item }),
    close() {
      removeEventListener('hashchange', update)
      removeEventListener('popstate', update)
    },
  }
}
