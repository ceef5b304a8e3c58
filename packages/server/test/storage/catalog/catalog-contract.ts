import { describe, expect, onTestFinished, test } from 'vitest'
import { describeBuckets } from './bucket-contract.ts'
import { describeEdits } from './edit-contract.ts'
import { describeExpiry } from './expiry-contract.ts'
import { describeFeed } from './feed-contract.ts'
import { describeFileSearches } from './file-search-contract.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { describeHistory } from './history-contract.ts'
import { describeIdempotency } from './idempotency-contract.ts'
import { describeItemLists } from './item-list-contract.ts'
import { describeKeys } from './key-contract.ts'
import { describeLabels } from './label-contract.ts'
import { describeManyChanges } from './many-changes-contract.ts'
import { describeManyExpired } from './many-expired-contract.ts'
import { describeMedia } from './media-contract.ts'
import { describeMultiparts } from './multipart-contract.ts'
import { describeNameSearch } from './name-search-contract.ts'
import { describeObjectKeys } from './object-key-contract.ts'
import { describeObjectLists } from './object-list-contract.ts'
import { describeQuotas } from './quota-contract.ts'
import { allPages, hashOf, inBlobStore, newBucket, newItems, newToken } from './samples.ts'
import { describeScans } from './scan-contract.ts'
import { describeServiceTokens } from './service-token-contract.ts'
import { describeTokens } from './token-contract.ts'
import { describeTrash } from './trash-contract.ts'
import { describeUploads } from './upload-contract.ts'
import { describeUsage } from './usage-contract.ts'
import { describeWebhooks } from './webhook-contract.ts'

/** The behaviour of every catalog engine. sqlite.test.ts and postgres.test.ts run the contracts; vitest's `-t` selects among them. */
export function describeCatalog(engine: string, fresh: Fresh): void {
  describeTokens(engine, fresh)
  describeServiceTokens(engine, fresh)
  describeMedia(engine, fresh)
  describeEdits(engine, fresh)
  describeTrash(engine, fresh)
  describeExpiry(engine, fresh)
  describeManyExpired(engine, fresh)
  describeItemLists(engine, fresh)
  describeFileSearches(engine, fresh)
  describeLabels(engine, fresh)
  describeBuckets(engine, fresh)
  describeKeys(engine, fresh)
  describeWebhooks(engine, fresh)
  describeUsage(engine, fresh)
  describeThreads(engine, fresh)
}

/**
 * The part that threads could change: transactions that share a commit, what other processes see, and searches. The tests of the service
 * run everything else on threads too.
 */
export function describeThreads(engine: string, fresh: Fresh): void {
  describeNameSearch(engine, fresh)
  describeScans(engine, fresh)
  describeManyChanges(engine, fresh)
  describeQuotas(engine, fresh)
  describeUploads(engine, fresh)
  describeMultiparts(engine, fresh)
  describeObjectKeys(engine, fresh)
  describeObjectLists(engine, fresh)
  describeIdempotency(engine, fresh)
  describeFeed(engine, fresh)
  describeHistory(engine, fresh)

  describe(`${engine}: data`, () => {
    test('is new until the first bucket is created', async () => {
      const catalog = await openOne(fresh)
      expect(await catalog.isNew()).toBe(true)
      await catalog.addToken(newToken('first'))
      expect(await catalog.isNew()).toBe(false)
    })

    test('has a constant epoch that no other catalog has', async () => {
      const { catalog, other } = await openTwo(fresh)
      expect(catalog.epoch).toMatch(/^\S{16,}$/)
      expect(other.epoch).toBe(catalog.epoch)
      expect((await openOne(fresh)).epoch).not.toBe(catalog.epoch)
    })

    test('persists after its process ends', async () => {
      const data = await fresh()
      const first = await data.open()
      const bucketId = await newBucket(first, 'kept')
      const items = newItems(12)
      await first.addItems(bucketId, inBlobStore(items))
      await first.close()

      const second = await data.open()
      onTestFinished(() => second.close())
      expect(await allPages(second, bucketId)).toEqual(items.map((item) => item.id))
    })

    test('passes its check if it can be read and written', async () => {
      await expect((await openOne(fresh)).checkWrites()).resolves.toBeUndefined()
    })

    test('calls before close complete, later calls are rejected', async () => {
      const data = await fresh()
      const catalog = await data.open()
      const bucketId = await newBucket(catalog, 'closing')
      const added = catalog.addItems(bucketId, inBlobStore(newItems(1)))
      await catalog.close()
      await expect(added).resolves.toBeUndefined()
      await expect(catalog.addItems(bucketId, inBlobStore(newItems(1)))).rejects.toThrow()
      await expect(catalog.findGrant(hashOf('closing'))).rejects.toThrow()
    })
  })
}
