import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { formatHash, hasWrongPage, parseHash, type Route } from './hash-route.ts'

/** The address of the page, as signals that follow the browser's back and forward. */
export interface Router {
  readonly page: ReadonlySignal<number>
  readonly item: ReadonlySignal<string | null>
  /** A new entry in the browser's history. */
  go(route: Route): void
  /** The same entry, changed. */
  replace(route: Route): void
  close(): void
}

export function createRouter(): Router {
  const read = () => {
    const there = parseHash(location.hash)
    if (hasWrongPage(location.hash)) history.replaceState(null, '', formatHash(there))
    return there
  }
  const route = signal(read())
  const follow = () => {
    route.value = read()
  }
  // Besides the hash being typed over, `popstate` is what back and forward tell after pushState.
  addEventListener('hashchange', follow)
  addEventListener('popstate', follow)
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
      removeEventListener('hashchange', follow)
      removeEventListener('popstate', follow)
    },
  }
}
