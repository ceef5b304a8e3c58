import { setImmediate } from 'node:timers/promises'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { StorageMetrics } from '../../src/http/metrics.ts'
import type { CatalogStatistics } from '../../src/storage/catalog/records.ts'

const statistics: CatalogStatistics = {
  items: 3,
  bytes: 4,
  unfinishedUploads: 0,
  unfinishedBytes: 0,
  firstBucketAt: null,
  failingWebhooks: 0,
  stoppedWebhooks: 0,
  expiredItems: 0,
  waitingChanges: 0,
  logBytes: 0,
  upkeep: [],
}

test('O2 the catalog is read once for all gauges of a scrape, and again for the next scrape', async () => {
  const registry = new Registry()
  let reads = 0
  new StorageMetrics(registry).watch({
    statistics: async () => {
      reads += 1
      return { ...statistics, items: reads }
    },
    space: async () => ({ free: 1, total: 2 }),
  })
  expect(await registry.metrics()).toContain('\nmediabucket_items 1\n')
  await setImmediate()
  expect(await registry.metrics()).toContain('\nmediabucket_items 2\n')
  expect(reads).toBe(2)
})

test('O2 a value that cannot be read is NaN, and all others are shown', async () => {
  const registry = new Registry()
  new StorageMetrics(registry).watch({
    statistics: () => Promise.reject(new Error('no catalog')),
    space: async () => ({ free: 1, total: 2 }),
  })
  const text = await registry.metrics()
  expect(text).toContain('\nmediabucket_items Nan\n')
  expect(text).toContain('\nmediabucket_data_free_bytes 1\n')
})
