import {
  type Client,
  ConnectionError,
  type ItemOptions,
  type LabelOptions,
  type Media,
} from '@mediabucket/client'
import type { ListOrder } from '@mediabucket/client/rules'
import { signal } from '@preact/signals'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Connection } from '../src/service/connection.ts'
import { compareNames } from '../src/timeline/name-order.ts'
import { type ItemFilter, queryFrom } from '../src/timeline/shown-list.ts'
import { createTimeline } from '../src/timeline/timeline.ts'

const itemOf = (second: number): Media => ({
  ...{ id: `${second}`, url: `/media/${second}`, filename: 'lake.jpg', content_type: 'image/jpeg' },
  ...{ size: 1, sha256: '00', width: null, height: null, variants: null },
  created_at: new Date(second * 1000).toISOString(),
})

const search: ItemFilter = { kind: null, name: 'lake', labels: [], from: null }

/** The timeline of a search with 300 matches, newest first, or of another filter and number. */
function searched(chosen = search, count = 300) {
  const bucket = { items: Array.from({ length: count }, (_, index) => itemOf(count - index)), fails: false }
  const client = {
    async labels({ key }: LabelOptions = {}) {
      const values = [{ value: '42', items: bucket.items.length }]
      return [{ key: key ?? '', values, has_more: false }]
    },
    async *items({ to = new Date(1e9), order }: ItemOptions) {
      if (bucket.fails) throw new ConnectionError('No response')
      const items = bucket.items.filter((item) => Date.parse(item.created_at) < to.valueOf())
      yield* order === 'newest' ? items : items.toReversed()
    },
  } as Partial<Client> as Client
  const connection = {
    watch: (request) => request(),
    onRestored: () => undefined,
    get lost() {
      return signal(bucket.fails)
    },
  } as Partial<Connection> as Connection
  const order = signal<ListOrder>('newest')
  const timeline = createTimeline({
    ...{ client, connection, mediaCache: { put: () => undefined }, total: signal(null) },
    ...{ active: signal(true), order, place: signal(null) },
    filter: signal<ItemFilter>(chosen),
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

test('G18 after a lost connection, a refresh loads the items of the order that was chosen before', async () => {
  const { bucket, timeline, order } = searched()
  await timeline.goToStart()
  bucket.fails = true
  order.value = 'oldest'
  await vi.waitFor(() => expect(timeline.loading.value).toBe(false))
  expect([timeline.ids.value[0], timeline.outdated.value]).toEqual(['300', true])
  expect(await timeline.refresh()).toBe(false)
  bucket.fails = false
  expect(await timeline.refresh()).toBe(true)
  expect([timeline.ids.value[0], timeline.outdated.value]).toEqual(['1', false])
  timeline.close()
})

test('G33 the number of matches is exact if the first chunk has all of them', async () => {
  const { timeline } = searched(search, 100)
  await timeline.goToStart()
  expect(timeline.matches.value).toEqual({ count: 100, isExact: true })
  timeline.close()
})

test('G33, K15 the number of files with a label is that of the service, before all are loaded', async () => {
  const { timeline, bucket } = searched({ ...search, name: '', labels: ['album=42'] })
  await timeline.goToStart()
  await expect.poll(() => timeline.matches.value).toEqual({ count: 300, isExact: true })
  bucket.items = bucket.items.slice(20)
  expect(await timeline.refresh()).toBe(true)
  await expect.poll(() => timeline.matches.value).toEqual({ count: 280, isExact: true })
  timeline.close()
  // With another filter, the number is not known.
  const other = searched({ ...search, labels: ['album=42'] }).timeline
  await other.goToStart()
  expect(other.matches.value).toEqual({ count: 100, isExact: false })
  other.close()
})

test('G18 a list by the time of cameras continues after the last loaded item, by its time', async () => {
  // Uploaded in the reverse order.
  const all = Array.from({ length: 300 }, (_, index) => ({
    ...itemOf(300 - index),
    taken_at: `${new Date(Date.UTC(1969, 11, 31, 23, 59) + index * 1000).toISOString().slice(0, -1)}+02:00`,
  }))
  const requests: ItemOptions[] = []
  const client = {
    async *items(options: ItemOptions) {
      requests.push(options)
      const { from, order } = options
      const at = ({ taken_at }: { readonly taken_at: string }) => Date.parse(`${taken_at.slice(0, 23)}Z`)
      const items = all.filter((item) => at(item) >= (from?.valueOf() ?? 0))
      yield* order === 'taken' ? items : items.toReversed()
    },
  } as Partial<Client> as Client
  const connection = {
    watch: (request) => request(),
    onRestored: () => undefined,
  } as Partial<Connection> as Connection
  const timeline = createTimeline({
    ...{ client, connection, mediaCache: { put: () => undefined }, total: signal(300) },
    ...{ active: signal(true), order: signal<ListOrder>('taken'), place: signal(null) },
    filter: signal<ItemFilter>({ kind: null, name: '', labels: [], from: null }),
  })
  await timeline.goToStart()
  expect(timeline.total.value).toBeNull()
  timeline.trim(0, 10)
  await timeline.extend(true)
  expect(timeline.ids.value).toEqual(all.slice(0, 190).map(({ id }) => id))
  expect(requests.every(({ order }) => order === 'taken')).toBe(true)
  timeline.close()
})

test('G18 a list by name continues before and after the loaded items, by their names, some of which are equal', async () => {
  const all = Array.from({ length: 300 }, (_, index) => ({
    ...itemOf(300 - index),
    // The numbers of names have their values. The last item has no name.
    filename: index === 0 ? null : `${index % 2 === 0 ? 'LAKE' : 'lake'} ${Math.floor(index / 7)}.jpg`,
  }))
  const starts: (string | undefined)[] = []
  const client = {
    async *items({ startName, order, from }: ItemOptions) {
      starts.push(startName)
      expect(from).toBeUndefined()
      const list = order === 'name' ? all : all.toReversed()
      const sign = order === 'name' ? 1 : -1
      yield* list.filter(
        ({ filename }) => startName === undefined || sign * compareNames(filename, startName) >= 0,
      )
    },
  } as Partial<Client> as Client
  const connection = {
    watch: (request) => request(),
    onRestored: () => undefined,
  } as Partial<Connection> as Connection
  const order = signal<ListOrder>('name')
  const timeline = createTimeline({
    ...{ client, connection, mediaCache: { put: () => undefined }, total: signal(300) },
    ...{ active: signal(true), order, place: signal(null) },
    filter: signal<ItemFilter>({ kind: null, name: '', labels: [], from: null }),
  })
  const expected = { name: all.map(({ id }) => id), 'name-desc': all.map(({ id }) => id).toReversed() }
  for (const direction of ['name', 'name-desc'] as const) {
    order.value = direction
    await timeline.goToStart()
    expect(timeline.total.value).toBeNull()
    for (let more = 0; more < 2; more += 1) await timeline.extend(true)
    expect(timeline.ids.value).toEqual(expected[direction])
    timeline.trim(150, 10)
    expect(await timeline.refresh()).toBe(true)
    expect(timeline.ids.value).toEqual(expected[direction].slice(150, 290))
    for (let more = 0; more < 2; more += 1) await timeline.extend(false)
    await timeline.extend(true)
    expect(timeline.ids.value).toEqual(expected[direction])
  }
  expect(starts.filter((start) => start !== undefined).length).toBeGreaterThan(3)
  timeline.close()
})

test.each(['name', 'name-desc', 'oldest'] as const)(
  'G18 a refresh keeps the loaded part among 2,000 items of one name or time, in the order %s',
  async (order) => {
    const at = (index: number): Media => ({ ...itemOf(1), id: `${index}` })
    const all = Array.from({ length: 2000 }, (_, index) => at(index))
    const bucket = { items: all, read: 0 }
    const client = {
      async *items(options: ItemOptions) {
        for (const item of options.order === order ? bucket.items : bucket.items.toReversed()) {
          bucket.read += 1
          yield item
        }
      },
    } as Partial<Client> as Client
    const connection = {
      watch: (request) => request(),
      onRestored: () => undefined,
    } as Partial<Connection> as Connection
    const timeline = createTimeline({
      ...{ client, connection, mediaCache: { put: () => undefined }, total: signal(null) },
      ...{ active: signal(true), order: signal<ListOrder>(order), place: signal(null) },
      filter: signal<ItemFilter>({ kind: null, name: '', labels: [], from: null }),
    })
    await timeline.goToStart()
    for (let more = 0; more < 7; more += 1) await timeline.extend(true)
    timeline.trim(500, 0)
    const ids = (from: number, to: number) => all.slice(from, to).map(({ id }) => id)
    const refreshed = async () => {
      bucket.read = 0
      expect(await timeline.refresh()).toBe(true)
      return timeline.ids.value
    }
    expect(await refreshed()).toEqual(ids(500, 800))
    // The items before the part, those of the part, and two that follow it.
    expect(bucket.read).toBe(802)

    // Others delete the first and the last loaded item and those around them. Items that follow take the places of the deleted ones.
    bucket.items = [...all.slice(0, 490), ...all.slice(510, 790), ...all.slice(810)]
    expect(await refreshed()).toEqual([...ids(510, 790), ...ids(810, 830)])

    // Others restore items among the loaded ones.
    const restored = Array.from({ length: 5 }, (_, index) => at(5000 + index))
    const place = bucket.items.findIndex(({ id }) => id === '600')
    bucket.items = bucket.items.toSpliced(place, 0, ...restored)
    const shown = bucket.items.map(({ id }) => id)
    const [first, end] = [shown.indexOf('510'), shown.indexOf('830')]
    expect(await refreshed()).toEqual(shown.slice(first, end))

    await timeline.extend(true)
    await timeline.extend(false)
    expect(timeline.ids.value).toEqual(shown.slice(first - 100, end + 100))
    timeline.close()
  },
)

test('G18 the last day is that of the clocks of cameras in a list by their time', () => {
  const offset = vi.spyOn(Date.prototype, 'getTimezoneOffset').mockReturnValue(-120)
  onTestFinished(() => offset.mockRestore())
  const filter = { kind: null, name: '', labels: [], from: new Date('2026-11-25T12:00:00Z') }
  const from = (order: ListOrder) => queryFrom(order, filter, null).from
  expect([from('newest'), from('oldest')]).toEqual([filter.from, filter.from])
  const shown = new Date('2026-11-25T14:00:00Z')
  expect([from('taken'), from('taken-desc')]).toEqual([shown, shown])
})
