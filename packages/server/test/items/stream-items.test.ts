import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { expect, test } from 'vitest'
import { TickQueue } from '../../src/core/tasks.ts'
import type { AddKeys, ListItems } from '../../src/items/item-list-operations.ts'
import { ItemStreams, readLines } from '../../src/items/item-list-routes.ts'
import type { BucketId, ItemDetails, TokenId } from '../../src/storage/catalog/records.ts'
import { serve } from '../http/exchange.ts'
import { storedItem } from '../storage/catalog/samples.ts'

const item = (expiresAt: number | null): ItemDetails => storedItem({ expiresAt })

const query = {
  order: 'oldest',
  kind: null,
  from: null,
  to: null,
  name: null,
  limit: 50,
  after: null,
} as const

const addKeys: AddKeys = async (_bucketId, items) => items

test('E2, K10 a stream omits the items that have expired when their batch is read', async () => {
  const now = Date.now()
  const [gone, later, lasting] = [item(now - 1), item(now + 3_600_000), item(null)]
  const pages = [
    { state: '1', items: [lasting, gone], next: 'after' },
    { state: '2', items: [gone, later], next: null },
  ]
  const listItems: ListItems = async (_bucketId, _query, sink) => {
    const { items, ...page } = pages.shift() ?? expect.unreachable()
    await sink.add(items)
    return page
  }
  const stream = {
    bucketId: 1 as BucketId,
    query,
    formatter: async () => (one: ItemDetails) => `${one.id}\n`,
  }
  const read = (after: string | null) =>
    readLines({ listItems, addKeys }, stream, { after, limit: 50 }, async () => undefined)
  expect(await read(null)).toMatchObject({ text: `${lasting?.id}\n`, next: 'after' })
  expect(await read('after')).toMatchObject({ text: `${later?.id}\n`, next: null })
})

test('K10 a stream whose client is gone before it begins is not counted', async () => {
  const streams = new ItemStreams({
    addKeys,
    listItems: async () => ({ state: '1', next: null }),
    tickQueue: new TickQueue(),
  })
  const ended: Promise<unknown>[] = []
  const listener: RequestListener = async (request, response) => {
    if (request.url === '/late') {
      const closed = once(response, 'close')
      ended.push(closed)
      await closed
    }
    const stream = {
      tokenId: 'token' as TokenId,
      bucketId: 1 as BucketId,
      query,
      formatter: async () => () => '',
    }
    const lines = await streams.open(response, stream).catch(() => null)
    response.writeHead(lines === null ? 503 : 200)
    if (lines === null) response.end()
    else lines.pipe(response)
  }
  await serve(listener, async (port) => {
    const url = `http://127.0.0.1:${port}`
    for (let request = 0; request < 20; request += 1) {
      const aborting = new AbortController()
      const refused = expect(fetch(`${url}/late`, { signal: aborting.signal })).rejects.toThrow('aborted')
      await expect.poll(() => ended.length).toBe(request + 1)
      aborting.abort()
      await Promise.all([refused, ended[request]])
    }
    expect((await fetch(`${url}/now`)).status).toBe(200)
  })
})
