import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import {
  type Client,
  createClient,
  createItemStore,
  type ItemStore,
  type ItemStoreOptions,
} from '../../packages/client/src/index.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { newBucket, newToken } from './buckets.ts'

let server: TestServer
beforeAll(async () => {
  server = await startServer({ MEDIABUCKET_ADDRESS_RATE: 'off' })
})
afterAll(() => server[Symbol.asyncDispose]())

const add = (client: Client, name: string, labels: Record<string, string> = {}) =>
  client.upload(new Blob([name], { type: 'text/plain' }), { filename: `${name}.txt`, labels })

async function bucketOf(count: number): Promise<Client> {
  const client = await newBucket(server, 'listed')
  for (let index = 1; index <= count; index += 1) await add(client, `${index}`)
  return client
}

/** An open list, which is closed when the test ends. */
function open(client: Client, options: ItemStoreOptions): ItemStore {
  const store = createItemStore(client, options)
  store.open()
  onTestFinished(() => store.close())
  return store
}

const names = ({ state }: ItemStore) => state.items.map(({ filename }) => filename?.replace('.txt', ''))
const shows = (store: ItemStore, ...expected: string[]) =>
  until(`the items ${expected}`, () => JSON.stringify(names(store)) === JSON.stringify(expected))

test('K4, K5 a list is read page by page to its end, and calls at the same time read one page', async () => {
  const client = await bucketOf(7)
  const store = open(client, { order: 'newest', batchSize: 3 })
  expect(store.state).toEqual({ items: [], status: 'loading', error: null, hasMore: false })
  await shows(store, '7', '6', '5')
  expect(store.state).toMatchObject({ status: 'ready', hasMore: true })
  await Promise.all([store.loadMore(), store.loadMore()])
  expect(names(store)).toEqual(['7', '6', '5', '4', '3', '2'])
  await store.loadMore()
  expect([names(store).length, store.state.hasMore]).toEqual([7, false])
  await store.loadMore()
  expect(names(store)).toHaveLength(7)
})

test('a list that is not live changes when it is read again, and keeps the objects of unchanged items', async () => {
  const client = await bucketOf(3)
  const store = open(client, { order: 'newest', batchSize: 3 })
  await shows(store, '3', '2', '1')
  const before = store.state.items
  await client.update(before[1]?.id ?? '', { caption: 'changed' })
  await store.reload()
  const { items } = store.state
  expect([items[0] === before[0], items[1] === before[1], items[1]?.caption]).toEqual([
    true,
    false,
    'changed',
  ])
})

test('a first page that the page of the app has brings no request until more is read', async () => {
  const client = await bucketOf(3)
  const options = { order: 'newest', batchSize: 2 } as const
  const initial = await client.itemPage(options)
  const asked: string[] = []
  const fetch: typeof globalThis.fetch = (url, init) => {
    asked.push(`${url}`)
    return globalThis.fetch(url, init)
  }
  const store = open(createClient({ url: server.url, token: 'none', fetch }), { ...options, initial })
  expect([names(store), store.state.status, store.state.hasMore]).toEqual([['3', '2'], 'ready', true])
  expect(asked).toEqual([])
})

test('FE2 a live list shows what is added, edited and deleted by others, in its order and with its filters', async () => {
  const client = await bucketOf(2)
  const store = open(client, { order: 'name', labels: { album: 'summer' }, live: true })
  await until('the first reading', () => store.state.status === 'ready')
  const [a, c] = [await add(client, 'a', { album: 'summer' }), await add(client, 'c', { album: 'summer' })]
  await shows(store, 'a', 'c')
  const b = await add(client, 'b', { album: 'winter' })
  await client.update(b.id, { labels: { album: 'summer' } })
  await shows(store, 'a', 'b', 'c')
  await client.update(c.id, { filename: '0.txt' })
  await shows(store, '0', 'a', 'b')
  await client.delete(a.id)
  await shows(store, '0', 'b')
  await client.update(b.id, { labels: { album: null } })
  await shows(store, '0')
})

