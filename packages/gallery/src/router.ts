import {
  isLabelKey,
  isLabelValue,
  itemKinds,
  type ListOrder,
  listOrders,
  maxSearchLength,
  maxSearchTerms,
  maxSelectedLabels,
} from '@mediabucket/client/rules'
import { batch, computed, type ReadonlySignal, signal } from '@preact/signals'

const kindChoices = ['all', ...itemKinds] as const

const timeChoices = ['all', 'day', 'week', 'month', 'year'] as const
/** What the timeline shows, as the address names it. */
export interface ListChoice {
  readonly kind: (typeof kindChoices)[number]
  readonly time: (typeof timeChoices)[number]
  /** Words of the name; empty for all names. */
  readonly name: string
  /** Labels, `key=value`, that the items have all. Each has another key. */
  readonly labels: readonly string[]
  readonly order: ListOrder
  readonly view: (typeof views)[number]
}

const views = ['grid', 'list'] as const

/** What an address without fields shows. */
export const noChoice: ListChoice = {
  ...{ kind: 'all', time: 'all', name: '', labels: [] },
  ...{ order: 'newest', view: 'grid' },
}

/** Invalid values are ignored. */
export function parseChoice(fields: URLSearchParams): ListChoice {
  const choose = <Choice extends string>(choices: readonly Choice[], name: string, missing: Choice): Choice =>
    choices.find((choice) => choice === fields.get(name)) ?? missing
  return {
    kind: choose(kindChoices, 'kind', noChoice.kind),
    time: choose(timeChoices, 'time', noChoice.time),
    name: wordsOf(fields.get('name') ?? ''),
    labels: labelsOf(fields.getAll('label')),
    order: choose(listOrders, 'order', noChoice.order),
    view: choose(views, 'view', noChoice.view),
  }
}

/** The fields of a choice that differ from `noChoice`, in a fixed order. */
export function formatChoice(choice: ListChoice = noChoice): string {
  const { kind, time, name, labels, order, view } = choice
  const fields = new URLSearchParams()
  if (kind !== noChoice.kind) fields.set('kind', kind)
  if (time !== noChoice.time) fields.set('time', time)
  if (name !== '') fields.set('name', name)
  for (const label of labels) fields.append('label', label)
  if (order !== noChoice.order) fields.set('order', order)
  if (view !== noChoice.view) fields.set('view', view)
  return `${fields}`
}

/** The key and the value of `key=value`. */
export function splitLabel(label: string): readonly [key: string, value: string] {
  const end = label.indexOf('=')
  return [label.slice(0, end), label.slice(end + 1)]
}

/** The valid ones, of each key the last. */
function labelsOf(named: readonly string[]): string[] {
  const valid = new Map<string, string>()
  for (const label of named) {
    const [key, value] = splitLabel(label)
    if (label.includes('=') && isLabelKey(key) && isLabelValue(value)) valid.set(key, label)
  }
  return [...valid.values()].slice(0, maxSelectedLabels)
}

/** The words of a typed text, as many as the service accepts. */
export const wordsOf = (typed: string): string =>
  typed.trim().split(/\s+/).slice(0, maxSearchTerms).join(' ').slice(0, maxSearchLength).trim()

/** The route in a hash such as `#kind=video&name=harbour&item=2v8d…`. */
export interface Route {
  /** The id of the open item; null if none is open. */
  readonly item: string | null
  /** What the timeline shows. */
  readonly list?: ListChoice
  /** The numbered page (docs/interface.md, L3) at whose first item the timeline opens. The address names it until it is read. */
  readonly page?: number
  /** What is shown instead of files. Then there is no item. */
  readonly section?: Section
}

const sections = ['trash', 'tokens', 'webhooks'] as const
export type Section = (typeof sections)[number]

/** What hashes of the only bucket of a token begin with. */
const ownPrefix = '#'

