import type { Client, Page } from '@mediabucket/client'
import { batch, computed, effect, type ReadonlySignal, signal } from '@preact/signals'
import type { Router } from '../routing/router.ts'
import type { Connection } from '../service/connection.ts'
import { errorMessage, isUnauthorized, isUnreachable } from '../service/errors.ts'
import { mediaIdOf } from './media-id.ts'

/** The page that the address names. */
export interface Listing {
  /** The page shown; of another number than the address while that one loads. Null before the first. */
  readonly page: ReadonlySignal<Page | null>
  readonly ids: ReadonlySignal<readonly string[]>
  readonly loading: ReadonlySignal<boolean>
  /** Why there is no page; null while there is one or one is coming. */
  readonly fault: ReadonlySignal<string | null>
  reload(): Promise<void>
  /**
   * Looks for changes by others, and shows them in place; true when there were some. Leaves the page alone while another
   * one loads, or while `mayShow` is false after the answer.
   */
  refresh(mayShow: () => boolean): Promise<boolean>
  close(): void
}

export function createListing(client: Client, router: Router, connection: Connection): Listing {
  const page = signal<Page | null>(null)
  const loading = signal(true)
  const fault = signal<string | null>(null)
  let under = new AbortController()
  /** Of the page shown; null where the service sent none. */
  let etag: string | null = null

  async function load(number: number): Promise<void> {
    under.abort()
    under = new AbortController()
    const { signal: abort } = under
    loading.value = true
    try {
      const next = await connection.watch(() => client.listPageUnless(null, number, { signal: abort }))
      if (next === null) return
      etag = next.etag
      batch(() => {
        page.value = next.page
        fault.value = null
        loading.value = false
      })
    } catch (error) {
      if (abort.aborted || isUnauthorized(error)) return
      // A page that was shown stays; the banner tells that it may be old.
      const stays = isUnreachable(error) && page.value?.current_page === number
      batch(() => {
        fault.value = stays ? null : errorMessage(error)
        loading.value = false
      })
    }
  }

  async function refresh(mayShow: () => boolean): Promise<boolean> {
    const number = router.page.value
    if (loading.value || page.value?.current_page !== number) return false
    const { signal: abort } = under
    try {
      const next = await connection.watch(() => client.listPageUnless(etag, number, { signal: abort }))
      if (next === null || abort.aborted || !mayShow()) return false
      etag = next.etag
      page.value = next.page
      return true
    } catch {
      // The connection and the session learn of it; the page stays.
      return false
    }
  }

  const reload = () => load(router.page.value)
  const stop = effect(() => void load(router.page.value))
  connection.onBack(() => void reload())
  return {
    page,
    ids: computed(() => page.value?.data.map(mediaIdOf).filter((id) => id !== '') ?? []),
    loading,
    fault,
    reload,
    refresh,
    close() {
      stop()
      under.abort()
    },
  }
}
