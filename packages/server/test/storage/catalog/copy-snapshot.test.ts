import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { damagePage } from '../../../../../test/harness/upkeep.ts'
import { service } from '../../../src/core/token-rules.ts'
import { newWebhookId, newWebhookSecret } from '../../../src/core/webhook-rules.ts'
import { copySnapshot } from '../../../src/storage/catalog/engines/sqlite/copy-snapshot.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { allPages, hashOf, newBucket, newItem, newItems, withBytes } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

async function open(directory: string) {
  const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
  onTestFinished(() => catalog.close())
  return catalog
}

test('F7, M5 a copy has the items as of its last moment: edited, deleted and added ones too', async () => {
  const [from, to] = [tempDirectory(), join(tempDirectory(), 'copy')]
  const catalog = await open(from)
  const bucketId = await newBucket(catalog, 'b')
  const items = newItems(2_100)
  await catalog.addItems(bucketId, items.map(withBytes))
  const [first, second, third] = items.map(({ id }) => id)
  if (!first || !second || !third) throw new Error('no items')
  await catalog.editItem(bucketId, third, { filename: 'before.jpg' }, null)

  mkdirSync(to)
  const copying = copySnapshot(join(from, 'catalog.db'), join(to, 'catalog.db'))
  // The first chunk, with these items, has been copied.
  await catalog.editItem(bucketId, first, { filename: 'during.jpg', caption: 'during' }, null)
  await catalog.removeItems(bucketId, [second])
  await catalog.setPreview(bucketId, third, { thumbhash: hashOf('x'), duration: null, width: 1, height: 1 })
  const added = newItem()
  await catalog.addItems(bucketId, [withBytes(added)])
  await catalog.editItem(bucketId, added.id, { altText: 'added' }, null)
  await copying

  const copy = await open(to)
  expect(await allPages(copy, bucketId)).toEqual(await allPages(catalog, bucketId))
  for (const id of [first, second, third, added.id])
    expect(await copy.item(id)).toEqual(await catalog.item(id))
  expect(await copy.item(first)).toMatchObject({ filename: 'during.jpg', caption: 'during' })
})

test('F7, WH8 the webhooks of a copy begin with the message that changes may be lost', async () => {
  const [from, to] = [tempDirectory(), join(tempDirectory(), 'copy')]
  const catalog = await open(from)
  const bucketId = await newBucket(catalog, 'b')
  const [id, secret] = [newWebhookId(), newWebhookSecret()]
  await catalog.addWebhook({
    id,
    secret,
    bucketId,
    url: 'https://example.org/',
    kinds: [],
    batch: 1,
    createdAt: 1,
  })
  await catalog.claimWebhook(id, 'one', 30_000)
  mkdirSync(to)
  await copySnapshot(join(from, 'catalog.db'), join(to, 'catalog.db'))
  const copy = await open(to)
  expect(await copy.listWebhooks()).toEqual(await catalog.listWebhooks())
  expect(await copy.findWebhook(id)).toMatchObject({ secrets: [secret], position: null, pending: null })
  expect(await copy.dueWebhooks('two', 1, 9)).toMatchObject([{ id }])
})

test('F7, Z6 a copy has items that were trashed, restored and purged during it in their last place', async () => {
  const [from, to] = [tempDirectory(), join(tempDirectory(), 'copy')]
  const catalog = await open(from)
  const bucketId = await newBucket(catalog, 'b')
  await catalog.setBucket('b', { trashDays: 1 })
  const items = newItems(2_100)
  await catalog.addItems(bucketId, items.map(withBytes))
  const ids = items.map(({ id }) => id)
  const [restored, purged, kept, trashed, twice] = [0, 1, 2, 3, 4].map((index) => ids.slice(index, index + 1))
  if (!restored || !purged || !kept || !trashed || !twice) throw new Error('no items')
  await catalog.removeItems(bucketId, [restored, purged, kept].flat())

  mkdirSync(to)
  const copying = copySnapshot(join(from, 'catalog.db'), join(to, 'catalog.db'))
  // The first chunk, with the trash and the first items, has been copied.
  await catalog.restoreItems(bucketId, restored)
  await catalog.purgeItems(bucketId, purged)
  await catalog.removeItems(bucketId, trashed)
  await catalog.removeItems(bucketId, twice)
  await catalog.restoreItems(bucketId, twice)
  await copying

  const copy = await open(to)
  expect(await allPages(copy, bucketId)).toEqual(await allPages(catalog, bucketId))
  expect(await copy.listTrash(bucketId, null, 9)).toEqual(await catalog.listTrash(bucketId, null, 9))
  expect(await copy.findBucketWithTrash(bucketId)).toMatchObject({
    trashDays: 1,
    trash: { items: 2, bytes: 2_000 },
  })
  for (const id of ids.slice(0, 5)) {
    const item = await copy.item(id)
    expect(item).toEqual(await catalog.item(id))
    expect(item?.contentId == null || (await copy.content(item.contentId)) !== null).toBe(true)
  }
})

test('F7, S10 a copy passes by events of the audit log on a damaged page, and reports that', async () => {
  const [from, to] = [tempDirectory(), tempDirectory()]
  const catalog = await openSqliteCatalog({ directory: from, writer: 'direct', actor: service })
  const bucketId = await newBucket(catalog, 'b')
  const event = { action: 'link', bucketId, target: null, detail: {}, by: service, time: 1 } as const
  await catalog.recordEvents(Array.from({ length: 2_500 }, (_, nth) => ({ ...event, name: `${nth}` })))
  await catalog.close()
  await damagePage(from, 'audit_events', 'leaf')
  const missing = await copySnapshot(join(from, 'catalog.db'), join(to, 'catalog.db'))
  expect(missing).toEqual({ items: [], hasLostEvents: true })
  const db = new DatabaseSync(join(to, 'catalog.db'), { returnArrays: true })
  const names = db.prepare('SELECT CAST(name AS INTEGER) FROM audit_events ORDER BY id').all().flat()
  db.close()
  // One page has some hundred events.
  expect(names.length).toBeGreaterThan(1_500)
  expect(names.length).toBeLessThan(2_500)
  expect([names[0], names.at(-1)]).toEqual([0, 2_499])
})
