import { expect, test } from 'vitest'
import { service } from '../../src/core/token-rules.ts'
import { recordLinksOperation } from '../../src/items/links.ts'
import type { AuditEvent } from '../../src/storage/catalog/audit/audit-events.ts'
import type { BucketId } from '../../src/storage/catalog/records.ts'
import { newItem } from '../storage/catalog/samples.ts'

const items = Array.from({ length: 500 }, () => ({
  ...newItem({ filename: 'a.txt' }),
  bucketId: 1 as BucketId,
}))
const links = { expires: 1_800_000_000, variant: null, isDownload: false }

function recorder(hasRoom: boolean) {
  const recorded: (readonly AuditEvent[])[] = []
  const catalog = { recordEvents: async (events: readonly AuditEvent[]) => void recorded.push(events) }
  return { recorded, record: recordLinksOperation({ catalog, hasRoom: () => hasRoom }) }
}

test('Y1 the links of a request are one event, however many items they are of', async () => {
  const { recorded, record } = recorder(true)
  await record(service, items, links)
  await record(service, items.slice(0, 1), links)
  await record(service, [], links)
  expect(recorded.map((events) => events.map(({ target }) => target))).toEqual([[null], [items[0]?.id]])
  // 500 events had more than 100 kB.
  expect(JSON.stringify(recorded[0]).length).toBeLessThan(500 * 32)
})

test('Y1 links are refused while the disk has no room for their event', async () => {
  const { recorded, record } = recorder(false)
  await expect(record(service, items, links)).rejects.toMatchObject({ code: 'storage-full' })
  expect(recorded).toEqual([])
})
