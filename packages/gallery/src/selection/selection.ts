import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { rangeBetween } from './range-between.ts'

/** The items that were picked out, on this page and others. */
export interface Selection {
  readonly ids: ReadonlySignal<ReadonlySet<string>>
  readonly count: ReadonlySignal<number>
  toggle(id: string): void
  /** Selects everything on the page between the last one touched and this one. */
  extendTo(id: string, page: readonly string[]): void
  add(ids: readonly string[]): void
  remove(ids: readonly string[]): void
  clear(): void
}

export function createSelection(): Selection {
  const ids = signal<ReadonlySet<string>>(new Set())
  let touched: string | null = null
  const add = (more: readonly string[]) => {
    ids.value = new Set([...ids.value, ...more])
  }
  const remove = (gone: readonly string[]) => {
    const left = new Set(ids.value)
    for (const id of gone) left.delete(id)
    ids.value = left
  }
  return {
    ids,
    count: computed(() => ids.value.size),
    toggle(id) {
      if (ids.value.has(id)) remove([id])
      else add([id])
      touched = id
    },
    extendTo(id, page) {
      add(rangeBetween(page, touched, id))
      touched = id
    },
    add,
    remove,
    clear() {
      ids.value = new Set()
      touched = null
    },
  }
}
