import type { Client, ItemOptions, Media } from '@mediabucket/client'
import { signal } from '@preact/signals'
import { expect, test } from 'vitest'
import type { Connection } from '../src/service/connection.ts'
import type { ItemFilter, Order } from '../src/timeline/shown-list.ts'
import { createTimeline } from '../src/timeline/timeline.ts'

const itemOf = (second: number): Media => ({
  ...{ id: `${second}`, url: `/media/${second}`, filename: 'lake.jpg', content_type: 'image/jpeg' },
  ...{ size: 1, sha256: '00', width: null, height: null, variants: null },
  created_at: new Date(second * 1000).toISOString(),
})

/** The timeline of a search with 300 matches, newest first. */
function searched() {
  const bucket = { items: Array.from({ length: 300 }, (_, index) => itemOf(300 - index)) }
  const client = {
    async *items({ to = new Date(1e9), order }: ItemOptions) {
      const items = bucket.items.filter((item) => Date.parse(item.created_at) < to.valueOf())
      yield* order === 'newest' ? items : items.toReversed()
    },
  } as Partial<Client> as Client
  const connection = {
    watch: (request) => request(),
    onRestored: () => undefined,
  } as Partial<Connection> as Connection
  const order = signal<Order>('newest')
  const timeline = createTimeline({
    ...{ client, connection, mediaCache: { put: () => undefined }, total: signal(null) },
    ...{ active: signal(true), order, place: signal(null) },
    filter: signal<ItemFilter>({ kind: null, name: 'lake', label: '', from: null }),
  })
  return { bucket, timeline, order }
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

test('G33 an exact number of matches stays exact when the order changes', async () => {
  const { timeline, order } = searched()
  await timeline.goToStart()
  for (let more = 0; more < 3; more += 1) await timeline.extend(true)
  expect(timeline.matches.value).toEqual({ count: 300, isExact: true })
  order.value = 'oldest'
  await timeline.goToStart()
  expect(timeline.ids.value[0]).toBe('1')
  expect(timeline.matches.value).toEqual({ count: 300, isExact: true })
  // A refresh shows that others have changed the list.
  await timeline.refresh()
  expect(timeline.matches.value?.isExact).toBe(false)
  timeline.close()
})
