import type { ItemBucket } from './item-buckets.ts'

/** A request to the service. */
export interface ItemRequest {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

/** A kind of request; `next` returns one after the other. */
interface ItemCase {
  readonly id: string
  /**
   * Of a search by name or labels: the required 95th percentile among a million items, in milliseconds. That of a search by name may grow with
   * the number of items (docs/architecture/listing.md, Search by name).
   */
  readonly searchTime?: number
  /** Whether the lists have no items; otherwise each has some. */
  readonly isEmpty?: true
  readonly next: (bucket: ItemBucket, at: number) => ItemRequest
}

const items = (query: Readonly<Record<string, string>>): ItemRequest => ({
  method: 'GET',
  path: `/api/items?${new URLSearchParams(query)}`,
})

/** A different one for each request, spread over all of them. */
const spread = <T>(all: readonly T[], at: number): T => {
  const found = all[(at * 7_919) % all.length]
  if (found === undefined) throw new Error('the bucket is empty')
  return found
}
/** A number below the number of items, of an item that `seed` gives a name with this number. */
const numberEndingIn = (digit: number, { items: count }: ItemBucket, at: number) =>
  Math.floor((((at * 7_919) % 1_009) / 1_009) * (count / 10)) * 10 + digit
const time = (milliseconds: number) => new Date(milliseconds).toISOString()
const sampleTime = ({ samples }: ItemBucket, at: number) => spread(samples, at).createdAt
/** Milliseconds: a hundredth of the time in which the items were added. */
const windowOf = ({ samples }: ItemBucket) =>
  Math.max(1, Math.round(((samples.at(-1)?.createdAt ?? 0) - (samples[0]?.createdAt ?? 0)) / 100))

export const reads: readonly ItemCase[] = [
  { id: 'newest first', next: () => items({ order: 'newest' }) },
  { id: 'oldest first', next: () => items({}) },
  { id: 'after a cursor', next: ({ cursors }, at) => items({ after: spread(cursors.oldest, at) }) },
  {
    id: 'after a cursor, newest first',
    next: ({ cursors }, at) => items({ order: 'newest', after: spread(cursors.newest, at) }),
  },
  { id: 'kind', next: () => items({ order: 'newest', kind: 'audio' }) },
  { id: 'time', next: (bucket, at) => items({ from: time(sampleTime(bucket, at)) }) },
  {
    id: 'kind and time',
    next: (bucket, at) => {
      const middle = sampleTime(bucket, at)
      const distance = windowOf(bucket)
      return items({ kind: 'document', from: time(middle - distance), to: time(middle + distance) })
    },
  },
  {
    id: 'numbered page',
    next: ({ pages }, at) => ({
      method: 'GET',
      path: `/api/media?page=${1 + ((at * 7_919 * 101) % pages)}`,
    }),
  },
  { id: 'last page', next: ({ pages }) => ({ method: 'GET', path: `/api/media?page=${pages}` }) },
  ...(
    [
      ['one item', { 'label.one': '' }],
      ['one item in a thousand', { 'label.some': '' }],
      ['nine items in ten', { 'label.most': '' }],
      ['two labels', { 'label.most': '', 'label.half': '' }],
    ] as const
  ).map(([id, query]) => ({
    id: `label: ${id}`,
    searchTime: 5,
    next: () => items({ order: 'newest', ...query }),
  })),
  { id: 'name: a common word', searchTime: 10, next: () => items({ order: 'newest', name: 'photo' }) },
  {
    id: 'name: one name in a thousand',
    searchTime: 10,
    next: (_, at) => items({ name: `${at % 10}34.bmp` }),
  },
  {
    id: 'name: a rare word',
    searchTime: 200,
    next: (bucket, at) => items({ name: `clip-${numberEndingIn(5, bucket, at)}.mp3` }),
  },
  { id: 'name: part of a word', searchTime: 10, next: () => items({ name: 'nvoic' }) },
  { id: 'name: no match', searchTime: 200, isEmpty: true, next: () => items({ name: 'qzxqzx' }) },
  {
    id: 'name: two words',
    searchTime: 200,
    next: (bucket, at) => items({ name: `${numberEndingIn(3, bucket, at)} invoice` }),
  },
  {
    id: 'name: two frequent words that no name has together',
    searchTime: 200,
    isEmpty: true,
    next: () => items({ name: 'invoice clip' }),
  },
]

export const writes: readonly ItemCase[] = [
  {
    id: 'PATCH of a caption',
    next: ({ samples }, at) => ({
      method: 'PATCH',
      path: `/api/media/${spread(samples, at).id}`,
      body: { caption: `caption ${at}` },
    }),
  },
  {
    id: 'PATCH of a name',
    next: ({ samples }, at) => ({
      method: 'PATCH',
      path: `/api/media/${spread(samples, at).id}`,
      body: { filename: `name ${at}.jpg` },
    }),
  },
  {
    id: 'DELETE to the trash',
    next: ({ samples }, at) => ({ method: 'DELETE', path: `/api/media/${spread(samples, at).id}` }),
  },
  // Of the same items, because each case has as many requests as the one before it.
  {
    id: 'restore',
    next: ({ samples }, at) => ({
      method: 'POST',
      path: '/api/trash/restore',
      body: { ids: [spread(samples, at).id] },
    }),
  },
]
