import { appendFileSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { interceptWrites, isServer } from './intercept-writes.ts'
import { type CommitCall, type FileCall, reachedFile, readFailpoints, steps } from './steps.ts'

// Loaded into a server with node --import, in its main thread and its writing threads. The service itself has no
// failpoints.

/** Milliseconds between two checks whether a held step may continue. */
const pause = 5
const sleeper = new Int32Array(new SharedArrayBuffer(4))

const reached = reachedFile(process.env['MEDIABUCKET_DATA'] ?? '')
const turns = `${reached}-turns`

if (isServer()) {
  // The other threads start later, so this file of an earlier server is removed first.
  if (isMainThread) {
    for (const path of [reached, turns]) rmSync(path, { recursive: true, force: true })
    mkdirSync(turns, { recursive: true })
  }
  for (const failpoint of readFailpoints(process.env)) arm(failpoint)
}

function arm({ step, nth, action }: ReturnType<typeof readFailpoints>[number]): void {
  const { when, is } = steps[step]
  let last = 0
  // Every thread has its own failpoint; the count is shared between the threads.
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
    // errcode as node:sqlite reports it: SQLITE_IOERR and SQLITE_FULL.
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

  interceptWrites({
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