test('FE2 a live list does not show an item again that is deleted while the list is read', async () => {
  const token = await newToken(server, 'held')
  const client = createClient({ url: server.url, token })
  const one = await add(client, '1')
  await add(client, '2')
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isHeld = false
  const slow = createClient({
    ...{ url: server.url, token },
    async fetch(url, init) {
      const response = await globalThis.fetch(url, init)
      if (!isHeld || !`${url}`.includes('/api/items')) return response
      held.resolve()
      await released.promise
      return response
    },
  })
  const store = open(slow, { order: 'newest', live: true })
  await shows(store, '2', '1')
  isHeld = true
  await add(client, '3')
  await held.promise
  await client.delete(one.id)
  await shows(store, '2')
  released.resolve()
  await until('the item that was added', () => names(store).includes('3'))
  expect(names(store)).toEqual(['3', '2'])
})

test('FE2 a live list keeps the items that were read while others are added before them', async () => {
  const client = await bucketOf(4)
  const store = open(client, { order: 'newest', batchSize: 2, live: true })
  await shows(store, '4', '3')
  await store.loadMore()
  await shows(store, '4', '3', '2', '1')
  await client.uploadAll(
    ['5', '6', '7'].map((name) => ({ source: new TextEncoder().encode(name), filename: `${name}.txt` })),
  )
  await shows(store, '7', '6', '5', '4', '3', '2', '1')
  expect(store.state.hasMore).toBe(false)
})

test('an error is the state of the list; its items stay, and a further reading clears it', async () => {
  const token = await newToken(server, 'broken')
  const client = createClient({ url: server.url, token })
  await add(client, '1')
  await add(client, '2')
  let isBroken = true
  const broken = createClient({
    url: server.url,
    token,
    retry: { attempts: 1 },
    fetch: (url, init) => (isBroken ? Promise.reject(new Error('cut')) : globalThis.fetch(url, init)),
  })
  const store = open(broken, { order: 'newest' })
  await until('the failure', () => store.state.status === 'failed')
  expect(store.state.error).toMatchObject({ name: 'ConnectionError' })
  isBroken = false
  await store.reload()
  expect([names(store), store.state.status, store.state.error]).toEqual([['2', '1'], 'ready', null])
  isBroken = true
  await store.reload()
  expect([names(store), store.state.status]).toEqual([['2', '1'], 'failed'])
})

test('FE2 a live list whose feed is refused says so, also when it is read further, until it is read again', async () => {
  const token = await newToken(server, 'refused')
  const whole = createClient({ url: server.url, token })
  for (const name of ['1', '2', '3']) await add(whole, name)
  let isRefused = true
  const problem = { type: 'about:blank', title: 'Forbidden', status: 403, code: 'scope-missing' }
  const refusal = () =>
    new Response(JSON.stringify(problem), {
      status: 403,
      headers: { 'content-type': 'application/problem+json' },
    })
  const client = createClient({
    url: server.url,
    token,
    fetch: async (url, init) =>
      isRefused && `${url}`.includes('/api/changes') ? refusal() : globalThis.fetch(url, init),
  })
  const store = open(client, { live: true, batchSize: 2 })
  await until('the refusal', () => store.state.status === 'failed')
  await store.loadMore()
  expect([names(store), store.state.status, store.state.hasMore]).toEqual([['1', '2'], 'failed', true])
  expect(store.state.error).toMatchObject({ name: 'ProblemError', status: 403 })
  await store.loadMore()
  expect([names(store), store.state.status]).toEqual([['1', '2', '3'], 'failed'])
  await store.reload()
  await until('the next refusal', () => store.state.status === 'failed')
  isRefused = false
  await store.reload()
  expect([store.state.status, store.state.error]).toEqual(['ready', null])
  await add(whole, '4')
  await shows(store, '1', '2', '3', '4')
})

test('a list that was closed opens again, and a closed one sends nothing', async () => {
  const client = await bucketOf(1)
  const store = createItemStore(client, { live: true })
  store.open()
  store.close()
  store.open()
  await shows(store, '1')
  store.close()
  await add(client, '2')
  await store.loadMore()
  await store.reload()
  expect(names(store)).toEqual(['1'])
  store.open()
  await shows(store, '1', '2')
  store.close()
})
