import { appendFileSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { type CommitCall, type FileCall, reachedFile, readFailpoints, steps } from './steps.ts'
import { isServer, watchDisk } from './watch-disk.ts'

// Loaded into a server before its own program (node --import), in its main thread and in those that write: the service
// itself has no failpoints, and a normal run loads nothing of this.

/** Milliseconds between two looks whether a held step may go on. */
const pause = 5
const sleeper = new Int32Array(new SharedArrayBuffer(4))

const reached = reachedFile(process.env['MEDIABUCKET_DATA'] ?? '')
const turns = `${reached}-turns`

if (isServer()) {
  // The other threads begin later; what an earlier server reached is gone by then.
  if (isMainThread) {
    for (const path of [reached, turns]) rmSync(path, { recursive: true, force: true })
    mkdirSync(turns, { recursive: true })
  }
  for (const failpoint of readFailpoints(process.env)) arm(failpoint)
}

function arm({ step, nth, action }: ReturnType<typeof readFailpoints>[number]): void {
  const { when, is } = steps[step]
  let last = 0
  // Every thread has a failpoint of its own and takes a turn in a count that they share.
  const takeTurn = (): number => {
    for (;;) {
      last += 1
      try {
        mkdirSync(join(turns, `${step} ${last}`))
        return last
      } catch (error) {
        if (!existsSync(turns)) throw error
      }
    }
  }
  const isReached = (now: 'before' | 'after', call: FileCall | CommitCall): boolean =>
    when === now && is(call) && last < nth && takeTurn() === nth
  const act = (): void => {
    appendFileSync(reached, `${step}\n`)
    if (action === 'kill') process.kill(process.pid, 'SIGKILL')
    // errcode is how SQLite tells of a disk: SQLITE_IOERR and SQLITE_FULL.
    if (action === 'EIO') throw Object.assign(new Error('EIO: a failpoint'), { code: 'EIO', errcode: 10 })
    if (action === 'ENOSPC')
      throw Object.assign(new Error('ENOSPC: a failpoint'), { code: 'ENOSPC', errcode: 13 })
  }
  const isHeld = (): boolean => typeof action === 'object' && !existsSync(action.holdUntil)

  const passSync = (now: 'before' | 'after', call: CommitCall): void => {
    if (!isReached(now, call)) return
    act()
    while (isHeld()) Atomics.wait(sleeper, 0, 0, pause)
  }
  const pass = async (now: 'before' | 'after', call: FileCall): Promise<void> => {
    if (!isReached(now, call)) return
    act()
    while (isHeld()) await setTimeout(pause)
  }

  watchDisk({
    async file(call, work) {
      await pass('before', call)
      await work()
      await pass('after', call)
    },
    commit(call, work) {
      passSync('before', call)
      const result = work()
      passSync('after', call)
      return result
    },
  })
}
