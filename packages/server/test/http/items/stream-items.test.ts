import { expect, test } from 'vitest'
import type { BucketId, Item } from '../../../src/catalog/records.ts'
import { readBatch } from '../../../src/http/items/stream-items.ts'
import { newItem } from '../../catalog/samples.ts'

const item = (expiresAt: number | null): Item => ({
  ...newItem({ expiresAt }),
  ...{ thumbhash: null, duration: null, altText: null, caption: null },
})

test('E2, K10 a stream omits the items that have expired when their batch is read', async () => {
  const now = Date.now()
  const [gone, later, lasting] = [item(now - 1), item(now + 3_600_000), item(null)]
  const pages = [
    { state: '1', items: [lasting, gone], next: 'after' },
    { state: '2', items: [gone, later], next: null },
  ]
  const query = {
    order: 'oldest',
    kind: null,
    from: null,
    to: null,
    name: null,
    limit: 50,
    after: null,
  } as const
  const read = (after: string | null) =>
    readBatch(async () => pages.shift() ?? expect.unreachable(), { bucketId: 1 as BucketId, query }, after)
  expect(await read(null)).toEqual({ items: [lasting], next: 'after' })
  expect(await read('after')).toEqual({ items: [later], next: null })
})
