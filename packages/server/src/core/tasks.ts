/** The resources that a service releases when it stops. */
export interface Closers {
  add(what: string, close: () => unknown): void
  /**
   * Runs every closer once, the last one added first. A closer that throws does not skip the others; throws
   * AggregateError at the end.
   */
  closeAll(): Promise<void>
}

/** `onFailure` receives each error of a closer as it happens. */
export function createClosers(onFailure: (what: string, error: unknown) => void): Closers {
  const closers: { readonly what: string; readonly close: () => unknown }[] = []
  return {
    add(what, close) {
      closers.push({ what, close })
    },

    async closeAll() {
      const errors: unknown[] = []
      for (const { what, close } of closers.splice(0).reverse()) {
        try {
          await close()
        } catch (error) {
          onFailure(what, error)
          errors.push(error)
        }
      }
      if (errors.length > 0) throw new AggregateError(errors, 'the service did not stop cleanly')
    },
  }
}

/** Runs `work` at each interval unless the previous run is in progress. `stop` waits for the run in progress. */
export function startPeriodicTask(parts: {
  readonly work: () => Promise<unknown>
  /** Milliseconds. */
  readonly interval: number
  readonly onFailure: (error: unknown) => void
}): { stop(): Promise<void> } {
  let running: Promise<unknown> | null = null

  async function run(): Promise<void> {
    try {
      await parts.work()
    } catch (error) {
      parts.onFailure(error)
    }
    running = null
  }

  const timer = setInterval(() => {
    running ??= run()
  }, parts.interval)
  // The timer does not keep the process alive.
  timer.unref()
  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}

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

/** Whether the promise resolves within `time` milliseconds. Rejects as the promise does. */
export async function resolvesWithin(promise: Promise<unknown>, time: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, time, false)
  })
  try {
    return await Promise.race([promise.then(() => true), timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Runs `work` on every item, at most `limit` at once. The results are in the order of the items. */
export async function settleAll<Item, Result>(
  items: readonly Item[],
  limit: number,
  work: (item: Item) => Promise<Result>,
): Promise<PromiseSettledResult<Result>[]> {
  const results: PromiseSettledResult<Result>[] = []
  const waiting = items.entries()
  async function drain(): Promise<void> {
    for (const [index, item] of waiting) [results[index]] = await Promise.allSettled([work(item)])
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, drain))
  return results
}
