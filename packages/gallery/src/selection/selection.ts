import { computed, type ReadonlySignal, signal } from '@preact/signals'

/** The selected items, on all pages. */
export interface Selection {
  readonly ids: ReadonlySignal<ReadonlySet<string>>
  readonly count: ReadonlySignal<number>
  /** The item from which a range begins; null if none was clicked. */
  readonly lastClicked: string | null
  toggle(id: string): void
  /** Selects the items of a list from the last one clicked to this one. */
  extendTo(id: string, page: readonly string[]): void
  add(ids: readonly string[]): void
  remove(ids: readonly string[]): void
  clear(): void
}

export function createSelection(): Selection {
  const ids = signal<ReadonlySet<string>>(new Set())
  let lastClicked: string | null = null
  const add = (added: readonly string[]) => {
    ids.value = new Set([...ids.value, ...added])
  }
  const remove = (removed: readonly string[]) => {
    const left = new Set(ids.value)
    for (const id of removed) left.delete(id)
    ids.value = left
  }
  return {
    ids,
    get lastClicked() {
      return lastClicked
    },
    count: computed(() => ids.value.size),
    toggle(id) {
      if (ids.value.has(id)) remove([id])
      else add([id])
      lastClicked = id
    },
    extendTo(id, page) {
      add(rangeBetween(page, lastClicked, id))
      lastClicked = id
    },
    add,
    remove,
    clear() {
      ids.value = new Set()
      lastClicked = null
    },
  }
}

/** The entries between two of a list, both included, in either direction; `to` alone if `from` is not in the list. */
export function rangeBetween<T>(all: readonly T[], from: T | null, to: T): T[] {
  const start = from === null ? -1 : all.indexOf(from)
  const end = all.indexOf(to)
  if (end === -1) return []
  if (start === -1) return [to]
  return all.slice(Math.min(start, end), Math.max(start, end) + 1)
}
