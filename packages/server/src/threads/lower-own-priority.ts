import { getPriority, setPriority } from 'node:os'
import { nicenessStep } from '../core/niceness-step.ts'

/**
 * Lowers the CPU priority of the calling thread. For threads that start on demand; cli/thread-priorities.ts does the same for those that
 * run at the start of the service.
 */
export function lowerOwnPriority(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Math.min(getPriority(process.pid) + nicenessStep, 19))
  } catch {
    // Not permitted on some systems, and not required.
  }
}
