import { Fault } from '../../core/fault.ts'

/** Searches that wait for others; more are refused. */
const maxWaiting = 100

/** Runs up to `running` searches at a time, in the order of their requests. Throws Fault `overloaded` if too many wait. */
export function createSearchQueue(running: number): <T>(search: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let free = running

  return async (search) => {
    if (free > 0) free -= 1
    else if (waiting.length < maxWaiting) await new Promise<void>((resolve) => waiting.push(resolve))
    else throw new Fault('overloaded', 'Too many searches are waiting; try again.')
    try {
      return await search()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free += 1
    }
  }
}
