import { getPriority, setPriority } from 'node:os'

/** As in cli/thread-priorities.ts. */
const nicenessStep = 5

/** For a thread that starts on demand, after the service has lowered the priority of its other threads. */
export function lowerOwnPriority(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Math.min(getPriority(process.pid) + nicenessStep, 19))
  } catch {
    // Not permitted on some systems, and not required.
  }
}
