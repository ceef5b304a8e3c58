import { isBusy } from './result-codes.ts'

/** Milliseconds that a write waits for writes of other processes. */
const busyTimeout = 10_000
/** Milliseconds between two attempts. SQLite's own busy handler waits up to 100 ms, and starves while another connection keeps writing. */
const retryInterval = 2

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/** Runs the action, and repeats it while SQLite reports busy; blocks the thread. */
export function waitWhileBusy<T>(action: () => T): T {
  const deadline = performance.now() + busyTimeout
  for (;;) {
    try {
      return action()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error
      Atomics.wait(sleeper, 0, 0, retryInterval)
    }
  }
}
