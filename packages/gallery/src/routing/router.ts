import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { formatHash, hasInvalidPage, parseHash, type Route } from './hash-route.ts'

/** The route in the page's URL, as signals that follow the browser's history. */
export interface Router {
  readonly page: ReadonlySignal<number>
  readonly item: ReadonlySignal<string | null>
  /** Adds an entry to the browser's history. */
  go(route: Route): void
  /** Replaces the current entry of the browser's history. */
  replace(route: Route): void
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
  return {
    page: computed(() => route.value.page),
    item: computed(() => route.value.item),
    go(next) {
      if (formatHash(next) !== formatHash(route.value)) history.pushState(null, '', formatHash(next))
      route.value = next
    },
    replace(next) {
      history.replaceState(null, '', formatHash(next))
      route.value = next
    },
    close() {
      removeEventListener('hashchange', update)
      removeEventListener('popstate', update)
    },
  }
}
