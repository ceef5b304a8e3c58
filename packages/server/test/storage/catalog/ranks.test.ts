import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  createBucket,
  defaultShape,
  findBucket,
  type RankShape,
  topLevel,
} from '../../../src/storage/catalog/buckets.ts'
import { prepareItemTable, prepareNames } from '../../../src/storage/catalog/engines/sqlite/item-table.ts'
import { prepareReads } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { all, createRun } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import { prepareLocateItem, prepareRanks } from '../../../src/storage/catalog/engines/sqlite/sqlite-ranks.ts'
import { migrate } from '../../../src/storage/catalog/engines/sqlite/sqlite-schema.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { bytes, integer } from '../../../src/storage/catalog/statements.ts'
import { inBlobStore, newItems } from './samples.ts'

function newBucketId(db: DatabaseSync, name: string): BucketId {
  const run = createRun(db)
  run(createBucket(name, {}, 0))
  const id = run(findBucket(name))
  if (id === null) throw new Error('the bucket was not created')
  return id
}

/** A bucket in memory, and an array that must have the same listing. */
function bucketAndModel(shape: RankShape) {
  const db = new DatabaseSync(':memory:', { returnArrays: true })
  migrate(db)
  const ranks = prepareRanks(db, shape)
  const itemTable = prepareItemTable(db, ranks, prepareNames(db))
  const reads = prepareReads(db, prepareLocateItem(db, shape))
  const bucketId = newBucketId(db, 'b')
  let model: { id: string; seq: number }[] = []
  let nextSeq = 0

  return {
    add(count: number) {
      const items = newItems(count)
      itemTable.append(bucketId, inBlobStore(items))
      model.push(...items.map((item) => ({ id: item.id, seq: nextSeq++ })))
    },
    remove(isDoomed: (seq: number) => boolean) {
      itemTable.remove(
        bucketId,
        model.map((item) => item.seq).filter((seq) => isDoomed(seq)),
      )
      model = model.filter((item) => !isDoomed(item.seq))
    },
    expectEqual() {
      const lastPage = Math.ceil(model.length / 10)
      const readPage = reads.pages()
      for (let page = 1; page <= lastPage + 1; page++) {
        const { total, rows } = readPage({ bucketId, page })
        expect(total).toBe(model.length)
        const wanted = model.slice((page - 1) * 10, page * 10)
        expect(rows.map((row) => row.id)).toEqual(wanted.map((item) => item.id))
      }
      expectEveryCounter(db, bucketId, shape, nextSeq)
    },
    close: () => db.close(),
    levels: () => topLevel(shape, nextSeq),
  }
}

/** Each counter of each node equals the number of rows in its range. */
function expectEveryCounter(db: DatabaseSync, bucketId: BucketId, shape: RankShape, nextSeq: number): void {
  const live = db.prepare('SELECT count(*) FROM items WHERE bucket_id = ? AND seq >= ? AND seq < ?')
  for (const row of all(db.prepare('SELECT level, slot, counts FROM ranks'))) {
    const level = integer(row, 0)
    expect(level).toBeLessThanOrEqual(topLevel(shape, nextSeq))
    const counts = Buffer.from(bytes(row, 2))
    const width = shape.leaf * shape.fanOut ** (level - 1)
    for (let index = 0; index < shape.fanOut; index++) {
      const from = (integer(row, 1) * shape.fanOut + index) * width
      const [counted] = all(live, bucketId, from, from + width)
      expect(counts.readUInt32LE(index * 4)).toBe(counted?.[0])
    }
  }
}

const steps = (most: number) =>
  fc.array(
    fc.oneof(
      fc.record({ add: fc.integer({ min: 1, max: most }) }),
      fc.record({ every: fc.integer({ min: 1, max: 9 }), from: fc.nat({ max: most }) }),
    ),
    { minLength: 1, maxLength: 12 },
  )

function runSteps(shape: RankShape, plan: readonly ({ add: number } | { every: number; from: number })[]) {
  const bucket = bucketAndModel(shape)
  try {
    for (const step of plan) {
      if ('add' in step) bucket.add(step.add)
      else bucket.remove((seq) => seq >= step.from && seq % step.every === 0)
      bucket.expectEqual()
    }
  } finally {
    bucket.close()
  }
}

