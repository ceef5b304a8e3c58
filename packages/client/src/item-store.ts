import type { Change } from './changes.ts'
import type { Client } from './client.ts'
import { ProblemError } from './errors.ts'
import type { ItemOptions, ItemPage } from './item-list.ts'
import { maxListLimit } from './list-rules.ts'
import type { Media } from './media.ts'
import { pause } from './retry.ts'
import { Store } from './store.ts'

/** The items that have been read, at one moment. */
export interface ItemStoreState {
  readonly items: readonly Media[]
  /**
   * `ready` as soon as the first page has been read. With `failed`, `items` are those that were read before. If the feed of a live list has
   * failed, the status stays `failed` until `reload`.
   */
  readonly status: 'loading' | 'ready' | 'failed'
  /** Why the last request failed; null unless the status is `failed`. */
  readonly error: Error | null
  /** Whether `loadMore` can read further items. */
  readonly hasMore: boolean
}

/** The options of `items`. `batchSize` are the items that the start and `loadMore` read. */
export interface ItemStoreOptions extends Omit<ItemOptions, 'signal'> {
  /** Whether the items follow the changes of the bucket. They are read again after a change, at most once a second. Default: false. */
  readonly live?: boolean | undefined
  /** The first page, if the page of the app was rendered with it: `client.itemPage()` with the same options. */
  readonly initial?: ItemPage | undefined
}

/** Creates a list of items that is read page by page. Sends no request before `open`. */
export const createItemStore = (client: Client, options: ItemStoreOptions = {}): ItemStore =>
  new ItemStore(client, options)

/** Milliseconds between two readings because of changes. */
const refreshInterval = 1_000

/** A list of items that is read page by page, and follows the bucket if it is live. */
export class ItemStore extends Store<ItemStoreState> {
  readonly #client: Client
  readonly #options: ItemStoreOptions
  /** Of everything in flight, while the list is open. */
  #open: AbortController | null = null
  /** Where the next page begins; null after the last one, undefined before the first one. */
  #cursor: string | null | undefined
  /** Requests follow one another, because each begins where the one before has ended. */
  #last: Promise<void> = Promise.resolve()
  #loadingMore: Promise<void> | null = null
  #refreshing = false
  #refreshedAt = Number.NEGATIVE_INFINITY
  /** Why the list no longer follows the bucket; null while it does, and if it is not live. */
  #feedError: Error | null = null
  /** Items that may have been added since the list was read. */
  #added = 0
  /** Items that were deleted while the list is read, whose response may still have them; null while it is not read. */
  #deleted: Set<string> | null = null

  constructor(client: Client, options: ItemStoreOptions) {
    const { initial } = options
    super({
      items: initial?.data ?? [],
      status: initial === undefined ? 'loading' : 'ready',
      error: null,
      hasMore: initial !== undefined && initial.next_cursor !== null,
    })
    this.#client = client
    this.#options = options
    this.#cursor = initial?.next_cursor
  }

