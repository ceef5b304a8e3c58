import { describe, expect, test } from 'vitest'
import { newWebhookId, newWebhookSecret, type WebhookId } from '../../../src/core/webhook-rules.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import {
  isWebhookWaiting,
  longestLease,
  passedAtOnce,
  passInterval,
  type WebhookDelivery,
} from '../../../src/storage/catalog/feed/webhook-deliveries.ts'
import type { NewWebhook, WebhookSettings } from '../../../src/storage/catalog/feed/webhooks.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { inBlobStore, newBucket, newItem, newItems } from './samples.ts'

const now = Date.now()

const settings: WebhookSettings = {
  url: 'https://example.org/hooks?key=1',
  kinds: ['added', 'removed'],
  batch: 10,
}

const newWebhook = (bucketId: BucketId): NewWebhook => ({
  ...settings,
  id: newWebhookId(),
  bucketId,
  secret: newWebhookSecret(),
  createdAt: now,
})

const delivery: WebhookDelivery = {
  messageId: 'msg_1',
  type: 'item.added',
  time: now,
  duration: 12,
  changes: 1,
  range: { first: 3, last: 4 },
  status: 204,
  reason: null,
  response: 'ok',
  isManual: false,
}

const dueIds = async (catalog: Catalog, ...parameters: Parameters<Catalog['dueWebhooks']>) =>
  (await catalog.dueWebhooks(...parameters)).map(({ id }) => id)

