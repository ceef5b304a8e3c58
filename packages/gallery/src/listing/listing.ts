import type { Client, Page } from '@mediabucket/client'
import { batch, computed, effect, type ReadonlySignal, signal } from '@preact/signals'
import type { Router } from '../router.ts'
import type { Connection } from '../service/connection.ts'
import { errorMessage, isUnauthorized, isUnreachable } from '../service/connection.ts'
import type { MediaCache } from '../service/media-cache.ts'
import { mediaIdOf } from '../service/urls.ts'

/** The page of the listing that the URL names. Nothing is loaded while it names none. */
export interface Listing {
  /** The last page loaded; the previous one while another is loading. Null before the first. */
  readonly page: ReadonlySignal<Page | null>
  readonly ids: ReadonlySignal<readonly string[]>
  readonly loading: ReadonlySignal<boolean>
  /** Why the page could not be loaded; null if it is loaded or loading. */
  readonly error: ReadonlySignal<string | null>
  reload(): Promise<void>
  /**
   * Loads the current page again if it changed on the server; resolves to true if it did. Does nothing while a page is
   * loading, or if `canShow` returns false when the response arrives.
   */
  refresh(canShow: () => boolean): Promise<boolean>
  close(): void
}

export function createListing(
  client: Client,
  router: Router,
  connection: Connection,
  mediaCache: Pick<MediaCache, 'loadRow'>,
): Listing {
  const page = signal<Page | null>(null)
  const loading = signal(true)
  const error = signal<string | null>(null)
  let aborter = new AbortController()
  /** Of the page shown; null if the server sent none. */
  let etag: string | null = null

  async function load(number: number): Promise<void> {
    aborter.abort()
    aborter = new AbortController()
    const { signal: abort } = aborter
    loading.value = true
    try {
      const next = await connection.watch(() => client.listPageUnless(null, number, { signal: abort }))
      if (next === null) return
      etag = next.etag
      mediaCache.loadRow(idsOf(next.page))
      batch(() => {
        page.value = next.page
        error.value = null
        loading.value = false
      })
    } catch (reason) {
      if (abort.aborted || isUnauthorized(reason)) return
      // Without a connection the page shown stays; the connection banner explains why it may be out of date.
      const keepsPage = isUnreachable(reason) && page.value?.current_page === number
      batch(() => {
        error.value = keepsPage ? null : errorMessage(reason)
        loading.value = false
      })
    }
  }

  async function refresh(canShow: () => boolean): Promise<boolean> {
    const number = router.page.value
    if (number === null || loading.value || page.value?.current_page !== number) return false
    const { signal: abort } = aborter
    try {
      const next = await connection.watch(() => client.listPageUnless(etag, number, { signal: abort }))
      if (next === null || abort.aborted || !canShow()) return false
      etag = next.etag
      mediaCache.loadRow(idsOf(next.page))
      page.value = next.page
      return true
    } catch {
      // `watch` has handled lost connections and invalid tokens; the page shown stays.
      return false
    }
  }

  async function reload(): Promise<void> {
    const number = router.page.value
    if (number !== null) await load(number)
  }
  const stop = effect(() => void reload())
  connection.onRestored(() => void reload())
  return {
    page,
    ids: computed(() => (page.value ? idsOf(page.value) : [])),
    loading,
    error,
    reload,
    refresh,
    close() {
      stop()
      aborter.abort()
    },
  }
}

const idsOf = ({ data }: Page): readonly string[] => data.map(mediaIdOf).filter((id) => id !== '')
