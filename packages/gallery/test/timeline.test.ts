import type { Client, ItemOptions, Media } from '@mediabucket/client'
import { signal } from '@preact/signals'
import { expect, test } from 'vitest'
import type { Connection } from '../src/service/connection.ts'
import type { ItemFilter, Order } from '../src/timeline/item-list-query.ts'
import { createTimeline } from '../src/timeline/timeline.ts'

const itemOf = (second: number): Media => ({
  ...{ id: `${second}`, url: `/media/${second}`, filename: 'lake.jpg', content_type: 'image/jpeg' },
  ...{ size: 1, sha256: null, width: null, height: null, variants: null },
  created_at: new Date(second * 1000).toISOString(),
})

/** The timeline of a search with 300 matches, newest first. */
function searched() {
  const bucket = { items: Array.from({ length: 300 }, (_, index) => itemOf(300 - index)) }
  const client = {
    async *items({ to = new Date(1e9) }: ItemOptions) {
      yield* bucket.items.filter((item) => Date.parse(item.created_at) < to.valueOf())
    },
  } as Partial<Client> as Client
  const connection = {
    watch: (request) => request(),
    onRestored: () => undefined,
  } as Partial<Connection> as Connection
  const total = signal<number | null>(null)
  const filter = signal<ItemFilter>({ kind: null, name: 'lake', from: null })
  const timeline = createTimeline({
    ...{ client, connection, mediaCache: { put: () => undefined }, total, filter },
    ...{ active: signal(true), order: signal<Order>('newest') },
  })
  return { bucket, timeline, total, filter }
}

test('G33 the number of matches is not too high after others have deleted some that are not loaded any more', async () => {
  const { bucket, timeline } = searched()
  await timeline.goToStart()
  await timeline.extend(true)
  timeline.trim(150, 0)
  expect(timeline.matches.value).toEqual({ count: 200, isExact: false })
  bucket.items = bucket.items.slice(120)
  expect(await timeline.refresh()).toBe(true)
  expect(timeline.matches.value).toEqual({ count: 50, isExact: false })
  timeline.close()
})

test('G33 the number of matches is reduced when a person deletes some that are not loaded any more', async () => {
  const { bucket, timeline } = searched()
  await timeline.goToStart()
  await timeline.extend(true)
  timeline.trim(150, 0)
  timeline.remove(bucket.items.slice(100, 160).map(({ id }) => id))
  expect(timeline.matches.value).toEqual({ count: 140, isExact: false })
  timeline.close()
})

test('G33 a known number of matches belongs to its search, until the bucket changes', async () => {
  const { timeline, total, filter } = searched()
  const all = { count: 300, isExact: true }
  const some = { count: 100, isExact: false }
  const loadAll = async () => {
    for (let chunks = 0; chunks < 3; chunks += 1) await timeline.extend(true)
    expect(timeline.matches.value).toEqual(all)
    await timeline.goToStart()
  }
  await timeline.goToStart()
  await loadAll()
  expect(timeline.matches.value).toEqual(all)
  filter.value = { ...filter.value, name: 'other' }
  await timeline.goToStart()
  expect(timeline.matches.value).toEqual(some)
  filter.value = { ...filter.value, name: 'lake' }
  await timeline.goToStart()
  expect(timeline.matches.value).toEqual(all)
  total.value = 1000
  expect(timeline.matches.value).toEqual(some)
  await loadAll()
  // A refresh follows a change, such as an edit of a name.
  expect(await timeline.refresh()).toBe(true)
  expect(timeline.matches.value).toEqual(some)
  await loadAll()
  expect(timeline.matches.value).toEqual(all)
  timeline.remove(['150'])
  expect(timeline.matches.value?.isExact).toBe(false)
  timeline.close()
})
