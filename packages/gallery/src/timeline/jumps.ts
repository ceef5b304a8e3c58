import type { Client } from '@mediabucket/client'
import type { ListOrder } from '@mediabucket/client/rules'
import { batch, type ReadonlySignal, signal } from '@preact/signals'
import type { Connection } from '../service/connection.ts'
import { errorMessage, isUnauthorized } from '../service/connection.ts'
import {
  chunk,
  findOnPage,
  loadEnd,
  loadFrom,
  loadStart,
  type OpenList,
  pageSize,
  type Window,
} from './load-window.ts'
import type { LoadedPart } from './loaded-part.ts'

/** Functions that replace the loaded items by others of the list. */
export interface Jumps {
  /** Whether items that replace the loaded ones are being loaded. */
  readonly loading: ReadonlySignal<boolean>
  /** Why they could not be loaded; null if they are loaded or loading. */
  readonly error: ReadonlySignal<string | null>
  /** Aborted when the next jump starts. */
  readonly abort: AbortSignal
  /** Replaces the loaded items by those around a position, from 0. */
  goTo(position: number): Promise<void>
  /** Replaces them by those from the first item of a numbered page on, or by the last ones if there is no such page. Only in the order `oldest`. */
  goToPage(page: number): Promise<void>
  goToStart(): Promise<void>
  goToEnd(): Promise<void>
  close(): void
}

export interface JumpParts {
  readonly client: Client
  readonly connection: Connection
  readonly order: ReadonlySignal<ListOrder>
  readonly total: ReadonlySignal<number | null>
  readonly loaded: ReadonlySignal<LoadedPart | null>
  readonly open: OpenList
  /** A jump has started: the loaded items are not extended any more. */
  onStart(): void
  show(window: Window): void
}

export function createJumps({ client, connection, order, total, loaded, ...parts }: JumpParts): Jumps {
  const loading = signal(true)
  const error = signal<string | null>(null)
  let aborter = new AbortController()

  /** Replaces the loaded items. `load` returns null if they cannot be found. */
  async function replace(load: () => Promise<Window | null>): Promise<void> {
    aborter.abort()
    aborter = new AbortController()
    const { signal: abort } = aborter
    parts.onStart()
    loading.value = true
    try {
      const window = await load()
      if (abort.aborted) return
      batch(() => {
        if (window !== null) parts.show(window)
        error.value = null
        loading.value = false
      })
    } catch (reason) {
      if (abort.aborted || isUnauthorized(reason)) return
      batch(() => {
        error.value = loaded.peek() === null || !connection.lost.peek() ? errorMessage(reason) : null
        loading.value = false
      })
    }
  }

  const goToStart = () => replace(() => loadStart(parts.open, order.value))
  const goToEnd = () => replace(() => loadEnd(parts.open, order.value, total.peek() ?? 0))

  return {
    loading,
    error,
    get abort() {
      return aborter.signal
    },
    async goTo(position) {
      const count = total.peek()
      if (count === null || position <= 0) return goToStart()
      if (position >= count - chunk / 2) return goToEnd()
      await replace(async () => {
        const uploaded = order.value === 'oldest' ? position : count - 1 - position
        const start = await findOnPage(
          client,
          connection,
          Math.floor(uploaded / pageSize) + 1,
          uploaded % pageSize,
        )
        return start && (await loadFrom(parts.open, order.value, start, position))
      })
    },
    async goToPage(page) {
      if (page === 1) return goToStart()
      await replace(async () => {
        const start = await findOnPage(client, connection, page, 0)
        if (start === null) return await loadEnd(parts.open, order.value, total.peek() ?? 0)
        return await loadFrom(parts.open, order.value, start, (page - 1) * pageSize)
      })
    },
    goToStart,
    goToEnd,
    close: () => aborter.abort(),
  }
}