/** The webhooks of every catalog engine. */
export function describeWebhooks(engine: string, fresh: Fresh): void {
  async function withWebhook(catalog: Catalog) {
    const bucketId = await newBucket(catalog, 'b')
    const webhook = newWebhook(bucketId)
    await catalog.addWebhook(webhook)
    return { bucketId, webhook, id: webhook.id }
  }
  const claim = (catalog: Catalog, id: WebhookId, owner: string, lifetime = longestLease) =>
    catalog.claimWebhook(id, owner, lifetime)

  describe(`${engine}: webhooks`, () => {
    test('WH1, WH2 are added, changed and removed; an eleventh is refused', async () => {
      const catalog = await openOne(fresh)
      const { bucketId, webhook, id } = await withWebhook(catalog)
      const other = await newBucket(catalog, 'other')
      const { secret, ...listed } = webhook
      const expected = {
        ...listed,
        bucket: 'b',
        state: 'on',
        failures: 0,
        failingSince: null,
        nextAttempt: null,
      }
      expect(await catalog.listWebhooks(bucketId)).toEqual([expected])
      expect(await catalog.listWebhooks(other)).toEqual([])
      expect(await catalog.findWebhook(id)).toMatchObject({ ...expected, secrets: [secret], pending: null })
      expect(await catalog.setWebhook(other, id, { batch: 1 })).toBe(false)
      expect(await catalog.setWebhook(bucketId, id, { kinds: [], batch: 1, state: 'off' })).toBe(true)
      expect(await catalog.listWebhooks()).toEqual([{ ...expected, kinds: [], batch: 1, state: 'off' }])
      expect(await catalog.removeWebhook(other, id)).toBe(false)
      await catalog.recordManualDelivery(id, delivery)
      expect(await catalog.removeWebhook(bucketId, id)).toBe(true)
      expect(await catalog.findWebhook(id)).toBeNull()
      const added = await Promise.allSettled(
        Array.from({ length: 12 }, () => catalog.addWebhook(newWebhook(bucketId))),
      )
      expect(added.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
      expect(added.find(({ status }) => status === 'rejected')).toMatchObject({
        reason: { code: 'webhooks-too-many' },
      })
    })

    test('WH3 a replaced secret signs too, until its time', async () => {
      const catalog = await openOne(fresh)
      const { bucketId, webhook, id } = await withWebhook(catalog)
      const next = newWebhookSecret()
      expect(await catalog.rotateWebhookSecret(bucketId, id, next, Date.now() + 60_000)).toBe(true)
      expect((await catalog.findWebhook(id))?.secrets).toEqual([next, webhook.secret])
      await catalog.rotateWebhookSecret(bucketId, id, webhook.secret, Date.now())
      expect((await catalog.findWebhook(id))?.secrets).toEqual([webhook.secret])
    })

    test('WH5, WH6 a webhook is due while the feed has changes after its position', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      await catalog.addItems(bucketId, inBlobStore(newItems(2)))
      const webhook = newWebhook(bucketId)
      await catalog.addWebhook(webhook)
      const { id } = webhook
      expect(await catalog.listWebhookBuckets()).toEqual([bucketId])
      expect(await dueIds(catalog, 'one', now, 9)).toEqual([])
      await catalog.addItems(bucketId, inBlobStore(newItems(2)))
      expect(await dueIds(catalog, 'one', now, 9)).toEqual([id])
      const from = (await claim(catalog, id, 'one'))?.position ?? -1
      const position = (await catalog.readChanges(bucketId, from, 9))?.next ?? -1
      const attempt = { id, owner: 'one', from, outcome: { position }, delivery }
      expect(await catalog.recordAttempt(attempt)).toBe(true)
      expect(await catalog.recordAttempt(attempt)).toBe(false)
      expect(await dueIds(catalog, 'one', now, 9)).toEqual([])
      expect(await catalog.listWebhookDeliveries(id)).toEqual([{ ...delivery, number: 1 }])
    })

    test('WH5 changes of other kinds make a webhook due when they are many or have waited', async () => {
      const catalog = await openOne(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const create = async (kinds: NewWebhook['kinds']) => {
        const webhook = { ...newWebhook(bucketId), kinds }
        await catalog.addWebhook(webhook)
        return webhook.id
      }
      const [other, edited, every] = [
        await create(['expired', 'removed']),
        await create(['edited', 'removed']),
        await create([]),
      ]
      const item = newItem()
      // At this time, no change has waited.
      const before = Date.now()
      await catalog.addItems(bucketId, inBlobStore([item]))
      const due = (time = before) => dueIds(catalog, 'one', time, 9)
      expect(await due()).toEqual([every])
      expect(await due(Date.now() + passInterval)).toEqual([other, edited, every])
      await catalog.editItem(bucketId, item.id, { caption: 'x' }, null)
      // Those before it leave room for others.
      expect(await dueIds(catalog, 'one', before, 1)).toEqual([edited])
      await catalog.addItems(bucketId, inBlobStore(newItems(passedAtOnce - 2)))
      expect(await due()).toEqual([edited, every])
      await catalog.addItems(bucketId, inBlobStore(newItems(1)))
      expect(await due()).toEqual([other, edited, every])
    })

    test('WH7 one owner at a time has the lease, which ends by its time or if the clock was set back', async () => {
      const { catalog, other } = await openTwo(fresh)
      const { bucketId, id } = await withWebhook(catalog)
      await catalog.addItems(bucketId, inBlobStore(newItems(1)))
      const both = await Promise.all([claim(catalog, id, 'one'), claim(other, id, 'two')])
      expect(both.filter((one) => one !== null)).toHaveLength(1)
      const [holder, waiting] = both[0] === null ? ['two', 'one'] : ['one', 'two']
      expect(await claim(catalog, id, holder)).not.toBeNull()
      expect(await dueIds(other, waiting, now, 9)).toEqual([])
      // The clock of a process that is ahead ends no lease.
      expect(await dueIds(other, waiting, now + 2 * longestLease, 9)).toEqual([])
      const from = both.find((one) => one !== null)?.position ?? null
      const attempt = { id, from, outcome: { position: 9 }, delivery: null }
      expect(await other.recordAttempt({ ...attempt, owner: waiting })).toBe(false)
      expect(await claim(other, id, waiting)).toBeNull()
      expect(await claim(catalog, id, holder, 0)).not.toBeNull()
      // As if the clock had been set back by a minute since.
      expect(await claim(other, id, waiting, 2 * longestLease + 60_000)).not.toBeNull()
      expect(await claim(catalog, id, holder)).not.toBeNull()
      await catalog.releaseWebhooks(holder)
      expect(await claim(other, id, waiting)).not.toBeNull()
    })

    test('WH6 a failure is stored with the changes to repeat; a success, a test and the switch end the wait', async () => {
      const catalog = await openOne(fresh)
      const { bucketId, id } = await withWebhook(catalog)
      await catalog.addItems(bucketId, inBlobStore(newItems(1)))
      const from = (await claim(catalog, id, 'one'))?.position ?? null
      const fail = (failedAt: number, state: 'on' | 'failed' = 'on') =>
        catalog.recordAttempt({
          id,
          owner: 'one',
          from,
          outcome: {
            ...{ failedAt, failingFor: 5, pending: 7, nextAttempt: failedAt + 5_000 },
            ...{ state, settings },
          },
          delivery: { ...delivery, status: 500, reason: 'no' },
        })
      expect([await fail(now), await fail(now + 1)]).toEqual([true, true])
      const failing = { failingSince: now, failures: 2, nextAttempt: now + 5_001, pending: 7, position: from }
      expect(await catalog.findWebhook(id)).toMatchObject(failing)
      expect(await dueIds(catalog, 'one', now + 5_000, 9)).toEqual([])
      expect(await dueIds(catalog, 'one', now + 5_001, 9)).toEqual([id])
      expect(await catalog.recordManualDelivery(id, { ...delivery, isManual: true })).toBe(3)
      expect(await dueIds(catalog, 'one', now, 9)).toEqual([id])
      expect(await fail(now, 'failed')).toBe(true)
      expect(await catalog.statistics()).toMatchObject({ failingWebhooks: 0, stoppedWebhooks: 1 })
      expect(await catalog.findWebhook(id)).toMatchObject({ state: 'failed', position: from })
      expect(await claim(catalog, id, 'one')).toBeNull()
      await catalog.setWebhook(bucketId, id, { state: 'on' })
      expect(await catalog.findWebhook(id)).toMatchObject({
        state: 'on',
        failures: 0,
        pending: null,
        position: from,
      })
      for (let count = 0; count < 100; count += 1) await catalog.recordManualDelivery(id, delivery)
      const numbers = (await catalog.listWebhookDeliveries(id)).map(({ number }) => number)
      expect([numbers.length, numbers[0], numbers.at(-1)]).toEqual([100, 104, 5])
    })

    test.each([{ url: 'https://example.org/other' }, { kinds: [] }, { batch: 1 }])(
      'WH2, WH6 a failure of an attempt before the change %j does not count',
      async (change) => {
        const catalog = await openOne(fresh)
        const { bucketId, id } = await withWebhook(catalog)
        await catalog.addItems(bucketId, inBlobStore(newItems(1)))
        const from = (await claim(catalog, id, 'one'))?.position ?? null
        await catalog.setWebhook(bucketId, id, change)
        const outcome = {
          ...{ failedAt: now, failingFor: 0, pending: 7, nextAttempt: now + 5_000 },
          ...{ state: 'gone' as const, settings },
        }
        expect(await catalog.recordAttempt({ id, owner: 'one', from, outcome, delivery })).toBe(false)
        expect(await catalog.findWebhook(id)).toMatchObject({ state: 'on', failures: 0, pending: null })
        expect(await dueIds(catalog, 'one', now, 9)).toEqual([id])
      },
    )

    test('WH6 a wait ends early if the clock was set back behind the attempt, and not for clocks that differ a little', async () => {
      const catalog = await openOne(fresh)
      const { bucketId, id } = await withWebhook(catalog)
      await catalog.addItems(bucketId, inBlobStore(newItems(1)))
      const from = (await claim(catalog, id, 'one'))?.position ?? null
      const minute = 60_000
      const outcome = {
        ...{ failedAt: now, failingFor: 0, pending: null },
        ...{ nextAttempt: now + 5 * minute, state: 'on' as const, settings },
      }
      await catalog.recordAttempt({ id, owner: 'one', from, outcome, delivery })
      const webhook = await catalog.findWebhook(id)
      for (const [time, isDue] of [
        [now - 60 * minute, true],
        [now - minute - 1, true],
        [now - minute, false],
        [now, false],
        [now + 5 * minute - 1, false],
        [now + 5 * minute, true],
      ] as const) {
        expect(await dueIds(catalog, 'one', time, 9), `${time - now}`).toEqual(isDue ? [id] : [])
        expect(webhook && isWebhookWaiting(webhook, time)).toBe(!isDue)
      }
    })

    test('WH12 those that wait longest come first, up to four of each bucket, and none that is excepted', async () => {
      const catalog = await openOne(fresh)
      const webhooks: WebhookId[][] = []
      for (const name of ['a', 'c']) {
        const bucketId = await newBucket(catalog, name)
        const ids: WebhookId[] = []
        for (let count = 0; count < 6; count += 1) {
          const webhook = newWebhook(bucketId)
          await catalog.addWebhook(webhook)
          ids.push(webhook.id)
        }
        await catalog.addItems(bucketId, inBlobStore(newItems(1)))
        webhooks.push(ids)
      }
      const [one = [], other = []] = webhooks
      // A retry whose time has come before the last turn of the others.
      const [first, second] = one
      if (first === undefined || second === undefined) throw new Error('there is no webhook')
      for (const id of [...one, ...other]) await claim(catalog, id, 'one')
      const from = (await catalog.findWebhook(first))?.position ?? null
      const outcome = {
        ...{ failedAt: 1, failingFor: 0, pending: null, nextAttempt: 2, state: 'on' as const },
        settings,
      }
      await catalog.recordAttempt({ id: second, owner: 'one', from, outcome, delivery })
      const time = Date.now()
      const all = await dueIds(catalog, 'one', time, 99)
      expect(all[0]).toBe(second)
      expect(all.filter((id) => one.includes(id))).toEqual([second, first, one[2], one[3]])
      expect(all.filter((id) => other.includes(id))).toEqual(other.slice(0, 4))
      expect(await dueIds(catalog, 'one', time, 2)).toEqual(all.slice(0, 2))
      const rest = await dueIds(catalog, 'one', time, 99, [second, ...other.slice(0, 3)])
      expect(rest.toSorted()).toEqual([first, ...one.slice(2, 5), ...other.slice(3)].toSorted())
    })

    test('WH2 the deletion of a bucket removes its webhooks', async () => {
      const catalog = await openOne(fresh)
      const { bucketId, id } = await withWebhook(catalog)
      await catalog.recordManualDelivery(id, delivery)
      expect((await catalog.deleteBucketChunk(bucketId, 10, now)).isDeleted).toBe(true)
      expect(await catalog.listWebhooks()).toEqual([])
    })
  })
}
