import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { seedBucket } from '../../../../../bench/seed.ts'
import type { ItemId } from '../../../src/core/ids.ts'
import {
  acquireBackupHold,
  BackupHoldError,
  watchBackupHold,
} from '../../../src/storage/catalog/engines/sqlite/locks.ts'
import { openSqliteCatalog } from '../../../src/storage/catalog/engines/sqlite/sqlite-catalog.ts'
import { openSqliteInspection } from '../../../src/storage/catalog/engines/sqlite/sqlite-inspection.ts'
import type { BucketId } from '../../../src/storage/catalog/records.ts'
import { firstOutput, killHard, startProcess } from './child-process.ts'
import { describeAudit, describeCopies } from './inspection-contract.ts'
import { allPages, contentOf, inBlobStore, newBucket, newItem, newItems, withBytes } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

const tampering = {
  counters: 'UPDATE buckets SET total = 7, bytes = 3, reserved_items = 0',
  ranks: 'DELETE FROM ranks WHERE level = 1 AND slot = 0; UPDATE ranks SET counts = zeroblob(512)',
  names: "DELETE FROM item_names WHERE slot = 2; UPDATE item_names SET names = 'other' WHERE slot = 9",
  contents: "INSERT INTO contents (bytes) VALUES (X'00')",
  labels: "UPDATE labels SET items = items + 1 WHERE value = 'x'; DELETE FROM item_labels WHERE seq < 5",
  expiry: 'UPDATE buckets SET next_expiry = NULL',
  feed: 'UPDATE buckets SET revision = (SELECT min(number) FROM changes)',
  'feed-start': 'UPDATE buckets SET changes_start = revision + 1000',
  'feed-early': 'UPDATE buckets SET changes_start = (SELECT max(number) FROM changes)',
  usage: 'UPDATE buckets SET added_items = added_items + 1',
  'usage-damaged':
    'UPDATE bucket_usage SET removed_bytes = 9223372036854775807; UPDATE buckets SET added_bytes = -5',
  'name-keys': `UPDATE items SET name_key = CASE filename WHEN 'b' THEN 'd~' WHEN 'd' THEN 'b~' ELSE 'e~' END
    WHERE filename IN ('b', 'd', 'e')`,
  limits: "UPDATE token_limits SET reserved_items = CASE WHEN id = 'a' THEN 2 ELSE 0 END",
}

const openBoth = async (directory: string) => ({
  catalog: await openSqliteCatalog({ directory, writer: 'direct' }),
  inspection: await openSqliteInspection(directory),
})

describeAudit('SQLite', async () => {
  const directory = tempDirectory()
  return {
    ...(await openBoth(directory)),
    tamper(fault) {
      const db = new DatabaseSync(join(directory, 'catalog.db'))
      db.exec(tampering[fault])
      db.close()
    },
  }
})

describeCopies('SQLite', async () => {
  const directory = tempDirectory()
  return {
    ...(await openBoth(directory)),
    async copy() {
      const into = tempDirectory()
      return {
        directory: into,
        async open() {
          const opened = await openBoth(into)
          onTestFinished(async () => {
            await opened.inspection.close()
            await opened.catalog.close()
          })
          return opened
        },
      }
    },
  }
})

