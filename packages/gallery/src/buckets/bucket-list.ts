import type { BucketManager, BucketPage, ManagedBucket } from '@mediabucket/client'
import { batch, type ReadonlySignal, signal } from '@preact/signals'
import { type Connection, errorMessage } from '../service/connection.ts'
import type { ListedBuckets } from './address.ts'

/** The buckets that are loaded, from the first one in the order. */
export interface BucketList {
  /** Null before the first are loaded. */
  readonly rows: ReadonlySignal<readonly ManagedBucket[] | null>
  /** Of all buckets that match; null before they are loaded. */
  readonly totals: ReadonlySignal<BucketPage['totals'] | null>
  readonly hasMore: ReadonlySignal<boolean>
  readonly isLoading: ReadonlySignal<boolean>
  /** Why the last request failed, and whether it was for more rows; null if it did not fail. */
  readonly error: ReadonlySignal<{ readonly reason: string; readonly isForMore: boolean } | null>
  /** Where the page was scrolled to, and the bucket that was opened, when a person left the list. */
  left: { readonly scrolled: number; readonly opened: string } | null
  /** Loads the first buckets of another order or name, or again what is shown. The earlier ones stay until they are loaded. */
  show(listed: ListedBuckets): Promise<void>
  loadMore(): Promise<void>
  /** Loads again what is shown. */
  refresh(): Promise<void>
  /** Repeats the request that failed. */
  retry(): Promise<void>
}

/** Buckets that are loaded together. */
const chunk = 100
/** The most of one request. */
const most = 500

export function createBucketList(buckets: BucketManager, connection: Connection): BucketList {
  const rows = signal<readonly ManagedBucket[] | null>(null)
  const totals = signal<BucketPage['totals'] | null>(null)
  const hasMore = signal(false)
  const isLoading = signal(false)
  const error = signal<{ readonly reason: string; readonly isForMore: boolean } | null>(null)
  let listed: ListedBuckets | null = null
  let cursor: string | null = null
  let loading = new AbortController()
  /** Repeats the last request. */
  let again = async (): Promise<void> => undefined

  /** Loads buckets behind those until there are `wanted`, and shows all of them. */
  async function load(before: readonly ManagedBucket[], from: string | null, wanted: number): Promise<void> {
    if (listed === null) return
    again = () => load(before, from, wanted)
    loading.abort()
    loading = new AbortController()
    const { signal: own } = loading
    const { order, name } = listed
    isLoading.value = true
    // By items and bytes, a bucket that changes between two requests may be in both responses.
    const loaded = new Map(before.map((bucket) => [bucket.name, bucket]))
    let after = from
    try {
      for (;;) {
        const limit = Math.min(most, Math.max(chunk, wanted - loaded.size))
        const options = { order, limit, name: name || undefined, after: after ?? undefined, signal: own }
        const page = await connection.watch(() => buckets.page(options))
        if (own.aborted) return
        for (const bucket of page.data) if (!loaded.has(bucket.name)) loaded.set(bucket.name, bucket)
        after = page.next_cursor
        if (after !== null && loaded.size < wanted) continue
        cursor = after
        batch(() => {
          rows.value = [...loaded.values()]
          totals.value = page.totals
          hasMore.value = cursor !== null
          error.value = null
          isLoading.value = false
        })
        return
      }
    } catch (reason) {
      if (own.aborted) return
      batch(() => {
        error.value = { reason: errorMessage(reason), isForMore: from !== null }
        isLoading.value = false
      })
    }
  }

  return {
    rows,
    totals,
    hasMore,
    isLoading,
    error,
    left: null,
    async show(next) {
      const isSame = next.order === listed?.order && next.name === listed.name
      listed = next
      await load([], null, isSame ? (rows.peek()?.length ?? 0) : 0)
    },
    async loadMore() {
      // The cursor belongs to the rows, not to another list that could not be loaded.
      if (isLoading.peek() || cursor === null || error.peek() !== null) return
      const before = rows.peek() ?? []
      // The longer the list, the more are loaded at once, so that the end of a long one is some requests away.
      await load(before, cursor, before.length + Math.min(most, Math.max(chunk, before.length)))
    },
    retry: () => again(),
    refresh: () => load([], null, rows.peek()?.length ?? 0),
  }
}
