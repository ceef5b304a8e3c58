import { hash } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { newSigningKey } from '../../../src/access/signed-links.ts'
import { dayOf } from '../../../src/core/times.ts'
import { type Actor, operator, service } from '../../../src/core/token-rules.ts'
import type { WebhookId } from '../../../src/core/webhook-rules.ts'
import { type AuditLog, readEvents } from '../../../src/storage/catalog/audit/audit-log.ts'
import type { Catalog } from '../../../src/storage/catalog/catalog.ts'
import type { NewWebhook } from '../../../src/storage/catalog/feed/webhooks.ts'
import type { BucketId, NewItem, TokenId } from '../../../src/storage/catalog/records.ts'
import {
  type CatalogSource,
  type CatalogTarget,
  TransferError,
} from '../../../src/storage/catalog/transfer.ts'
import { transferRows } from '../../../src/upkeep/migration.ts'
import {
  allPages,
  contentOf,
  hashOf,
  inBlobStore,
  newBucket,
  newItem,
  newItems,
  newKey,
  newToken,
  newUpload,
  withBytes,
} from './samples.ts'

/** Empty data of one engine; each call opens it again. */
export interface Data {
  /** Changes of the actor are in the audit log. */
  open(actor?: Actor | null): Promise<Catalog>
  openLog(): Promise<AuditLog>
  openSource(): Promise<CatalogSource>
  openTarget(): Promise<CatalogTarget>
  /** Marks an item as damaged. */
  damage(item: NewItem): Promise<void>
}

const now = 1_790_000_000_000

/** Of the items of the small bucket. */
const expiry = Date.UTC(2100, 0)

/** The texts of the first two items. */
const described = { filename: 'renamed.jpg', altText: 'a text', caption: null, focus: 12_345 }

const labels = { album: '42' }

/** An item with the size and the hash of the bytes of `withBytes`. */
function newStored(): NewItem {
  const item = newItem()
  const bytes = contentOf(item)
  return { ...item, size: bytes.byteLength, sha256: new Uint8Array(hash('sha256', bytes, 'buffer')) }
}

