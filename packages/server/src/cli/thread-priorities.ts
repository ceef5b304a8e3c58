import { readdirSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { nicenessStep } from '../core/niceness-step.ts'

/**
 * Lowers the CPU priority of all threads except the main thread, so that listings stay fast during uploads. Only Linux has priorities
 * of threads; on other systems this does nothing.
 */
export function lowerWorkerPriority(): void {
  if (process.platform !== 'linux') return
  try {
    const niceness = Math.min(getPriority() + nicenessStep, 19)
    for (const thread of readdirSync('/proc/self/task').map(Number))
      if (thread !== process.pid) setPriority(thread, niceness)
  } catch {
    // The threads cannot be listed, one has just ended, or changes are not allowed. The service also works without lower
    // priorities.
  }
}
