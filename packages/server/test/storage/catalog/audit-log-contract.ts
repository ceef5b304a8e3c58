import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Actor, operator } from '../../../src/core/token-rules.ts'
import type { AuditEvent } from '../../../src/storage/catalog/audit/audit-events.ts'
import {
  type AuditLog,
  type EventBatch,
  type EventFilter,
  type RecordedEvent,
  readEvents,
} from '../../../src/storage/catalog/audit/audit-log.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { TokenId } from '../../../src/storage/catalog/records.ts'
import {
  hashOf,
  inBlobStore,
  newBucket,
  newItem,
  newItems,
  newToken,
  newUpload,
  withBytes,
} from './samples.ts'

/** Data with an audit log. `open` returns a catalog whose changes are recorded as those of `actor`. */
export type FreshLog = () => Promise<{
  readonly open: (actor: Actor | null) => Promise<Catalog>
  readonly openLog: () => Promise<AuditLog>
}>

const ada = operator('ada')
const client: Actor = {
  kind: 'client',
  tokenId: 'tok_1',
  subject: null,
  address: '203.0.113.7',
  requestId: 'f3b1d6c0-0000-4000-8000-000000000001',
}
const all: EventFilter = {
  since: null,
  until: null,
  buckets: null,
  target: null,
  tokenId: null,
  action: null,
}

