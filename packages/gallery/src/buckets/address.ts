import { computed, type ReadonlySignal, signal } from '@preact/signals'

/** The columns by which the buckets are sorted. */
const columns = ['name', 'items', 'bytes', 'created'] as const
export type Column = (typeof columns)[number]

/** The orders of `GET /api/buckets` (docs/interface.md BK2), the first of each column being the one that a first click chooses. */
export const ordersOf = {
  name: ['name', 'name-desc'],
  items: ['items', 'items-asc'],
  bytes: ['bytes', 'bytes-asc'],
  created: ['created-desc', 'created'],
} as const satisfies Record<Column, readonly [string, string]>
export type BucketOrder = (typeof ordersOf)[Column][number]

/** Whether the first row of an order has the least value. */
export const isAscending = (order: BucketOrder): boolean =>
  order === 'name' || order === 'created' || order.endsWith('-asc')

export const columnOf = (order: BucketOrder): Column =>
  columns.find((column) => order.startsWith(column)) ?? 'name'

/** Which buckets are listed. */
export interface ListedBuckets {
  readonly order: BucketOrder
  /** What their names begin with. */
  readonly name: string
}

const parts = ['tokens', 'webhooks', 'files'] as const
/** What is shown of a bucket, besides its settings and its usage. */
export type BucketPart = (typeof parts)[number]

/** What an address such as `#buckets?order=bytes` or `#buckets/holiday/tokens` shows. */
export type ServicePlace =
  | ({ readonly at: 'list' } & ListedBuckets)
  | { readonly at: 'bucket'; readonly bucket: string; readonly part: BucketPart | null }

/** Every other address is that of the whole list. */
function parsePlace(hash: string): ServicePlace {
  const [, bucket, name] = /^#buckets\/([a-z0-9][a-z0-9-]{0,62})(?:\/([a-z]+))?(?:\?|$)/.exec(hash) ?? []
  if (bucket !== undefined) return { at: 'bucket', bucket, part: parts.find((part) => part === name) ?? null }
  const fields = new URLSearchParams(/^#buckets\?(.*)$/s.exec(hash)?.[1] ?? '')
  const order = Object.values(ordersOf)
    .flat()
    .find((known) => known === fields.get('order'))
  return { at: 'list', order: order ?? 'name', name: prefixOf(fields.get('name') ?? '') }
}

export function formatPlace(place: ServicePlace): string {
  if (place.at === 'bucket') return `#buckets/${place.bucket}${place.part === null ? '' : `/${place.part}`}`
  const fields = new URLSearchParams()
  if (place.order !== 'name') fields.set('order', place.order)
  if (place.name !== '') fields.set('name', place.name)
  return `#buckets${fields.size === 0 ? '' : `?${fields}`}`
}

/** What the addresses of the files of a bucket begin with. */
export const filesPrefix = (bucket: string): string => `#buckets/${bucket}/files?`

/** The beginning of a name, as typed. No name has upper-case letters or spaces. */
export const prefixOf = (typed: string): string => typed.trim().toLowerCase().slice(0, 63)

/** The address of the pages of a service, which follows the browser's history. */
export interface ServiceAddress {
  /** Another object only if the place changes. */
  readonly place: ReadonlySignal<ServicePlace>
  /** The address of the list that was shown last. */
  readonly listHash: ReadonlySignal<string>
  /** Adds an entry to the browser's history. */
  go(hash: string): void
  /** Shows another list. Replaces the current entry of the browser's history. */
  list(listed: Partial<ListedBuckets>): void
  close(): void
}

export function createServiceAddress(): ServiceAddress {
  const read = () => formatPlace(parsePlace(location.hash))
  const hash = signal(read())
  const place = computed(() => parsePlace(hash.value))
  const listHash = signal(place.peek().at === 'list' ? hash.peek() : '#buckets')
  const enter = () => {
    hash.value = read()
    if (place.peek().at === 'list') listHash.value = hash.peek()
  }
  if (place.peek().at === 'list') history.replaceState(null, '', hash.peek())
  addEventListener('hashchange', enter)
  addEventListener('popstate', enter)
  return {
    place,
    listHash,
    go(next) {
      history.pushState(null, '', next)
      enter()
    },
    list(listed) {
      const now = parsePlace(listHash.peek())
      if (now.at === 'list') history.replaceState(null, '', formatPlace({ ...now, ...listed }))
      enter()
    },
    close() {
      removeEventListener('hashchange', enter)
      removeEventListener('popstate', enter)
    },
  }
}
