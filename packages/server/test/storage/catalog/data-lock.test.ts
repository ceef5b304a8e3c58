import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { acquireDataLock, DataLockedError } from '../../../src/storage/catalog/engines/sqlite/locks.ts'
import { firstOutput, killHard, outputOf, startProcess } from './child-process.ts'
import { tempDirectory } from './temp-directory.ts'

/** Prints `held`, drops its reference to the lock, and runs the garbage collector. */
const startLockHolder = (directory: string) =>
  startProcess(
    'locks.ts',
    `const { setFlagsFromString } = await import('node:v8')
    const { runInNewContext } = await import('node:vm')
    module.acquireDataLock(${JSON.stringify(directory)})
    setFlagsFromString('--expose-gc')
    setTimeout(() => {
      runInNewContext('gc')()
      setImmediate(() => console.log('held'))
    })
    setInterval(() => {}, 1000)`,
  )

/** Prints `held` or the name of the error. Keeps the lock if requested. */
const tryOnce = (directory: string, hold: boolean) =>
  startProcess(
    'locks.ts',
    `try {
      module.acquireDataLock(${JSON.stringify(directory)})
      console.log('held')
      ${hold ? 'setInterval(() => {}, 1000)' : ''}
    } catch (error) {
      console.log(error.name)
    }`,
  )

describe('O6 the lock of a data directory', () => {
  test('a second process is refused with the name of the directory and a solution', async () => {
    const directory = tempDirectory()
    expect(await firstOutput(startLockHolder(directory))).toBe('held')
    expect(() => acquireDataLock(directory)).toThrow(DataLockedError)
    expect(() => acquireDataLock(directory)).toThrow(
      `The data directory ${directory} is already served by another mediabucket process. Stop that process`,
    )
  })

  test('kill -9 releases the lock', async () => {
    const directory = tempDirectory()
    const holder = startLockHolder(directory)
    expect(await firstOutput(holder)).toBe('held')
    await killHard(holder)
    acquireDataLock(directory).release()
  })

  test('a refused second lock in the same process does not release the first', async () => {
    const directory = tempDirectory()
    const lock = acquireDataLock(directory)
    onTestFinished(() => lock.release())
    expect(() => acquireDataLock(directory)).toThrow(DataLockedError)
    expect(await outputOf(tryOnce(directory, false))).toBe('DataLockedError')
  })

  test('a released lock can be acquired again, and a second release has no effect', () => {
    const directory = join(tempDirectory(), 'not', 'yet', 'there')
    const first = acquireDataLock(directory)
    first.release()
    const second = acquireDataLock(directory)
    first.release()
    expect(() => acquireDataLock(directory)).toThrow(DataLockedError)
    second.release()
  })

  test('of concurrently started processes, exactly one acquires the lock', async () => {
    const directory = tempDirectory()
    const rivals = Array.from({ length: 4 }, () => tryOnce(directory, true))
    const results = await Promise.all(rivals.map(firstOutput))
    expect(results.toSorted()).toEqual(['DataLockedError', 'DataLockedError', 'DataLockedError', 'held'])
  })
})