/** The audit log of every catalog engine. */
export function describeAuditLog(engine: string, fresh: FreshLog): void {
  async function opened(actor: Actor | null = ada) {
    const data = await fresh()
    const [catalog, log] = [await data.open(actor), await data.openLog()]
    onTestFinished(async () => {
      await log.close()
      await catalog.close()
    })
    async function events(filter: Partial<EventFilter> = {}): Promise<RecordedEvent[]> {
      const found: RecordedEvent[] = []
      for await (const batch of readEvents(log, { ...all, ...filter }, null)) found.push(...batch)
      return found
    }
    return { data, catalog, log, events, bucketId: await newBucket(catalog, 'b') }
  }
  const brief = ({ action, target, name, detail, by }: RecordedEvent) => [
    action,
    target,
    name,
    detail,
    by.kind === 'client' ? by.requestId : by.subject,
  ]

  describe(`${engine}: audit log`, () => {
    test('Y1, Y2 each change has one event, with its actor and the names of files', async () => {
      const { catalog, events, bucketId } = await opened()
      const [one, two] = [newItem({ filename: 'one.jpg' }), newItem({ filename: null })]
      await catalog.addItems(bucketId, [withBytes(one), ...inBlobStore([two])], client)
      await catalog.editItem(bucketId, one.id, { filename: '1.jpg', caption: 'secret' }, null, client)
      await catalog.editItem(bucketId, one.id, { caption: 'secret' }, null, client)
      await catalog.setBucket('b', { trashDays: 3 })
      await catalog.removeItems(bucketId, [newItem().id, one.id], client)
      await catalog.restoreItems(bucketId, [one.id, two.id], client)
      await catalog.removeItems(bucketId, [one.id], client)
      await catalog.purgeItems(bucketId, [one.id], client)
      await catalog.setBucket('b', { trashDays: 0 })
      await catalog.removeItems(bucketId, [two.id], client)
      await catalog.removeItems(bucketId, [two.id], client)
      const id = client.requestId
      expect((await events()).slice(2).map(brief)).toEqual([
        ['upload', one.id, 'one.jpg', {}, id],
        ['upload', two.id, null, {}, id],
        ['edit', one.id, '1.jpg', { changed: ['filename', 'caption'] }, id],
        ['bucket-set', null, 'b', { trash_days: 3 }, 'ada'],
        ['trash', one.id, '1.jpg', {}, id],
        ['restore', one.id, '1.jpg', {}, id],
        ['trash', one.id, '1.jpg', {}, id],
        ['purge', one.id, '1.jpg', {}, id],
        ['bucket-set', null, 'b', { trash_days: 0 }, 'ada'],
        ['delete', two.id, null, {}, id],
      ])
      const [first] = await events({ target: one.id })
      expect(first).toMatchObject({ bucketId, size: 1_000, by: client })
      expect(Math.abs((first?.time ?? 0) - Date.now())).toBeLessThan(60_000)
    })

    test('Y1 the deletion of a bucket is one event, of its first step; a setting that does not change is none', async () => {
      const { catalog, events, bucketId } = await opened()
      await catalog.addItems(bucketId, inBlobStore([newItem(), newItem(), newItem()]))
      expect(await catalog.setBucket('b', { trashDays: 2, maxItems: null })).toBe(true)
      expect(await catalog.setBucket('b', { trashDays: 2 })).toBe(true)
      const recorded = async () =>
        (await events()).filter(({ action }) => action.startsWith('bucket-')).map(brief)
      const expected = [
        ['bucket-create', null, 'b', {}, 'ada'],
        ['bucket-set', null, 'b', { trash_days: 2 }, 'ada'],
        ['bucket-delete', null, 'b', {}, 'ada'],
      ]
      expect((await catalog.deleteBucketChunk(bucketId, 1, 1)).isDeleted).toBe(false)
      expect(await recorded()).toEqual(expected)
      while (!(await catalog.deleteBucketChunk(bucketId, 1, 1)).isDeleted);
      expect(await recorded()).toEqual(expected)
    })

    test('Y1 the keys that sign URLs have events, without their secrets', async () => {
      const { catalog, events } = await opened()
      const key = (id: string) => ({ id, secret: new Uint8Array(32).fill(7), createdAt: 1 })
      await catalog.addSigningKey(key('first'), true)
      await catalog.addSigningKey(key('second'), true)
      expect(await catalog.removeSigningKey('first')).toBe(true)
      expect(await catalog.removeSigningKey('first')).toBe(false)
      expect((await events()).filter(({ action }) => action.startsWith('key-')).map(brief)).toEqual([
        ['key-create', 'first', null, {}, 'ada'],
        ['key-remove', 'first', null, {}, 'ada'],
      ])
    })

    test('Y1 tokens and buckets have events, without the hash of a token', async () => {
      const { catalog, log, events, bucketId } = await opened()
      expect(await catalog.createBucket('c', { maxItems: 5 }, 1)).toBe(true)
      expect(await catalog.createBucket('c', { maxItems: 5 }, 1)).toBe(false)
      const grantor = 'b' as TokenId
      const { bucket: _, ...granted } = newToken('granted', { expiresAt: 1_900_000_000_000 })
      await catalog.grantToken(bucketId, grantor, granted, client)
      const successor = {
        ...{ id: 'next' as TokenId, hash: hashOf('next'), createdAt: 1, expiresAt: null },
        ...{ replaces: granted.id, replacedUntil: 1_800_000_000_000 },
      }
      await catalog.rotateToken(bucketId, grantor, successor, client)
      await catalog.revokeToken(granted.id, 5, client)
      await catalog.revokeToken(granted.id, 6, client)
      await catalog.restoreToken(granted.id, client)
      await catalog.restoreToken(granted.id, client)
      await catalog.recordUpkeep({ kind: 'fsck', finishedAt: 1, faults: 2 })
      while (!(await catalog.deleteBucketChunk(bucketId, 10, 1)).isDeleted);
      const id = client.requestId
      const expires_at = new Date(1_900_000_000_000).toISOString()
      const scopes = ['media:read', 'media:write']
      expect((await events()).map(brief)).toEqual([
        ['bucket-create', null, 'b', {}, 'ada'],
        ['token-create', 'b', 'b', { scopes, expires_at: null }, 'ada'],
        ['bucket-create', null, 'c', { max_items: 5 }, 'ada'],
        ['token-create', 'granted', 'granted', { scopes, expires_at }, id],
        [
          'token-rotate',
          'next',
          null,
          {
            replaces: 'granted',
            replaced_until: new Date(1_800_000_000_000).toISOString(),
            expires_at: null,
          },
          id,
        ],
        ['token-revoke', 'granted', 'granted', {}, id],
        ['token-restore', 'granted', 'granted', {}, id],
        ['fsck', null, null, { faults: 2 }, 'ada'],
        ['bucket-delete', null, 'b', {}, 'ada'],
      ])
      const names = await log.bucketNames()
      expect([...names.values()].toSorted()).toEqual(['b', 'c'])
      expect(names.get(bucketId)).toBe('b')
    })

    test('J5, Y1 the creation of a bucket by the first request of a user has one event with the user', async () => {
      const { catalog, events } = await opened()
      const by = { ...client, subject: 'https://issuer.example.org|anna', address: null, requestId: null }
      for (const id of ['first', 'second'])
        await catalog.addUser(newToken(id, { hash: hashOf('user'), bucket: 'anna' }), { maxItems: 5 }, by)
      expect((await events()).slice(2)).toMatchObject([
        { action: 'bucket-create', name: 'anna', detail: { max_items: 5 }, by },
      ])
    })

    test('Y1 resumable and repeated uploads have one event for each item', async () => {
      const { catalog, events, bucketId } = await opened()
      const upload = newUpload(bucketId, { length: 1_000 })
      await catalog.createUpload(upload)
      const item = newItem({ id: upload.itemId, size: 1_000 })
      expect(await catalog.finishUpload(upload.id, { ...item, bytes: null }, 5, client)).toBe(true)
      expect(await catalog.finishUpload(upload.id, { ...item, bytes: null }, 5, client)).toBe(false)
      const request = {
        ...{ tokenId: 'b' as TokenId, key: 'k', fingerprint: hashOf('k') },
        ...{ now: 0, expiresAt: 9e12 },
      }
      const keyed = newItem()
      await catalog.addItemsOnce(bucketId, inBlobStore([keyed]), request, client)
      await catalog.addItemsOnce(bucketId, inBlobStore([newItem()]), request, client)
      const uploads = await events({ action: 'upload' })
      expect(uploads.map(({ target }) => target)).toEqual([item.id, keyed.id])
    })

    test('Y1 a change that fails has no event, and uploads that share a transaction keep their actors', async () => {
      const { catalog, events, bucketId } = await opened()
      await catalog.setBucket('b', { maxItems: 30 })
      const items = newItems(40)
      const results = await Promise.allSettled(
        items.map((item, index) =>
          catalog.addItems(bucketId, [withBytes(item)], { ...client, requestId: `${index}` }),
        ),
      )
      const stored = items.flatMap(({ id }, index) =>
        results[index]?.status === 'fulfilled' ? [[id, `${index}`]] : [],
      )
      expect(stored).toHaveLength(30)
      const uploads = await events({ action: 'upload' })
      expect(uploads.map(({ target, by }) => [target, by.requestId]).toSorted()).toEqual(stored.toSorted())
    })

    test('Y8 downloads keep their own times, and the names that they have', async () => {
      const { catalog, events, bucketId } = await opened()
      const item = newItem({ filename: 'one.jpg' })
      await catalog.addItems(bucketId, inBlobStore([item]))
      const now = Date.now()
      const download = { action: 'download', by: client, bucketId, target: item.id, size: 1_000 } as const
      const times = [now - 4_000, now - 2_000]
      const [first, second] = times
      await catalog.recordEvents([
        { ...download, name: 'earlier.jpg', detail: { range: '0-9' }, time: now - 4_000 },
        { ...download, name: null, time: now - 2_000 },
      ])
      const found = await events({ action: 'download' })
      expect(found.map(({ time }) => time)).toEqual(times)
      expect(found.map(brief)).toEqual([
        ['download', item.id, 'earlier.jpg', { range: '0-9' }, client.requestId],
        ['download', item.id, null, {}, client.requestId],
      ])
      const timesOf = async (filter: Partial<EventFilter>) =>
        (await events({ action: 'download', ...filter })).map(({ time }) => time)
      expect(await timesOf({ since: now - 3_000 })).toEqual([second])
      expect(await timesOf({ until: now - 3_000 })).toEqual([first])
      expect(await timesOf({ target: item.id, tokenId: client.tokenId })).toEqual(times)
    })

    test('Y5 links of several items are one event, which is selected by each of them', async () => {
      const { catalog, events, bucketId } = await opened()
      const [one, two, three] = newItems(3)
      const ids = [one, two].map((item) => item?.id ?? '')
      const link = { action: 'link', by: client, bucketId } as const
      const now = Date.now()
      await catalog.recordEvents([
        { ...link, target: ids[0] ?? '', detail: { download: true }, time: now - 4_000 },
        { ...link, target: null, detail: { items: ids }, time: now - 3_000 },
        // More than a batch.
        ...Array.from({ length: 600 }, (_, index) => ({
          ...link,
          target: ids[1] ?? '',
          time: now - 2_000 + index,
        })),
      ])
      const count = async (filter: Partial<EventFilter>) => (await events(filter)).length
      expect(await count({ action: 'link' })).toBe(602)
      expect((await events({ target: ids[0] ?? '' })).map(({ target }) => target)).toEqual([ids[0], null])
      expect(await count({ target: ids[1] ?? '' })).toBe(601)
      expect(await count({ target: ids[1] ?? '', since: now - 2_500, tokenId: client.tokenId })).toBe(600)
      expect(await count({ target: three?.id ?? '' })).toBe(0)
      expect(await count({ target: ids[1] ?? '', buckets: [] })).toBe(0)
    })

    test('Y3 without an actor nothing is recorded', async () => {
      const { catalog, events, bucketId } = await opened(null)
      await catalog.addItems(bucketId, inBlobStore(newItems(2)), client)
      expect(await events()).toEqual([])
    })

    test('Y5 events are selected by time, bucket, item, token and action, in batches', async () => {
      const { catalog, events, bucketId } = await opened()
      const other = await newBucket(catalog, 'other')
      const items = newItems(1_200)
      await catalog.addItems(bucketId, inBlobStore(items), client)
      const [last] = (await events()).slice(-1)
      const [item] = items
      await catalog.addItems(other, inBlobStore(newItems(1)), { ...client, tokenId: 'tok_2' })
      await catalog.removeItems(bucketId, [items[0]?.id ?? newItem().id], client)
      const count = async (filter: Partial<EventFilter>) => (await events(filter)).length
      expect((await events({ action: 'upload', buckets: [bucketId] })).map(({ target }) => target)).toEqual(
        items.map(({ id }) => id),
      )
      expect(await count({ target: item?.id ?? null })).toBe(2)
      expect(await count({ target: item?.id ?? null, action: 'delete' })).toBe(1)
      expect(await count({ tokenId: 'tok_2' })).toBe(1)
      expect(await count({ tokenId: 'tok_2', buckets: [bucketId] })).toBe(0)
      expect(await count({ buckets: [bucketId, other] })).toBe(await count({}))
      expect(await count({ buckets: [] })).toBe(0)
      const time = last?.time ?? 0
      expect((await count({ until: time })) + (await count({ since: time }))).toBe(await count({}))
      expect(await count({ since: time + 60_000 })).toBe(0)
      expect(new Set((await events()).map(({ uid }) => uid)).size).toBe(await count({}))
    })

    test('Y4 old events are removed in steps, earliest first', async () => {
      const { catalog, events, bucketId } = await opened()
      const items = newItems(50)
      for (const item of items) await catalog.addItems(bucketId, inBlobStore([item]))
      const later = Date.now() + 1_000
      expect(await catalog.removeEvents(Date.now() - 60_000, 100)).toBe(0)
      expect(await catalog.removeEvents(later, 20)).toBe(20)
      expect((await events()).map(({ target }) => target)).toEqual(items.slice(18).map(({ id }) => id))
      while ((await catalog.removeEvents(later, 20)) === 20);
      expect((await events()).length).toBeLessThanOrEqual(1)
      await catalog.addItems(bucketId, inBlobStore(newItems(1)))
      expect((await events()).length).toBeGreaterThanOrEqual(1)
    })

    test('Y5 a follower ends after the end of its range of times', async () => {
      const { catalog, log, bucketId } = await opened()
      await catalog.addItems(bucketId, inBlobStore(newItems(2)))
      const seen: string[] = []
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
      onTestFinished(() => void vi.useRealTimers())
      const filter = { ...all, action: 'upload', until: Date.now() + 1 } as const
      for await (const batch of readEvents(log, filter, new AbortController().signal)) {
        seen.push(...batch.flatMap(({ target }) => target ?? []))
        vi.setSystemTime(Date.now() + 60_000)
      }
      expect(seen).toHaveLength(2)
    })

    test('Y5, Y9 of thousands of events, each selection has its few', async () => {
      const { catalog, events, bucketId } = await opened()
      const other = await newBucket(catalog, 'c')
      const recorded = Array.from({ length: 2_600 }, (_, at): AuditEvent => {
        const isLink = at % 500 === 9
        return {
          action: isLink ? 'link' : at % 1_000 === 7 ? 'upload' : 'download',
          by: { ...client, tokenId: at % 900 === 3 ? 'tok_2' : 'tok_1' },
          bucketId: at % 800 === 5 ? other : bucketId,
          target: isLink ? null : at % 700 === 1 ? 'rare' : 'frequent',
          ...(isLink && { detail: { items: ['rare', `${at}`] } }),
        }
      })
      for (let done = 0; done < recorded.length; done += 200)
        await catalog.recordEvents(recorded.slice(done, done + 200))
      const whole = await events()
      const hasTarget = ({ target, detail }: RecordedEvent) =>
        target === 'rare' || (Array.isArray(detail['items']) && detail['items'].includes('rare'))
      for (const [filter, selects] of [
        [{ action: 'upload' }, ({ action }) => action === 'upload'],
        [{ action: 'upload', buckets: [bucketId] }, ({ action }) => action === 'upload'],
        [
          { action: 'download', buckets: [other] },
          (one) => one.action === 'download' && one.bucketId === other,
        ],
        [{ buckets: [other] }, (one) => one.bucketId === other],
        [{ buckets: [bucketId, other] }, (one) => one.bucketId !== null],
        [{ buckets: [] }, () => false],
        [{ tokenId: 'tok_2' }, ({ by }) => by.tokenId === 'tok_2'],
        [{ target: 'rare' }, hasTarget],
        [{ target: 'rare', action: 'link' }, (one) => one.action === 'link'],
        [{ target: 'frequent', action: 'upload' }, ({ action }) => action === 'upload'],
        [{ since: 0, until: 1 }, () => false],
      ] as const satisfies readonly (readonly [Partial<EventFilter>, (event: RecordedEvent) => boolean])[])
        expect(await events(filter), JSON.stringify(filter)).toEqual(whole.filter(selects))
    })

    test('Y9 a reader that continues with cursors receives each event once, whatever is recorded in between', async () => {
      const { catalog, log, bucketId } = await opened()
      const items = newItems(40)
      const add = (from: number, to: number) =>
        Promise.all(items.slice(from, to).map((item) => catalog.addItems(bucketId, inBlobStore([item]))))
      await add(0, 10)
      const filter = { ...all, action: 'upload' } as const
      const seen: (string | null)[] = []
      let after: string | null = null
      let added = 10
      while (seen.length < items.length) {
        const batch: EventBatch = await log.read(filter, after, 3)
        seen.push(...batch.events.map(({ target }) => target))
        after = batch.next
        if (added < items.length) await add(added, added + 5)
        added += 5
      }
      expect(seen.toSorted()).toEqual(items.map(({ id }) => id).toSorted())
      expect(await log.read(filter, after, 3)).toMatchObject({ events: [], hasMore: false })
      const changed = ['9:1:/1////', '1:2:9/1////', `//9:${'9'.repeat(20)}:/1//`]
      for (const cursor of ['', 'x', '1.5', `${after}x`, "0:0:'/1///", ...changed])
        await expect(log.read(filter, cursor, 3), cursor).rejects.toMatchObject({ code: 'cursor-malformed' })
    })

    test('Y5 a follower receives each later event once, also of another process', async () => {
      const { data, catalog, log, bucketId } = await opened()
      const other = await data.open(client)
      onTestFinished(() => other.close())
      const ended = new AbortController()
      const seen: string[] = []
      const items = newItems(60)
      const following = (async () => {
        for await (const batch of readEvents(log, { ...all, action: 'upload' }, ended.signal))
          seen.push(...batch.flatMap(({ target }) => target ?? []))
      })()
      await catalog.addItems(bucketId, inBlobStore(items.slice(0, 20)))
      await expect.poll(() => seen.length, { timeout: 10_000 }).toBe(20)
      await Promise.all(
        items
          .slice(20)
          .map((item, index) => (index % 2 ? other : catalog).addItems(bucketId, inBlobStore([item]))),
      )
      await expect.poll(() => seen.length, { timeout: 10_000 }).toBe(60)
      ended.abort()
      await following
      expect(seen.toSorted()).toEqual(items.map(({ id }) => id).toSorted())
    })
  })
}
