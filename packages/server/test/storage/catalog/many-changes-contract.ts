import { setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Fresh, openOne, openTwo } from './fresh-data.ts'
import { allPages, inBlobStore, newBucket, newItems } from './samples.ts'

/** The behaviour of every catalog engine with many changes, in any order and concurrent. */
export function describeManyChanges(engine: string, fresh: Fresh): void {
  describe(`${engine}: many changes`, () => {
    test('L10 after any adds and removals, every page equals that of an array', async () => {
      const step = fc.oneof(
        fc.record({ add: fc.integer({ min: 1, max: 30 }) }),
        fc.record({ remove: fc.array(fc.nat(), { maxLength: 8 }) }),
      )
      const catalog = await openOne(fresh)
      let run = 0
      const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const bucketId = await newBucket(catalog, `run ${run++}`)
        let model: string[] = []
        for (const step of steps) {
          if ('add' in step) {
            const items = newItems(step.add)
            await catalog.addItems(bucketId, inBlobStore(items))
            model.push(...items.map((item) => item.id))
          } else {
            const ids = new Set(step.remove.map((number) => model[number % model.length]))
            const removals = [...ids].map((id) => id && catalog.removeItems(bucketId, [id as never]))
            await Promise.all(removals)
            model = model.filter((id) => !ids.has(id))
          }
          expect(await allPages(catalog, bucketId)).toEqual(model)
        }
      })
      await fc.assert(property, { numRuns: 20 })
    })

    test('concurrent changes are all stored, and the items of each are adjacent', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      const doomed = newItems(20)
      await catalog.addItems(bucketId, inBlobStore(doomed))
      const requests = Array.from({ length: 150 }, (_, index) => newItems(1 + (index % 4)))
      await Promise.all([
        ...requests.map((items, index) =>
          (index % 10 === 0 ? other : catalog).addItems(bucketId, inBlobStore(items)),
        ),
        ...doomed.map((item) => catalog.removeItems(bucketId, [item.id])),
      ])
      const listed = await allPages(catalog, bucketId)
      const wanted = requests.map((items) => items.map((item) => item.id).join())
      expect(listed).toHaveLength(requests.flat().length)
      for (const run of wanted) expect(listed.join()).toContain(run)
      expect(new Set(listed).size).toBe(listed.length)
    })

    test('L4 a page that is read during changes has the rows that its total implies', async () => {
      const { catalog, other } = await openTwo(fresh)
      const bucketId = await newBucket(catalog, 'b')
      let writing = true
      const writes = (async () => {
        for (let round = 0; round < 40; round++) {
          const items = newItems(3)
          await other.addItems(bucketId, inBlobStore(items))
          await Promise.all(items.slice(1).map((item) => other.removeItems(bucketId, [item.id])))
        }
        writing = false
      })()
      for (let read = 0; writing; read += 1) {
        const page = 1 + (read % 5)
        const { total, rows } = await catalog.page(bucketId, page)
        expect(rows).toHaveLength(Math.min(10, Math.max(0, total - (page - 1) * 10)))
        // Without a pause the reads occupy a core until the writes end.
        await setTimeout(1)
      }
      await writes
    })
  })
}
