import { expect, onTestFinished, test } from 'vitest'
import { openDataDirectory } from '../../../src/storage/catalog/engines/sqlite/data-directory.ts'
import { all, openConnection } from '../../../src/storage/catalog/engines/sqlite/sqlite-database.ts'
import {
  adaptCheckpoints,
  startWriterThread,
} from '../../../src/storage/catalog/engines/sqlite/sqlite-writer.ts'
import { integer } from '../../../src/storage/catalog/statements.ts'
import { tempDirectory } from './temp-directory.ts'

test('the slower the fastest of recent commits is, the rarer are checkpoints, within limits', () => {
  const db = openConnection(tempDirectory())
  onTestFinished(() => db.close())
  const observe = adaptCheckpoints(db)
  db.exec('CREATE TABLE t (number INTEGER)')
  const insert = db.prepare('INSERT INTO t VALUES (1)')
  const interval = db.prepare('PRAGMA wal_autocheckpoint')
  const observeAll = (...seconds: number[]) => {
    for (let i = 0; i < 64; i += 1) {
      insert.run()
      observe(seconds[i % seconds.length] ?? 0)
    }
    return integer(all(interval)[0] ?? [], 0)
  }
  expect(integer(all(interval)[0] ?? [], 0)).toBe(1000)
  expect(observeAll(0.0001)).toBe(125)
  // Most commits waited for the processor.
  expect(observeAll(0.02, 0.016, 0.0004)).toBe(125)
  expect(observeAll(0.001)).toBe(250)
  // A commit without a change needs no sync.
  observe(0.0001)
  expect(observeAll(0.03, 0.002, 0.004)).toBe(500)
  expect(observeAll(0.03)).toBe(1000)
  expect(observeAll(0.001)).toBe(250)
})

test('the writer thread copies pages from the log more often on a fast disk', async () => {
  const directory = tempDirectory()
  openDataDirectory(directory).close()
  const seconds: number[] = []
  const fail = (error: Error) => expect.unreachable(error.message)
  const writer = await startWriterThread(directory, fail, (taken) => seconds.push(taken))
  // Two pages each.
  for (let number = 0; number < 120; number += 1)
    await writer.apply({
      kind: 'createBucket',
      input: [`bucket-${number}`, {}, number],
    })
  const db = openConnection(directory)
  onTestFinished(() => db.close())
  const [, pages = 0] = (all(db.prepare('PRAGMA wal_checkpoint(PASSIVE)'))[0] ?? []).map(Number)
  await writer.close()
  const interval = Math.max(125, Math.min(1000, Math.round(Math.min(...seconds.slice(0, 64)) * 250_000)))
  expect(pages).toBeLessThanOrEqual(interval + 20)
})
