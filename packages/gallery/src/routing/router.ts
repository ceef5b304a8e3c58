import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { formatHash, hasInvalidPage, parseHash, type Route } from './hash-route.ts'
import { formatChoice, type ListChoice, parseChoice } from './list-choice.ts'

/** The route in the page's URL, as signals that follow the browser's history. */
export interface Router {
  /** The number of the page; null for the timeline. */
  readonly page: ReadonlySignal<number | null>
  readonly item: ReadonlySignal<string | null>
  /** What the timeline shows, or showed before another page was opened. Changes only if its content changes. */
  readonly list: ReadonlySignal<ListChoice>
  /** Whether the trash is shown. */
  readonly trash: ReadonlySignal<boolean>
  /** Whether the list of tokens is shown. */
  readonly tokens: ReadonlySignal<boolean>
  /** The hash of a route. */
  hashOf(route: Route): string
  /** Adds an entry to the browser's history. A route to the timeline without `list` shows what it showed before. */
  go(route: Route): void
  /** Replaces the current entry of the browser's history. */
  replace(route: Route): void
  /** Shows another item, or none, on the same page. Replaces the current entry of the browser's history. */
  show(item: string | null): void
  close(): void
}

/** `preferred` is shown if the address names nothing when the page is opened. */
export function createRouter(preferred: ListChoice): Router {
  const read = () => {
    const parsed = parseHash(location.hash)
    if (hasInvalidPage(location.hash)) history.replaceState(null, '', formatHash(parsed))
    return parsed
  }
  const route = signal(read())
  const lastList = signal(formatChoice(route.peek().list) || formatChoice(preferred))
  const list = computed(() => parseChoice(new URLSearchParams(lastList.value)))

  const enter = (next: Route) => {
    if (next.list) lastList.value = formatChoice(next.list)
    route.value = next
  }
  const complete = (next: Route): Route =>
    next.page === null && !next.trash && !next.tokens ? { list: list.peek(), ...next } : next
  const hashOf = (next: Route) => formatHash(complete(next))

  const replace = (next: Route) => {
    history.replaceState(null, '', hashOf(next))
    enter(complete(next))
  }

  const update = () => enter(read())
  const { page, item, list: opened } = route.peek()
  // Adds the open list to the URL, so that Back and people who receive the URL see the same.
  if (opened && hashOf({ page, item }) !== formatHash(route.peek())) replace({ page, item })
  // A typed hash fires `hashchange`; back and forward after pushState fire `popstate`.
  addEventListener('hashchange', update)
  addEventListener('popstate', update)
  return {
    page: computed(() => route.value.page),
    item: computed(() => route.value.item),
    list,
    trash: computed(() => route.value.trash === true),
    tokens: computed(() => route.value.tokens === true),
    hashOf,
    go(next) {
      if (hashOf(next) !== formatHash(route.value)) history.pushState(null, '', hashOf(next))
      enter(complete(next))
    },
    replace,
    show: (item) => replace({ page: route.peek().page, item }),
    close() {
      removeEventListener('hashchange', update)
      removeEventListener('popstate', update)
    },
  }
}
