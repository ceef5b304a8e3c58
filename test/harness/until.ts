import { setTimeout } from 'node:timers/promises'

/**
 * Calls `check` until it returns neither null, undefined nor false, and returns that value; throws at the deadline. The longer it waits, the
 * less often it calls: a check of a page needs 5 ms of CPU time in three processes.
 */
export async function until<T>(
  what: string,
  check: () => T | Promise<T>,
  milliseconds = 60_000,
): Promise<Exclude<T, null | undefined | false>> {
  const start = performance.now()
  for (;;) {
    const value = await check()
    if (value !== null && value !== undefined && value !== false)
      return value as Exclude<T, null | undefined | false>
    const waited = performance.now() - start
    if (waited > milliseconds) throw new Error(`not within ${milliseconds} ms: ${what}`)
    await setTimeout(Math.min(10 + waited / 10, 50))
  }
}
