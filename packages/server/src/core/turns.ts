/** Shares the event loop between callers whose work has many pieces, and the requests of everybody else. */
export interface Turns {
  /**
   * Resolves when the caller may do one piece of work, of about a millisecond. Each iteration of the event loop has one such piece; so
   * other requests wait for one piece at the most, however many callers there are. Callers alternate.
   */
  readonly next: (caller: string) => Promise<void>
}

export function createTurns(): Turns {
  /** The waiting pieces of each caller. The first caller is the next one; a Map keeps the order of insertion. */
  const waiting = new Map<string, (() => void)[]>()

  function runOne(): void {
    const [first] = waiting
    if (!first) return
    const [caller, pieces] = first
    const piece = pieces.shift()
    waiting.delete(caller)
    if (pieces.length > 0) waiting.set(caller, pieces)
    if (waiting.size > 0) setImmediate(runOne)
    piece?.()
  }

  return {
    next: (caller) =>
      new Promise((resolve) => {
        if (waiting.size === 0) setImmediate(runOne)
        const pieces = waiting.get(caller)
        if (pieces) pieces.push(resolve)
        else waiting.set(caller, [resolve])
      }),
  }
}
