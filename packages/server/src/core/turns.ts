/** Shares the event loop between callers that have many tasks, and all other requests. */
export interface Turns {
  /**
   * Resolves when the caller may run one task, of about a millisecond. Each iteration of the event loop has one task, so other
   * requests wait for one at the most, however many callers there are. Callers alternate.
   */
  readonly next: (caller: string) => Promise<void>
}

export function createTurns(): Turns {
  /** The waiting tasks of each caller. The first caller is the next one; a Map keeps the order of insertion. */
  const waiting = new Map<string, (() => void)[]>()

  function runOne(): void {
    const [first] = waiting
    if (!first) return
    const [caller, tasks] = first
    const task = tasks.shift()
    waiting.delete(caller)
    if (tasks.length > 0) waiting.set(caller, tasks)
    if (waiting.size > 0) setImmediate(runOne)
    task?.()
  }

  return {
    next: (caller) =>
      new Promise((resolve) => {
        if (waiting.size === 0) setImmediate(runOne)
        const tasks = waiting.get(caller)
        if (tasks) tasks.push(resolve)
        else waiting.set(caller, [resolve])
      }),
  }
}
