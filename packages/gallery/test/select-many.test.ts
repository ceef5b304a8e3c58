import type { Media } from '@mediabucket/client'
import { signal } from '@preact/signals'
import { expect, test } from 'vitest'
import { createSelection, createSelectMany } from '../src/selection/selection.ts'
import type { ItemStream } from '../src/timeline/load-window.ts'

const itemOf = (id: string, second: number): Media => ({
  id,
  url: `https://media.example/media/${id}`,
  filename: null,
  content_type: 'image/jpeg',
  size: 1,
  sha256: '00',
  created_at: new Date(second * 1000).toISOString(),
  width: null,
  height: null,
})

const streamOf = (items: readonly Media[]): ItemStream => {
  let taken = 0
  return {
    get ended() {
      return taken >= items.length
    },
    take: async () => {
      // Less than a request returns, so that a range spans several.
      taken += 3
      return items.slice(taken - 3, taken)
    },
  }
}

/** Newest first; the middle ones have one time. */
const all = [
  itemOf('a', 9),
  ...['b', 'c', 'd', 'e', 'f', 'g', 'h'].map((id) => itemOf(id, 5)),
  itemOf('i', 2),
]

test.each([
  ['c', 'g', 'cdefg'],
  ['g', 'c', 'cdefg'],
  ['a', 'h', 'abcdefgh'],
  ['i', 'b', 'bcdefghi'],
])(
  'G18 a range from %s, which is not loaded, to %s has %s, also within one millisecond',
  async (from, to, range) => {
    const selection = createSelection()
    const found = (id: string) => all.find((item) => item.id === id) ?? null
    const timeline = {
      ids: signal([to]),
      order: signal('newest' as const),
      // A list begins with all items of the millisecond of its first.
      open: (start: Media | null) =>
        streamOf(all.filter((item) => item.created_at <= (start?.created_at ?? ''))),
    }
    const { extendTo } = createSelectMany(timeline, selection, {
      get: (id) => signal(found(id)),
      load: async (id) => found(id),
    })
    selection.toggle(from)
    await extendTo(to)
    expect([...selection.ids.value].toSorted().join('')).toBe(range)
  },
)
