import { expect, test } from 'vitest'
import { Fault } from '../../src/core/faults.ts'
import { fillTakenOperation } from '../../src/pictures/fill-taken-times.ts'
import { openMemoryBlob } from '../../src/storage/blobs/memory-blob.ts'
import type { Item } from '../../src/storage/catalog/records.ts'
import { storedItem } from '../storage/catalog/samples.ts'

const itemOf = (): Item => storedItem({ filename: null, size: 4, width: null, height: null })

test('M10 an item that cannot be read at present delays no other one, and no item is read twice', async () => {
  const items = Array.from({ length: 250 }, itemOf)
  const unread = new Map(items.map((item, seq) => [item.id, { id: item.id, bucketId: item.bucketId, seq }]))
  const failing = new Set([items[0]?.id, items[120]?.id])
  const [missing, deleted] = [items[7]?.id, items[8]?.id]
  const opened: string[] = []
  const fillTaken = fillTakenOperation({
    now: Date.now,
    rest: async () => undefined,
    catalog: {
      listUnreadTaken: async (after, limit) =>
        [...unread.values()].filter(({ seq }) => seq > (after?.seq ?? -1)).slice(0, limit),
      item: async (id) => (id === deleted ? null : (items.find((item) => item.id === id) ?? null)),
      async setTaken(_, id) {
        unread.delete(id)
        return false
      },
    },
    async openBytes({ id }) {
      opened.push(id)
      if (failing.has(id)) throw new Fault('storage-unavailable', 'later')
      if (id === missing) throw new Fault('bytes-missing', 'missing')
      return openMemoryBlob(Buffer.from('none'))
    },
  })
  const isStopping = () => false
  for (const rest of [250, 132, 3]) {
    if (rest === 3) expect(await fillTaken(isStopping)).toBe(0)
    else await expect(fillTaken(isStopping)).rejects.toMatchObject({ code: 'storage-unavailable' })
    expect(unread.size).toBe(rest)
  }
  failing.clear()
  expect(await fillTaken(isStopping)).toBe(0)
  expect([...unread.keys()]).toEqual([deleted])
  expect(opened.filter((id, index) => opened.indexOf(id) !== index)).toEqual([items[0]?.id, items[120]?.id])
})
