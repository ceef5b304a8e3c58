import { DatabaseSync } from 'node:sqlite'

// Loaded into a server with node --import, in all its threads: a transaction that writes waits until no other process holds the write lock,
// instead of ten seconds. What must not wait for a write is then answered, or the test does not end.

const { exec } = DatabaseSync.prototype
const sleeper = new Int32Array(new SharedArrayBuffer(4))
/** SQLITE_BUSY. */
const isBusy = (error: unknown) => error instanceof Error && 'errcode' in error && error.errcode === 5

DatabaseSync.prototype.exec = function (sql) {
  for (;;)
    try {
      return exec.call(this, sql)
    } catch (error) {
      if (sql !== 'BEGIN IMMEDIATE' || !isBusy(error)) throw error
      Atomics.wait(sleeper, 0, 0, 10)
    }
}
