import { setTimeout } from 'node:timers/promises'

/** Calls `check` until it returns neither null, undefined nor false, and returns that value; throws at the deadline. */
export async function until<T>(
  what: string,
  check: () => T | Promise<T>,
  milliseconds = 60_000,
): Promise<Exclude<T, null | undefined | false>> {
  const deadline = performance.now() + milliseconds
  for (;;) {
    const value = await check()
    if (value !== null && value !== undefined && value !== false)
      return value as Exclude<T, null | undefined | false>
    if (performance.now() > deadline) throw new Error(`not within ${milliseconds} ms: ${what}`)
    await setTimeout(10)
  }
}
