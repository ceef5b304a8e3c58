import { setTimeout } from 'node:timers/promises'

/** Asks until the answer is neither null, undefined nor false, and gives it back; throws at the deadline. */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  milliseconds = 60_000,
): Promise<Exclude<T, null | undefined | false>> {
  const deadline = performance.now() + milliseconds
  for (;;) {
    const answer = await ask()
    if (answer !== null && answer !== undefined && answer !== false)
      return answer as Exclude<T, null | undefined | false>
    if (performance.now() > deadline) throw new Error(`not within ${milliseconds} ms: ${what}`)
    await setTimeout(10)
  }
}