describe('F1, F2 a recount', () => {
  test('uses one transaction for each wrong bucket, and is correct while a server writes', async () => {
    const directory = tempDirectory()
    const { catalog, inspection } = await openBoth(directory)
    onTestFinished(async () => {
      await inspection.close()
      await catalog.close()
    })
    const ids = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b'), await newBucket(catalog, 'c')]
    for (const id of ids) await catalog.addItems(id, inBlobStore(newItems(3)))
    const db = new DatabaseSync(join(directory, 'catalog.db'))
    onTestFinished(() => db.close())
    db.exec("UPDATE buckets SET total = 9 WHERE name <> 'b'")

    const statements: string[] = []
    const immediates = () => statements.filter((sql) => sql === 'BEGIN IMMEDIATE').length
    const { exec } = DatabaseSync.prototype
    const spy = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (
      this: DatabaseSync,
      sql,
    ) {
      statements.push(sql)
      exec.call(this, sql)
      // A write of a server after the correction of the first bucket.
      if (sql === 'COMMIT' && statements.at(-2) === 'BEGIN IMMEDIATE' && immediates() === 1)
        exec.call(db, "UPDATE buckets SET bytes = 9 WHERE name = 'c'")
    })
    const found = await inspection.recount()
    spy.mockRestore()
    expect(found.map(({ bucket, what }) => `${bucket} ${what}`)).toEqual(['a total', 'c total', 'c bytes'])
    expect(immediates()).toBe(2)
    expect(await inspection.bucketFaults()).toEqual([])
  })
})

describe('F6 the hold of a backup on deletions', () => {
  test('is visible to watchers, excludes a second hold, and ends with its release or its process', async () => {
    const directory = tempDirectory()
    const watch = watchBackupHold(directory)
    onTestFinished(() => watch.close())
    expect(watch.isHeld()).toBe(false)
    const holder = startProcess(
      'locks.ts',
      `module.acquireBackupHold(${JSON.stringify(directory)})
      console.log('held')
      setInterval(() => {}, 1000)`,
    )
    expect(await firstOutput(holder)).toBe('held')
    expect(watch.isHeld()).toBe(true)
    expect(() => acquireBackupHold(directory)).toThrow(BackupHoldError)
    expect(watch.isHeld()).toBe(true)
    const late = watchBackupHold(directory)
    onTestFinished(() => late.close())
    expect(late.isHeld()).toBe(true)
    await killHard(holder)
    expect([watch.isHeld(), late.isHeld()]).toEqual([false, false])
    const hold = acquireBackupHold(directory)
    expect(watch.isHeld()).toBe(true)
    hold.release()
    expect(watch.isHeld()).toBe(false)
  })
})

describe('F7, F10 a snapshot that is copied during changes', () => {
  async function copyDuringChanges() {
    const directory = tempDirectory()
    const { catalog, inspection } = await openBoth(directory)
    // Copied before the seeded bucket, so that many of their items are deleted before the last transaction.
    const [first, second] = [await newBucket(catalog, 'first'), await newBucket(catalog, 'second')]
    const doomed = await newBucket(catalog, 'doomed')
    await catalog.addItems(
      doomed,
      newItems(50).map((item) => withBytes(item)),
    )
    await seedBucket(catalog, 'seeded', { items: 20_000 })
    /** The ids of each bucket, by its revision. */
    const states = new Map([first, second].map((id): [typeof id, ItemId[][]] => [id, [[]]]))
    const checkpointed = new DatabaseSync(join(directory, 'catalog.db'))
    onTestFinished(async () => {
      checkpointed.close()
      await inspection.close()
      await catalog.close()
    })
    let isCopying = true
    let rounds = 0
    let largestLog = 0
    /** Only this test changes the bucket. */
    const remember = async (bucket: BucketId, known: ItemId[][], ids: ItemId[]) => {
      known[(await catalog.page(bucket, 1)).revision] = ids
    }
    async function change(): Promise<void> {
      for (; isCopying; rounds += 1) {
        for (const [bucket, known] of states) {
          const ids = known.at(-1) ?? []
          const item = newItem()
          await catalog.addItems(bucket, [withBytes(item)])
          const more = [...ids, item.id]
          await remember(bucket, known, more)
          const [oldest] = ids
          if (rounds % 2 === 0 || oldest === undefined) continue
          await catalog.removeItems(bucket, [oldest])
          await remember(bucket, known, more.slice(1))
        }
        await catalog.deleteBucketChunk(doomed, 20, 0)
        checkpointed.exec('PRAGMA wal_checkpoint(TRUNCATE)')
        largestLog = Math.max(largestLog, statSync(join(directory, 'catalog.db-wal')).size)
        await new Promise(setImmediate)
      }
    }
    const changes = change()
    const into = tempDirectory()
    await inspection.snapshot(into, null)
    isCopying = false
    await changes
    return { into, states, rounds, largestLog }
  }

  test('has the rows of one moment, with all their counters and settings, and is read in short transactions, so that the write-ahead log starts again between them', async () => {
    const { into, states, rounds, largestLog } = await copyDuringChanges()
    expect(rounds).toBeGreaterThan(5)
    expect(largestLog).toBe(0)
    const { catalog, inspection } = await openBoth(into)
    onTestFinished(async () => {
      await inspection.close()
      await catalog.close()
    })
    expect(await inspection.damage()).toEqual({ details: [], rows: [], bytes: [] })
    expect(await inspection.bucketFaults()).toEqual([])
    expect(await inspection.orphanedContents()).toEqual([])
    for (const [bucket, known] of states) {
      const { revision } = await catalog.page(bucket, 1)
      expect(await allPages(catalog, bucket)).toEqual(known[revision])
      for (const id of known[revision] ?? []) {
        const contentId = (await catalog.item(id))?.contentId
        expect(contentId && (await catalog.content(contentId))).toEqual(contentOf({ id }))
      }
    }
    const db = new DatabaseSync(join(into, 'catalog.db'))
    expect(
      db.prepare("SELECT type, name, sql FROM sqlite_schema WHERE type <> 'table'").all().length,
    ).toBeGreaterThan(5)
    const lost = 'SELECT count(*) AS count FROM items WHERE bucket_id NOT IN (SELECT id FROM buckets)'
    expect(db.prepare(lost).get()).toEqual({ count: 0 })
    db.close()
  })
})