describe('ranks', () => {
  test('leaves of 2 and nodes of 3: after any adds and removals, the listing equals that of an array', () => {
    fc.assert(
      fc.property(steps(40), (plan) => runSteps({ leaf: 2, fanOut: 3 }, plan)),
      { numRuns: 50 },
    )
  })

  test('leaves of 1 and nodes of 2, one level for each bit: the listing equals that of an array', () => {
    fc.assert(
      fc.property(steps(20), (plan) => runSteps({ leaf: 1, fanOut: 2 }, plan)),
      { numRuns: 40 },
    )
  })

  test('the sizes in use: the listing equals that of an array', () => {
    fc.assert(
      fc.property(steps(3_000), (plan) => runSteps(defaultShape, plan)),
      { numRuns: 5 },
    )
  })

  test('single adds add one level after another', () => {
    const bucket = bucketAndModel({ leaf: 2, fanOut: 3 })
    for (let count = 1; count <= 200; count++) {
      bucket.add(1)
      if (count % 7 === 0) bucket.remove((seq) => seq % 7 === 3)
      bucket.expectEqual()
    }
    expect(bucket.levels()).toBe(5)
    bucket.close()
  })

  test('one add can add several levels, to a new bucket and to an emptied one', () => {
    const bucket = bucketAndModel({ leaf: 2, fanOut: 3 })
    bucket.add(100)
    bucket.expectEqual()
    bucket.remove(() => true)
    bucket.expectEqual()
    bucket.add(1_000)
    bucket.expectEqual()
    expect(bucket.levels()).toBe(6)
    bucket.close()
  })
})

test('L3 pages of two buckets in turn are right, with more nodes than are cached and after a change', () => {
  // 40,000 items have 2,500 nodes on level 1.
  const shape = { leaf: 1, fanOut: 16 }
  const db = new DatabaseSync(':memory:', { returnArrays: true })
  migrate(db)
  const itemTable = prepareItemTable(db, prepareRanks(db, shape), prepareNames(db))
  const reads = prepareReads(db, prepareLocateItem(db, shape))
  const [large, small] = [40_000, 40].map((count, index) => {
    const items = newItems(count)
    const bucketId = newBucketId(db, `b${index}`)
    itemTable.append(bucketId, inBlobStore(items))
    return { bucketId, ids: items.map(({ id }) => id) }
  })
  if (!large || !small) throw new Error('no buckets')
  const expectPage = ({ bucketId, ids }: typeof large, page: number) =>
    expect(readPage({ bucketId, page }).rows.map(({ id }) => id)).toEqual(
      ids.slice((page - 1) * 10, page * 10),
    )
  let readPage = reads.pages()
  for (let page = 1; page <= 4_000; page += 1) {
    expectPage(large, page)
    expectPage(small, 1 + (page % 4))
  }
  const [first] = small.ids.splice(0, 1)
  if (first) itemTable.removeByIds(small.bucketId, [first])
  readPage = reads.pages()
  for (const [bucket, page] of [
    [small, 1],
    [large, 1],
    [small, 4],
    [large, 4_000],
  ] as const)
    expectPage(bucket, page)
  db.close()
})

describe('topLevel', () => {
  test('is the lowest level whose first node covers all numbers', () => {
    const { leaf, fanOut } = defaultShape
    const width = leaf * fanOut
    expect(topLevel(defaultShape, 0)).toBe(1)
    expect(topLevel(defaultShape, width)).toBe(1)
    expect(topLevel(defaultShape, width + 1)).toBe(2)
    expect(topLevel(defaultShape, width * fanOut)).toBe(2)
    expect(topLevel(defaultShape, width * fanOut + 1)).toBe(3)
  })
})

test('L4 pages of one transaction share the state of their bucket; after its end each page has its own', () => {
  const db = new DatabaseSync(':memory:', { returnArrays: true })
  migrate(db)
  const itemTable = prepareItemTable(db, prepareRanks(db), prepareNames(db))
  const bucketId = newBucketId(db, 'b')
  const readPage = prepareReads(db, prepareLocateItem(db)).pages()
  const total = () => readPage({ bucketId, page: 1 }).total
  db.exec('BEGIN')
  expect(total()).toBe(0)
  db.exec("UPDATE buckets SET total = 7 WHERE name = 'b'")
  expect(total()).toBe(0)
  db.exec('ROLLBACK')
  for (const wanted of [1, 2]) {
    itemTable.append(bucketId, inBlobStore(newItems(1)))
    expect(total()).toBe(wanted)
  }
})
