import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openSqliteAudit } from '../../src/catalog/sqlite/audit.ts'
import { acquireBackupHold, BackupHoldError, watchBackupHold } from '../../src/catalog/sqlite/backup-hold.ts'
import { openSqliteCatalog } from '../../src/catalog/sqlite/catalog.ts'
import { describeAudit } from './audit-contract.ts'
import { firstOutput, killHard, startProcess } from './child-process.ts'
import { newBucket, newItems } from './samples.ts'
import { tempDirectory } from './temp-directory.ts'

const tampering = {
  counters: 'UPDATE buckets SET total = 7, bytes = 3, reserved_items = 0',
  ranks: 'DELETE FROM ranks WHERE level = 1 AND slot = 0; UPDATE ranks SET counts = zeroblob(512)',
}

const openBoth = async (directory: string) => ({
  catalog: await openSqliteCatalog({ directory, writer: 'direct' }),
  audit: await openSqliteAudit(directory),
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
    async copy() {
      const into = tempDirectory()
      return {
        directory: into,
        async open() {
          const opened = await openBoth(into)
          onTestFinished(async () => {
            await opened.audit.close()
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
    const { catalog, audit } = await openBoth(directory)
    onTestFinished(async () => {
      await audit.close()
      await catalog.close()
    })
    const ids = [await newBucket(catalog, 'a'), await newBucket(catalog, 'b'), await newBucket(catalog, 'c')]
    for (const id of ids) await catalog.addMedia(id, newItems(3))
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
    const found = await audit.recount()
    spy.mockRestore()
    expect(found.map(({ bucket, what }) => `${bucket} ${what}`)).toEqual(['a total', 'c total', 'c bytes'])
    expect(immediates()).toBe(2)
    expect(await audit.bucketFaults()).toEqual([])
  })
})

describe('F6 the hold of a backup on deletions', () => {
  test('is visible to watchers, excludes a second hold, and ends with its release or its process', async () => {
    const directory = tempDirectory()
    const watch = watchBackupHold(directory)
    onTestFinished(() => watch.close())
    expect(watch.isHeld()).toBe(false)
    const holder = startProcess(
      'backup-hold.ts',
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
