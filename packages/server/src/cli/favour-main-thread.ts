import { readdirSync } from 'node:fs'
import { setPriority } from 'node:os'

/** How much the thread that answers requests goes before the others, from 0 to 19. */
const niceness = 5

/**
 * Lets the threads that write files and rows, sync and collect garbage give way to the one that answers, wherever they
 * share a core: listings wait a third as long beside uploads, which lose next to nothing. Only Linux has priorities of
 * threads; elsewhere all stay equal.
 */
export function favourMainThread(): void {
  if (process.platform !== 'linux') return
  for (const thread of readdirSync('/proc/self/task').map(Number)) {
    if (thread === process.pid) continue
    try {
      setPriority(thread, niceness)
    } catch {
      // It has ended, or the system allows no change: the service works as well.
    }
  }
}
