import { readdirSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

/** How much nicer the other threads are than the one that answers requests. */
const step = 5

/**
 * Lets the threads that write files and rows, sync and collect garbage give way to the one that answers, wherever they
 * share a core: listings wait a third as long beside uploads, which lose next to nothing. Only Linux has priorities of
 * threads; elsewhere all stay equal.
 */
export function lowerWorkerPriority(): void {
  if (process.platform !== 'linux') return
  try {
    const niceness = Math.min(getPriority() + step, 19)
    for (const thread of readdirSync('/proc/self/task').map(Number))
      if (thread !== process.pid) setPriority(thread, niceness)
  } catch {
    // The system tells of no threads, one has just ended, or no change is allowed: the service works as well.
  }
}