/** The transfer of all rows from one engine to another. */
export function describeTransfer(name: string, fresh: () => Promise<{ from: Data; to: Data }>): void {
  /** Two buckets with gaps, bytes, a quota, tokens and an idempotency key. */
  const webhookOf = (bucketId: BucketId): NewWebhook => ({
    id: 'wh_1' as WebhookId,
    bucketId,
    url: 'https://example.org/',
    kinds: ['added', 'expired'],
    batch: 7,
    secret: 'whsec_secret',
    createdAt: now,
  })

  async function filled() {
    const { from, to } = await fresh()
    const catalog = await from.open()
    const [big, small] = [await newBucket(catalog, 'big'), await newBucket(catalog, 'small')]
    const items = Array.from({ length: 150 }, newStored)
    await catalog.addItems(big, [...inBlobStore(items.slice(0, 100)), ...items.slice(100).map(withBytes)])
    for (const { id } of items.filter((_, index) => index % 3 === 0)) await catalog.removeItems(big, [id])
    const thrown = items.filter((_, index) => index % 30 === 1)
    const kept = items.filter((item, index) => index % 3 !== 0 && !thrown.includes(item))
    for (const { id } of kept.slice(0, 2))
      await catalog.setPreview(big, id, { thumbhash: hashOf(id), duration: 1_500, width: 1, height: 1 })
    for (const { id } of kept.slice(0, 2)) await catalog.editItem(big, id, { ...described, labels }, null)
    await catalog.setBucket('big', { trashDays: 3, isPrivate: true, signedPages: true })
    await catalog.setBucket('big', {
      variants: ['card=9:cover', '32'],
      publicVariants: ['card'],
      crop: 'attention',
    })
    const keys = [1, 2].map(newSigningKey)
    for (const key of keys) await catalog.addSigningKey(key, false)
    await catalog.addWebhook(webhookOf(big))
    for (const item of thrown) await catalog.removeItems(big, [item.id], service, now)
    const few = Array.from({ length: 3 }, newStored).map((item) => ({
      ...item,
      expiresAt: expiry,
      labels,
      path: 'a/b.jpg',
      takenAt: 1_532_023_331_500,
      takenOffset: -210,
      takenRead: true,
      focus: 67_890,
    }))
    const request = {
      tokenId: 'small' as TokenId,
      key: 'once',
      fingerprint: hashOf('content'),
      now,
      expiresAt: now + 1,
    }
    await catalog.addItemsOnce(small, few.map(withBytes), request)
    await catalog.setBucket('small', { maxItems: 7 })
    await catalog.revokeToken('big' as TokenId, now)
    await catalog.touchToken('small' as TokenId, now + 2)
    await catalog.createUpload(newUpload(big))
    const limits = { maxItems: 9, maxBytes: null, maxFileSize: null, types: ['image/*'], itemDays: 2 }
    await catalog.addToken(newToken('limited', { bucket: 'small', limits, note: 'for you' }))
    const damaged = kept[1]
    if (!damaged) throw new Error('there are no items')
    await from.damage(damaged)
    await catalog.close()
    return { from, to, big, small, kept, thrown, few, request, damaged, keys }
  }

  async function transfer({ from, to }: { from: Data; to: Data }, steps = Number.POSITIVE_INFINITY) {
    const [source, target] = [await from.openSource(), await to.openTarget()]
    const progress: number[] = []
    let changed: readonly string[] = []
    let left = steps
    const limited: CatalogTarget = {
      ...target,
      async addItems(items) {
        left -= 1
        if (left < 0) throw new Error('interrupted')
        await target.addItems(items)
      },
    }
    try {
      const result = await transferRows({
        source,
        target: limited,
        damaged: new Set(),
        onItems: (done) => progress.push(done),
      })
      await target.finish()
      changed = result.map(({ id }) => id)
    } finally {
      await source.close()
      await target.close()
    }
    return { progress, changed }
  }

  /** Without their numbers, which are those of a catalog. */
  async function eventsOf(data: Data) {
    const log = await data.openLog()
    const filter = { since: null, until: null, buckets: null, target: null, tokenId: null, action: null }
    const events = []
    for await (const batch of readEvents(log, filter, null))
      events.push(...batch.map((event) => ({ ...event, uid: '' })))
    await log.close()
    // PostgreSQL has the order of times, SQLite that in which they were recorded.
    return events.toSorted((a, b) => a.time - b.time)
  }

  async function opened(data: Data): Promise<Catalog> {
    const catalog = await data.open()
    onTestFinished(() => catalog.close())
    return catalog
  }

  const ids = (items: readonly NewItem[]) => items.map(({ id }) => id)

  describe(`${name}: transfer of rows`, () => {
    test('order, totals, bytes, quotas, tokens and idempotency keys are preserved, and the epoch is new', async () => {
      const data = await filled()
      const { from, to, big, small, kept, thrown, few, request, damaged, keys } = data
      const { progress, changed } = await transfer(data)
      expect(changed).toEqual([])
      expect(progress.at(-1)).toBe(kept.length + thrown.length + few.length)
      const [before, after] = [await opened(from), await opened(to)]
      expect(await allPages(after, big)).toEqual(ids(kept))
      expect(await allPages(after, small)).toEqual(ids(few))
      expect(await after.listBuckets()).toEqual(
        (await before.listBuckets()).map((bucket) => ({ ...bucket, reservedItems: 0, reservedBytes: 0 })),
      )
      const trash = { items: thrown.length, bytes: thrown.reduce((sum, { size }) => sum + size, 0) }
      expect(await after.findBucketWithTrash(big)).toMatchObject({ trashDays: 3, trash })
      expect(await after.listTrash(big, null, 99, now)).toEqual(await before.listTrash(big, null, 99, now))
      expect(await after.listTokens()).toEqual(await before.listTokens())
      expect(await after.signingKeys()).toEqual(keys)
      const { secret, id } = webhookOf(big)
      expect(await after.listWebhooks()).toEqual(await before.listWebhooks())
      // The first message says that changes may be lost.
      expect(await after.findWebhook(id)).toMatchObject({ secrets: [secret], position: null })
      expect(await after.findGrant(hashOf('small'))).toMatchObject({ bucketId: small, nextExpiry: expiry })
      expect(await after.findRepeated(small, request)).toEqual(few)
      expect(after.epoch).not.toBe(before.epoch)
      const selection = { order: 'oldest', kind: null, from: null, to: null, name: null, labels } as const
      for (const [bucketId, items] of [
        [big, kept.slice(0, 2)],
        [small, few],
      ] as const) {
        const { rows } = await after.items({ ...selection, bucketId }, null, 9)
        expect(ids(rows.map(({ item }) => item))).toEqual(ids(items))
      }
      for (const item of [...kept, ...few]) {
        const moved = await after.item(item.id)
        const preview = kept.slice(0, 2).includes(item)
          ? { thumbhash: hashOf(item.id), duration: 1_500 }
          : { thumbhash: null, duration: null }
        const texts = kept.slice(0, 2).includes(item)
          ? { ...described, labels }
          : { altText: null, caption: null }
        expect(moved).toMatchObject({ ...item, ...preview, ...texts, isDamaged: item === damaged })
        const bytes = moved?.contentId == null ? null : await after.content(moved.contentId)
        const wasInCatalog = (await before.item(item.id))?.contentId !== null
        expect(bytes && Buffer.from(bytes)).toEqual(wasInCatalog ? Buffer.from(contentOf(item)) : null)
      }
    })

    test('items that are added and removed afterwards keep the order and the total exact', async () => {
      const data = await filled()
      await transfer(data)
      const catalog = await opened(data.to)
      const more = newItems(12)
      await catalog.addItems(data.big, inBlobStore(more))
      await catalog.removeItems(data.big, [data.damaged.id])
      const wanted = [...data.kept, ...more].filter((item) => item !== data.damaged)
      expect(await allPages(catalog, data.big)).toEqual(ids(wanted))
      expect((await catalog.page(data.big, 1)).total).toBe(wanted.length)
      await newBucket(catalog, 'third')
      expect(await allPages(catalog, data.small)).toEqual(ids(data.few))
    })

    test('an interrupted transfer is refused by a service, and continued by the next call', async () => {
      const data = await filled()
      await expect(transfer(data, 1)).rejects.toThrow('interrupted')
      await expect(data.to.open()).rejects.toThrow(/migration was interrupted.*again/)
      const source = await data.from.open()
      await source.removeSigningKey(data.keys[0]?.id ?? '')
      await source.close()
      const { progress } = await transfer(data)
      expect(progress[0]).toBeGreaterThan(0)
      const catalog = await opened(data.to)
      expect(await catalog.signingKeys()).toEqual(data.keys.slice(1))
      expect(await allPages(catalog, data.big)).toEqual(ids(data.kept))
      expect(await allPages(catalog, data.small)).toEqual(ids(data.few))
    })

    test('F11 buckets, tokens and keys that commands change during a transfer arrive with their changes', async () => {
      const { from, to, keys } = await filled()
      const [source, target] = [await from.openSource(), await to.openTarget()]
      await transferRows({
        ...{ source, target, damaged: new Set(), onItems() {} },
        async onCopied() {
          const catalog = await from.open()
          await catalog.setBucket('small', { maxItems: 9 })
          await catalog.revokeToken('small' as TokenId, now)
          await catalog.removeSigningKey(keys[0]?.id ?? '')
          await catalog.close()
        },
      })
      await target.finish()
      await Promise.all([source.close(), target.close()])
      const catalog = await opened(to)
      expect(await catalog.findBucketNamed('small')).toMatchObject({ maxItems: 9 })
      expect(await catalog.findGrant(hashOf('small'))).toMatchObject({ revokedAt: now })
      expect(await catalog.signingKeys()).toEqual(keys.slice(1))
    })

    test('T8 a token that is replaced between two calls has its new expiry', async () => {
      const data = await filled()
      await expect(transfer(data, 1)).rejects.toThrow('interrupted')
      const source = await data.from.open()
      const small = 'small' as TokenId
      await source.rotateToken(data.small, small, {
        ...{ id: 'next' as TokenId, hash: hashOf('next'), createdAt: now, expiresAt: null },
        ...{ replaces: small, replacedUntil: now + 5 },
      })
      await source.close()
      await transfer(data)
      const catalog = await opened(data.to)
      expect((await catalog.findToken(small))?.expiresAt).toBe(now + 5)
      expect(await catalog.findToken('next' as TokenId)).toMatchObject({ name: 'small', expiresAt: null })
    })

    test('F3 an item whose bytes have another hash is reported, and marked as damaged', async () => {
      const data = await filled()
      const catalog = await data.from.open()
      const wrong = { ...newStored(), sha256: hashOf('other bytes') }
      await catalog.addItems(data.small, [withBytes(wrong)])
      await catalog.close()
      expect((await transfer(data)).changed).toEqual([wrong.id])
      expect((await (await opened(data.to)).item(wrong.id))?.isDamaged).toBe(true)
    })

    test('F11, OK9 items arrive with their keys', async () => {
      const data = await fresh()
      const catalog = await data.from.open()
      const bucketId = await newBucket(catalog, 'b')
      const whole = { prefix: '', delimiter: null, after: null, limit: 100 }
      for (const key of ['a', '\u0000é/\u{1f600}', 'c'.repeat(1_024)])
        await catalog.putKey(bucketId, newKey(key), { mayReplace: true }, null)
      const parts = { parts: '[5,6]', isPublic: true, headers: '{"metadata":{"a":"é\\""}}' }
      await catalog.putKey(bucketId, newKey('d', newItem(), parts), { mayReplace: true }, null)
      await catalog.addItems(bucketId, [withBytes(newStored())])
      const before = await catalog.listKeys(bucketId, whole, now)
      expect(before).toHaveLength(5)
      const detailsIn = (where: Catalog, id: BucketId) =>
        Promise.all(
          before.map(async (entry) =>
            'key' in entry ? (await where.findKey(id, entry.key))?.details : null,
          ),
        )
      const details = await detailsIn(catalog, bucketId)
      expect(details[4]).toMatchObject(parts)
      await catalog.close()
      await transfer(data)
      const to = await opened(data.to)
      const copy = (await to.findBucketNamed('b'))?.id ?? bucketId
      expect(await to.listKeys(copy, whole, now)).toEqual(before)
      expect(await detailsIn(to, copy)).toEqual(details)
    })

    test('an interrupted transfer starts again if the source has changed', async () => {
      const data = await filled()
      await expect(transfer(data, 1)).rejects.toThrow('interrupted')
      const source = await data.from.open()
      const [first, ...others] = data.kept
      if (first) await source.removeItems(data.big, [first.id])
      await source.close()
      await transfer(data)
      expect(await allPages(await opened(data.to), data.big)).toEqual(ids(others))
    })

    test('F11 a source whose rows have moved is refused with their new place, until it is opened again', async () => {
      const { from } = await fresh()
      await (await from.open()).close()
      const source = await from.openSource()
      await source.moveTo('MEDIABUCKET_DATA=/new', await source.state())
      const refusal = /were moved .* use them with MEDIABUCKET_DATA=\/new, .* migrate --reopen/
      await expect(from.open()).rejects.toThrow(refusal)
      await expect(from.openLog()).rejects.toThrow(refusal)
      await source.reopen()
      await source.close()
      await (await from.open()).close()
    })

    test('F11 a source that has changed since its state was read is not marked as moved', async () => {
      const data = await filled()
      const source = await data.from.openSource()
      const state = await source.state()
      const catalog = await data.from.open()
      const [first] = data.kept
      if (first) await catalog.removeItems(data.big, [first.id])
      await expect(source.moveTo('MEDIABUCKET_DATA=/new', state)).rejects.toThrow('has changed')
      expect(await source.movedTo()).toBeNull()
      await catalog.addItems(data.big, [withBytes(newStored())], service)
      await Promise.all([source.close(), catalog.close()])
    })

    test('Y7 the audit log is copied with its times and its order, once, also if the copy is interrupted', async () => {
      const { from, to } = await fresh()
      const catalog = await from.open(operator('ann'))
      const [kept, deleted] = [await newBucket(catalog, 'kept'), await newBucket(catalog, 'deleted')]
      const items = Array.from({ length: 70 }, newStored)
      await catalog.addItems(kept, items.map(withBytes), { ...service, kind: 'client', address: '192.0.2.1' })
      for (const { id } of items.slice(0, 3)) await catalog.removeItems(kept, [id])
      const described = { action: 'link', bucketId: kept, target: items[5]?.id ?? '', by: service } as const
      await catalog.recordEvents([{ ...described, name: 'a "name"', detail: { ids: ['x'] }, time: now }])
      while (!(await catalog.deleteBucketChunk(deleted, 10, now)).isDeleted);
      await catalog.close()
      const before = await eventsOf(from)
      expect(before.length).toBeGreaterThan(74)
      // Interrupted before its last step.
      const [source, target] = [await from.openSource(), await to.openTarget()]
      await transferRows({ source, target, damaged: new Set(), onItems() {} })
      await Promise.all([source.close(), target.close()])
      await transfer({ from, to })
      expect(await eventsOf(to)).toEqual(before)
      // Events have the ids of buckets.
      expect(await newBucket(await opened(to), 'new')).toBeGreaterThan(deleted)
    })

    test('US7, F11 usage is copied once, with its open day and that of deleted buckets, also if the copy is interrupted', async () => {
      const { from, to } = await fresh()
      const catalog = await from.open()
      const today = dayOf(Date.now())
      const names = ['kept', 'gone']
      for (const name of names) await catalog.addToken(newToken(name, { bucket: name, createdAt: now }))
      const ids = await Promise.all(names.map(async (name) => (await catalog.findBucketNamed(name))?.id ?? 0))
      const requests = { listRequests: 1, downloadRequests: 2, uploadRequests: 3, otherRequests: 4 }
      for (const id of ids) {
        await catalog.addItems(id as BucketId, newItems(3).map(withBytes))
        for (const day of [today - 5, today])
          await catalog.addUsage([{ bucketId: id as BucketId, day, downloadedBytes: day, ...requests }])
      }
      while (!(await catalog.deleteBucketChunk(ids[1] as BucketId, 100, Date.now())).isDeleted);
      const usage = async (one: Catalog) => [
        await one.listUsage(today, null, 9),
        await one.listUsage(today - 5, null, 9),
      ]
      const before = await usage(catalog)
      expect(before.flat().map(({ name, deletedAt }) => [name, deletedAt === null])).toEqual([
        ...[
          ['gone', false],
          ['kept', true],
        ],
        ...[
          ['gone', false],
          ['kept', true],
        ],
      ])
      await catalog.close()
      const [source, interrupted] = [await from.openSource(), await to.openTarget()]
      const parts = { source, damaged: new Set<never>(), onItems: () => {} }
      const stop = () => Promise.reject(new Error('interrupted'))
      await expect(transferRows({ ...parts, target: interrupted, onCopied: stop })).rejects.toThrow(
        'interrupted',
      )
      await interrupted.close()
      const target = await to.openTarget()
      await transferRows({ ...parts, target })
      await target.finish()
      await Promise.all([source.close(), target.close()])
      const after = await to.open()
      onTestFinished(() => after.close())
      expect(await usage(after)).toEqual(before)
      // The next bucket has another id than the deleted one.
      await after.createBucket('next', {}, now)
      expect(ids).not.toContain((await after.findBucketNamed('next'))?.id)
    })

    test('a target with other data is refused and not changed', async () => {
      const data = await filled()
      const catalog = await data.to.open()
      const bucketId: BucketId = await newBucket(catalog, 'mine')
      await catalog.addItems(bucketId, newItems(2).map(withBytes))
      await catalog.close()
      await expect(transfer(data)).rejects.toThrow(TransferError)
      const after = await opened(data.to)
      expect((await after.listBuckets()).map(({ name: bucket, items }) => [bucket, items])).toEqual([
        ['mine', 2],
      ])
    })
  })
}