describe('F10 a snapshot of a catalog with a long write-ahead log', () => {
  const logSize = (directory: string) => statSync(join(directory, 'catalog.db-wal')).size

  /** A catalog with a log of 40 MB, and a reader that has kept it from starting again. */
  async function openLong() {
    const directory = tempDirectory()
    const { catalog, inspection } = await openBoth(directory)
    const reader = new DatabaseSync(join(directory, 'catalog.db'))
    onTestFinished(async () => {
      reader.close()
      await inspection.close()
      await catalog.close()
    })
    const bucketId = await newBucket(catalog, 'b')
    reader.exec('BEGIN; SELECT * FROM items')
    const bytes = () => new Uint8Array(1024 * 1024)
    const items = newItems(40)
    await catalog.addItems(
      bucketId,
      items.map((item) => ({ ...item, bytes: bytes() })),
    )
    expect(logSize(directory)).toBeGreaterThan(40 * 1024 * 1024)
    return { directory, catalog, inspection, reader, pages: items.map(({ id }) => id), bucketId }
  }

  async function copyOfIds(
    inspection: Awaited<ReturnType<typeof openLong>>['inspection'],
    bucketId: BucketId,
  ) {
    const into = tempDirectory()
    await inspection.snapshot(into, null)
    const copied = await openBoth(into)
    const ids = await allPages(copied.catalog, bucketId)
    await copied.inspection.close()
    await copied.catalog.close()
    return ids
  }

  test('truncates the log', async () => {
    const { directory, inspection, reader, pages, bucketId } = await openLong()
    reader.exec('COMMIT')
    expect(await copyOfIds(inspection, bucketId)).toEqual(pages)
    expect(logSize(directory)).toBe(0)
  })

  test('is complete, and the log stays, while another process reads for longer', async () => {
    const { directory, inspection, pages, bucketId } = await openLong()
    expect(await copyOfIds(inspection, bucketId)).toEqual(pages)
    expect(logSize(directory)).toBeGreaterThan(40 * 1024 * 1024)
  })
})
