import { appendFileSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { errorCode } from '../../packages/server/src/core/faults.ts'
import { interceptWrites, isServer } from './intercept-writes.ts'
import { type CommitCall, type FileCall, reachedFile, readFailpoints, steps } from './steps.ts'

// Loaded into a server with node --import, in its main thread and its writing threads. The service itself has no
// failpoints.

/** Milliseconds between two checks of whether a held step may continue. */
const pause = 5
const sleeper = new Int32Array(new SharedArrayBuffer(4))

const reached = reachedFile(process.env['MEDIABUCKET_DATA'] ?? '')
/** A directory with one entry for each occurrence of a step: `chunk written 1`, `chunk written 2`. */
const occurrences = `${reached}-occurrences`

if (isServer()) {
  // The main thread removes what an earlier server recorded. It runs this before the other threads start.
  if (isMainThread) {
    for (const path of [reached, occurrences]) rmSync(path, { recursive: true, force: true })
    mkdirSync(occurrences, { recursive: true })
  }
  for (const failpoint of readFailpoints(process.env)) arm(failpoint)
}

function arm({ step, nth, from, action }: ReturnType<typeof readFailpoints>[number]): void {
  const { when, matches } = steps[step]
  let last = 0
  // Each thread runs this for itself. The threads share the count, because mkdir of a name succeeds in only one of them.
  const countOccurrence = (): number => {
    for (;;) {
      last += 1
      try {
        mkdirSync(join(occurrences, `${step} ${last}`))
        return last
      } catch (error) {
        // Another thread has created the entry.
        if (errorCode(error) !== 'EEXIST') throw error
      }
    }
  }
  const isReached = (now: 'before' | 'after', call: FileCall | CommitCall): boolean =>
    when === now &&
    matches(call) &&
    last < nth &&
    (from === undefined || existsSync(from)) &&
    countOccurrence() === nth
  const act = (): void => {
    appendFileSync(reached, `${step}\n`)
    if (action === 'kill') process.kill(process.pid, 'SIGKILL')
    // errcode as node:sqlite reports it: SQLITE_IOERR and SQLITE_FULL.
    if (action === 'EIO') throw Object.assign(new Error('EIO: a failpoint'), { code: 'EIO', errcode: 10 })
    if (action === 'ENOSPC')
      throw Object.assign(new Error('ENOSPC: a failpoint'), { code: 'ENOSPC', errcode: 13 })
  }
  const isHeld = (): boolean => typeof action === 'object' && !existsSync(action.holdUntil)

  const runAtSync = (now: 'before' | 'after', call: CommitCall): void => {
    if (!isReached(now, call)) return
    act()
    while (isHeld()) Atomics.wait(sleeper, 0, 0, pause)
  }
  const runAt = async (now: 'before' | 'after', call: FileCall): Promise<void> => {
    if (!isReached(now, call)) return
    act()
    while (isHeld()) await setTimeout(pause)
  }

  interceptWrites({
    async file(call, work) {
      await runAt('before', call)
      await work()
      await runAt('after', call)
    },
    commit(call, work) {
      runAtSync('before', call)
      const result = work()
      runAtSync('after', call)
      return result
    },
  })
}
