import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { adaptCheckpoints } from '../../src/catalog/sqlite/adapt-checkpoints.ts'
import { openConnection } from '../../src/catalog/sqlite/connection.ts'
import { tempDirectory } from './temp-directory.ts'

const intervalOf = (db: DatabaseSync) => db.prepare('PRAGMA wal_autocheckpoint').get()?.['wal_autocheckpoint']

test('the slower the fastest of recent commits is, the rarer are checkpoints, within limits', () => {
  const db = new DatabaseSync(':memory:')
  onTestFinished(() => db.close())
  const observe = adaptCheckpoints(db)
  const observeAll = (...seconds: number[]) => {
    for (let i = 0; i < 64; i += 1) observe(seconds[i % seconds.length] ?? 0)
    return intervalOf(db)
  }
  expect(intervalOf(db)).toBe(1000)
  expect(observeAll(0.0001)).toBe(125)
  // Most commits waited for the processor.
  expect(observeAll(0.02, 0.016, 0.0004)).toBe(125)
  expect(observeAll(0.001)).toBe(250)
  expect(observeAll(0.03, 0.002, 0.004)).toBe(500)
  expect(observeAll(0.03)).toBe(1000)
  expect(observeAll(0.001)).toBe(250)
})

test('with fast commits, the write-ahead log stays at the short interval', () => {
  const directory = tempDirectory()
  const db = openConnection(directory)
  onTestFinished(() => db.close())
  const observe = adaptCheckpoints(db)
  for (let i = 0; i < 64; i += 1) observe(0.0001)
  db.exec('CREATE TABLE t (bytes BLOB)')
  const insert = db.prepare('INSERT INTO t VALUES (zeroblob(8000))')
  for (let i = 0; i < 600; i += 1) insert.run()
  // Frames of 8 kB; the last commit before a checkpoint can exceed the interval by its pages.
  expect(statSync(join(directory, 'catalog.db-wal')).size).toBeLessThan(140 * 8_216)
})