/** An invalid page number is replaced by 1, an invalid item by null. Pages are in the order of uploads. */
export function parseHash(hash: string, prefix = ownPrefix): Route {
  const query = hash.startsWith(prefix) ? hash.slice(prefix.length) : ''
  const fields = new URLSearchParams(query)
  const section = sections.find((name) => query === name)
  if (section) return { item: null, section }
  const page = fields.get('page')
  const id = fields.get('item') ?? ''
  const item = /^[\w~-]+$/.test(id) ? id : null
  if (page !== null) return { item, list: { ...noChoice, order: 'oldest' }, page: pageNumberOf(page) }
  return { item, list: parseChoice(fields) }
}

/** The hash of a route, without the page. */
export function formatHash({ item, list, section }: Route, prefix = ownPrefix): string {
  if (section) return `${prefix}${section}`
  return `${prefix}${[formatChoice(list), item === null ? '' : `item=${item}`].filter(Boolean).join('&')}`
}

function pageNumberOf(typed: string): number {
  const number = Number(/^\s*0*([1-9]\d*)\s*$/.exec(typed)?.[1])
  return Number.isSafeInteger(number) ? number : 1
}

/** The route in the page's URL, as signals that follow the browser's history. */
export interface Router {
  readonly item: ReadonlySignal<string | null>
  /** What the timeline shows, or showed before a section was opened. Changes only if its content changes. */
  readonly list: ReadonlySignal<ListChoice>
  /** The page at which the timeline was to be opened last; another object each time. Null if no address has named one. */
  readonly place: ReadonlySignal<{ readonly page: number } | null>
  /** What is shown instead of files; null for files. */
  readonly section: ReadonlySignal<Section | null>
  /** The hash of a route. */
  hashOf(route: Route): string
  /** Adds an entry to the browser's history. A route to the timeline without `list` shows what it showed before. */
  go(route: Route): void
  /** Replaces the current entry of the browser's history. */
  replace(route: Route): void
  /** Shows another item, or none, in the same list. Replaces the current entry of the browser's history. */
  show(item: string | null): void
  close(): void
}

/** `preferred` is shown if the address names nothing when the page is opened. `prefix`: what the hashes of the bucket begin with. */
export function createRouter(preferred: ListChoice, prefix = ownPrefix): Router {
  const read = () => {
    const parsed = parseHash(location.hash, prefix)
    // Not kept in the address: the timeline is scrolled on from there.
    if (parsed.page !== undefined) history.replaceState(null, '', formatHash(parsed, prefix))
    return parsed
  }
  const route = signal(read())
  const lastList = signal(formatChoice(route.peek().list) || formatChoice(preferred))
  const list = computed(() => parseChoice(new URLSearchParams(lastList.value)))
  const placeOf = ({ page }: Route) => (page === undefined ? null : { page })
  const place = signal(placeOf(route.peek()))

  const enter = (next: Route) =>
    batch(() => {
      if (next.list) lastList.value = formatChoice(next.list)
      place.value = placeOf(next) ?? place.peek()
      route.value = next
    })
  const complete = (next: Route): Route => (next.section ? next : { list: list.peek(), ...next })
  const hashOf = (next: Route) => formatHash(complete(next), prefix)

  const replace = (next: Route) => {
    history.replaceState(null, '', hashOf(next))
    enter(complete(next))
  }

  const update = () => {
    // The address of another page, which replaces this one.
    if (prefix === ownPrefix || location.hash.startsWith(prefix)) enter(read())
  }
  const { item, list: opened } = route.peek()
  // Adds the open list to the URL, so that Back and people who receive the URL see the same.
  if (opened && hashOf({ item }) !== formatHash(route.peek(), prefix)) replace({ item })
  // A typed hash fires `hashchange`; back and forward after pushState fire `popstate`.
  addEventListener('hashchange', update)
  addEventListener('popstate', update)
  return {
    item: computed(() => route.value.item),
    list,
    place,
    section: computed(() => route.value.section ?? null),
    hashOf,
    go(next) {
      if (hashOf(next) !== formatHash(route.value, prefix)) history.pushState(null, '', hashOf(next))
      enter(complete(next))
    },
    replace,
    show: (item) => replace({ item }),
    close() {
      removeEventListener('hashchange', update)
      removeEventListener('popstate', update)
    },
  }
}
