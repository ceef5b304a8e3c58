import { describe, expect, onTestFinished, test } from 'vitest'
import { openSqliteCatalog } from '../../src/catalog/sqlite/catalog.ts'
import { openConnection } from '../../src/catalog/sqlite/connection.ts'
import { all } from '../../src/catalog/sqlite/rows.ts'
import { seedBucket } from '../../src/catalog/sqlite/seed.ts'
import { outputOf, startProcess } from './child-process.ts'
import { allPages, inBlobStore, newBucket, newItems } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

describe('seed', () => {
  test('creates the bucket, adds items and deletes every k-th of them', async () => {
    const directory = tempDirectory()
    const progress: number[] = []
    const options = { directory, bucket: 'b', items: 9_000, deleteEvery: 7 }
    const seeded = await seedBucket({ ...options, onProgress: (done) => progress.push(done) })
    const total = 9_000 - Math.floor(9_000 / 7)
    expect(seeded).toEqual({ total })
    expect(progress.at(-1)).toBe(9_000)

    const catalog = await openSqliteCatalog({ directory, writer: 'direct' })
    onTestFinished(() => catalog.close())
    const bucketId = await newBucket(catalog, 'b')
    const db = openConnection(directory)
    onTestFinished(() => db.close())
    const stored = all(db.prepare('SELECT id, seq FROM media ORDER BY seq'))
    expect(stored.map(([, seq]) => seq)).toEqual(
      Array.from({ length: 9_000 }, (_, seq) => seq).filter((seq) => (seq + 1) % 7 !== 0),
    )
    expect(await allPages(catalog, bucketId)).toEqual(stored.map(([id]) => id))
    expect(await catalog.tombstones()).toEqual([])
    const extensions = all(db.prepare('SELECT DISTINCT extension FROM media ORDER BY 1')).flat()
    expect(extensions).toEqual([null, 'jpg', 'mp4', 'pdf', 'png'])
    const bytes = all(db.prepare('SELECT bytes, (SELECT sum(size) FROM media) FROM buckets')).flat()
    expect(bytes[0]).toBe(bytes[1])
  })

  test('works while a server writes to the same bucket', async () => {
    const directory = tempDirectory()
    const catalog = await openSqliteCatalog({ directory, writer: 'thread' })
    onTestFinished(() => catalog.close())
    const bucketId = await newBucket(catalog, 'b')
    const options = JSON.stringify({ directory, bucket: 'b', items: 20_000, deleteEvery: 10 })
    let seeding = true
    const seeded = outputOf(startProcess('seed.ts', `await module.seedBucket(${options})`)).finally(() => {
      seeding = false
    })
    let added = 0
    while (seeding) {
      await catalog.addMedia(bucketId, inBlobStore(newItems(3)))
      added += 3
    }
    await seeded
    const listed = await allPages(catalog, bucketId)
    expect(listed).toHaveLength(18_000 + added)
    expect(new Set(listed).size).toBe(listed.length)
  })
})