  /** Reads the first page, and with `live` follows the bucket until `close`. */
  open(): void {
    if (this.#open !== null) return
    this.#open = new AbortController()
    this.#feedError = null
    const { signal } = this.#open
    if (this.#options.live) void this.#follow(signal)
    else if (this.#cursor === undefined) void this.#next(() => this.#readAgain(signal), signal)
  }

  /** Ends all requests. The items stay, and `open` continues. */
  close(): void {
    this.#open?.abort()
    this.#open = null
    this.#loadingMore = null
    this.#refreshing = false
  }

  /** Reads the next page. Resolves when its items are in the list, at once if there are none. */
  async loadMore(): Promise<void> {
    const signal = this.#open?.signal
    if (signal === undefined || this.#cursor === null) return
    this.#loadingMore ??= this.#next(async () => {
      await this.#readMore(signal)
    }, signal).finally(() => {
      this.#loadingMore = null
    })
    await this.#loadingMore
  }

  /** Reads the list again, as far as it was read. A live list that had stopped to follow the bucket does so again. */
  async reload(): Promise<void> {
    const signal = this.#open?.signal
    if (signal === undefined) return
    if (this.#feedError !== null) {
      this.#feedError = null
      void this.#follow(signal)
    }
    await this.#next(() => this.#readAgain(signal), signal)
  }

  /** Runs a task after those before it. An error becomes the state of the list. */
  #next(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
    this.#last = this.#last.then(async () => {
      if (signal.aborted) return
      try {
        await task()
      } catch (error) {
        this.#fail(error, signal)
      } finally {
        this.#deleted = null
      }
    })
    return this.#last
  }

  #fail(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return
    this.replaceState({ ...this.state, status: 'failed', error: asError(error) })
  }

  async #readMore(signal: AbortSignal): Promise<void> {
    if (this.#cursor === null) return
    const { batchSize = 100 } = this.#options
    const { data, cursor } = await this.#read(this.#cursor ?? null, batchSize, signal)
    if (signal.aborted) return
    // An item whose place changes while the list is read can be in two pages.
    const known = new Set(this.state.items.map(({ id }) => id))
    this.#show([...this.state.items, ...data.filter(({ id }) => !known.has(id))], cursor)
  }

  async #readAgain(signal: AbortSignal): Promise<void> {
    const { batchSize = 100 } = this.#options
    const added = this.#added
    const count = Math.max(batchSize, this.state.items.length + added)
    const { data, cursor } = await this.#read(null, count, signal)
    if (signal.aborted) return
    this.#added -= added
    const before = new Map(this.state.items.map((item) => [item.id, item]))
    const unique = new Map(data.map((item) => [item.id, unchangedOf(before.get(item.id), item)]))
    this.#show([...unique.values()], cursor)
  }

  /** Reads up to `count` items after a cursor. A response can end early (docs/interface.md K13). */
  async #read(after: string | null, count: number, signal: AbortSignal) {
    const { live: _, initial: __, ...options } = this.#options
    const data: Media[] = []
    let cursor = after
    this.#deleted = new Set()
    do {
      const batchSize = Math.min(count - data.length, maxListLimit)
      const page = await this.#client.itemPage({ ...options, batchSize, after: cursor, signal })
      data.push(...page.data)
      cursor = page.next_cursor
    } while (cursor !== null && data.length < count)
    return { data, cursor }
  }

  #show(read: readonly Media[], cursor: string | null): void {
    const items = read.filter(({ id }) => !this.#deleted?.has(id))
    this.#cursor = cursor
    const error = this.#feedError
    this.replaceState({ items, status: error === null ? 'ready' : 'failed', error, hasMore: cursor !== null })
  }

  async #follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const after = await this.#client.latestCursor({ signal })
        // Also a list with a first page of its own, which may be older than the cursor.
        await this.#next(() => this.#readAgain(signal), signal)
        for await (const change of this.#client.changes({ after, signal })) this.#onChange(change, signal)
      } catch (error) {
        // The service no longer has the changes, so the list is read again.
        if (error instanceof ProblemError && error.problem.code === 'cursor-expired') continue
        if (!signal.aborted) this.#feedError = asError(error)
        return this.#fail(error, signal)
      }
    }
  }

  #onChange({ type, item, item_id }: Change, signal: AbortSignal): void {
    if (item === null) {
      this.#deleted?.add(item_id)
      const items = this.state.items.filter(({ id }) => id !== item_id)
      if (items.length < this.state.items.length) this.replaceState({ ...this.state, items })
      return
    }
    this.#deleted?.delete(item_id)
    if (type === 'added' || type === 'restored') this.#added += 1
    if (!this.#refreshing) void this.#refresh(signal)
  }

  async #refresh(signal: AbortSignal): Promise<void> {
    // Changes until the reading begins are part of it; those after it cause another one.
    this.#refreshing = true
    const wait = this.#refreshedAt + refreshInterval - performance.now()
    if (wait > 0) await pause(wait, signal).catch(() => {})
    await this.#next(() => {
      this.#refreshing = false
      this.#refreshedAt = performance.now()
      return this.#readAgain(signal)
    }, signal)
  }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))

/** The object that was shown before, if the item has not changed: libraries compare objects. */
function unchangedOf(before: Media | undefined, item: Media): Media {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(item) ? before : item
}
