import type { Client, Page } from '@mediabucket/client'
import { batch, computed, effect, type ReadonlySignal, signal } from '@preact/signals'
import type { Router } from '../routing/router.ts'
import type { Connection } from '../service/connection.ts'
import { explain, isRefused, isUnreachable } from '../service/explain.ts'
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
  close(): void
}

export function createListing(client: Client, router: Router, connection: Connection): Listing {
  const page = signal<Page | null>(null)
  const loading = signal(true)
  const fault = signal<string | null>(null)
  let under = new AbortController()

  async function load(number: number): Promise<void> {
    under.abort()
    under = new AbortController()
    const { signal: abort } = under
    loading.value = true
    try {
      const next = await connection.watch(() => client.listPage(number, { signal: abort }))
      batch(() => {
        page.value = next
        fault.value = null
        loading.value = false
      })
    } catch (error) {
      if (abort.aborted || isRefused(error)) return
      // A page that was shown stays; the banner tells that it may be old.
      const stays = isUnreachable(error) && page.value?.current_page === number
      batch(() => {
        fault.value = stays ? null : explain(error)
        loading.value = false
      })
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
    close() {
      stop()
      under.abort()
    },
  }
}
