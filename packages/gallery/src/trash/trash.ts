import type { Client, TrashedMedia } from '@mediabucket/client'
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Connection } from '../service/connection.ts'
import { errorMessage } from '../service/connection.ts'
import type { Notices } from '../shell/notices.ts'
import { strings } from '../strings.ts'

/** The deleted items that can be restored. */
export interface Trash {
  /** Those that are loaded, last deleted first; null before the first are loaded. */
  readonly items: ReadonlySignal<readonly TrashedMedia[] | null>
  readonly hasMore: ReadonlySignal<boolean>
  /** Why they could not be loaded; null if they are loaded or loading. */
  readonly error: ReadonlySignal<string | null>
  /** Loads the first items again. */
  reload(): Promise<void>
  loadMore(): Promise<void>
  /** Restores items; resolves to whether the request succeeded. Notices show the result, as for the others. */
  restore(ids: readonly string[]): Promise<boolean>
  deleteForGood(ids: readonly string[]): Promise<boolean>
  empty(): Promise<boolean>
}

/** Items that are loaded together. */
const chunk = 100

/** `onChanged` shows the items that were restored and the space that is used. */
export function createTrash(
  client: Client,
  connection: Pick<Connection, 'watch'>,
  notices: Pick<Notices, 'show'>,
  onChanged: () => Promise<void>,
): Trash {
  const items = signal<readonly TrashedMedia[] | null>(null)
  const hasMore = signal(false)
  const error = signal<string | null>(null)
  let stream = client.trash()

  async function loadMore(): Promise<void> {
    const own = stream
    const more: TrashedMedia[] = []
    try {
      let ended = false
      while (more.length < chunk && !ended) {
        const next = await connection.watch(() => own.next())
        if (next.done) ended = true
        else more.push(next.value)
      }
      if (own !== stream) return
      items.value = [...(items.value ?? []), ...more]
      hasMore.value = !ended
    } catch (reason) {
      if (own === stream) error.value = errorMessage(reason)
    }
  }

  async function reload(): Promise<void> {
    stream = client.trash()
    error.value = null
    items.value = null
    await loadMore()
  }

  function drop(ids: readonly string[]): void {
    const gone = new Set(ids)
    items.value = items.value?.filter(({ id }) => !gone.has(id)) ?? null
  }

  /** `request` resolves to the text that says what was done, and how many items were missing. */
  async function act(request: () => Promise<{ done: string; missing: number }>): Promise<boolean> {
    try {
      const { done, missing } = await connection.watch(request)
      // The files are shown again before the notice says so.
      await onChanged()
      if (done !== '') notices.show(done)
      if (missing > 0) notices.show(strings.deleted.missing(missing), { tone: 'bad' })
      return true
    } catch (reason) {
      notices.show(strings.deleted.refused(errorMessage(reason)), { tone: 'bad' })
      return false
    }
  }

  return {
    items,
    hasMore,
    error,
    reload,
    loadMore,
    restore: (ids) =>
      act(async () => {
        const { restored, missing } = await client.restore(ids)
        drop(ids)
        return {
          done: restored.length > 0 ? strings.deleted.restored(restored.length) : '',
          missing: missing.length,
        }
      }),
    deleteForGood: (ids) =>
      act(async () => {
        const { deleted, missing } = await client.deleteFromTrash(ids)
        drop(ids)
        return {
          done: deleted.length > 0 ? strings.trash.deleted(deleted.length) : '',
          missing: missing.length,
        }
      }),
    empty: () =>
      act(async () => {
        await client.emptyTrash()
        await reload()
        return { done: strings.trash.emptied, missing: 0 }
      }),
  }
}
