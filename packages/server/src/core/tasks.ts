/** The resources that a service releases when it stops. */
export class Closers {
  readonly #onFailure: (what: string, error: unknown) => void
  readonly #closers: { readonly what: string; readonly close: () => unknown }[] = []

  /** `onFailure` receives each error of a closer as it happens. */
  constructor(onFailure: (what: string, error: unknown) => void) {
    this.#onFailure = onFailure
  }

  add(what: string, close: () => unknown): void {
    this.#closers.push({ what, close })
  }

  /**
   * Runs every closer once, the last one added first. A closer that throws does not skip the others; throws
   * AggregateError at the end.
   */
  async closeAll(): Promise<void> {
    const errors: unknown[] = []
    for (const { what, close } of this.#closers.splice(0).reverse()) {
      try {
        await close()
      } catch (error) {
        this.#onFailure(what, error)
        errors.push(error)
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, 'the service did not stop cleanly')
  }
}

/** The timer of an interval in milliseconds, and what it runs. One for all tasks wakes an idle process once. */
interface Clock {
  readonly timer: NodeJS.Timeout
  readonly ticks: Set<() => void>
}

const clocks = new Map<number, Clock>()

function startClock(interval: number): Clock {
  const ticks = new Set<() => void>()
  const timer = setInterval(() => {
    for (const tick of ticks) tick()
  }, interval)
  // The timer does not keep the process alive.
  timer.unref()
  const clock = { timer, ticks }
  clocks.set(interval, clock)
  return clock
}

/**
 * Runs `work` at each interval, for the first time within one, unless the previous run is in progress.
 * Tasks of the same interval run at the same time.
 */
export class PeriodicTask {
  readonly #parts: PeriodicWork
  readonly #clock: Clock
  readonly #tick: () => void
  #running: Promise<void> | null = null

  constructor(parts: PeriodicWork) {
    this.#parts = parts
    this.#clock = clocks.get(parts.interval) ?? startClock(parts.interval)
    this.#tick = () => {
      this.#running ??= this.#run()
    }
    this.#clock.ticks.add(this.#tick)
  }

  /** Resolves when the run in progress has ended. */
  async stop(): Promise<void> {
    const { timer, ticks } = this.#clock
    if (ticks.delete(this.#tick) && ticks.size === 0) {
      clearInterval(timer)
      clocks.delete(this.#parts.interval)
    }
    await this.#running
  }

  async #run(): Promise<void> {
    try {
      await this.#parts.work()
    } catch (error) {
      this.#parts.onFailure(error)
    }
    this.#running = null
  }
}

interface PeriodicWork {
  readonly work: () => Promise<unknown>
  /** Milliseconds. */
  readonly interval: number
  readonly onFailure: (error: unknown) => void
}

/** Shares the event loop between callers that have many tasks, and all other requests: each tick runs one task, and callers alternate. */
export class TickQueue {
  /** The waiting tasks of each caller. The first caller is the next one; a Map keeps the order of insertion. */
  readonly #waiting = new Map<string, (() => void)[]>()

  /**
   * Resolves when the caller may run one task, of about a millisecond. Other requests wait for one at the most, however many callers
   * there are.
   */
  next(caller: string): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.size === 0) setImmediate(() => this.#runOne())
      const tasks = this.#waiting.get(caller)
      if (tasks) tasks.push(resolve)
      else this.#waiting.set(caller, [resolve])
    })
  }

  #runOne(): void {
    const [first] = this.#waiting
    if (!first) return
    const [caller, tasks] = first
    const task = tasks.shift()
    this.#waiting.delete(caller)
    if (tasks.length > 0) this.#waiting.set(caller, tasks)
    if (this.#waiting.size > 0) setImmediate(() => this.#runOne())
    task?.()
  }
}

/** Collects what arrives in one iteration of the event loop, and handles all of it together after that. */
export class TickBatch<T> {
  readonly #handle: (all: readonly T[]) => void
  readonly #later: (handle: () => void) => void
  #collected: T[] = []

  /** `later` calls back when all of it has arrived. */
  constructor(handle: (all: readonly T[]) => void, later: (handle: () => void) => void = setImmediate) {
    this.#handle = handle
    this.#later = later
  }

  add(one: T): void {
    if (this.#collected.push(one) === 1) this.#later(() => this.flush())
  }

  /** Handles now what has arrived. */
  flush(): void {
    const all = this.#collected
    this.#collected = []
    if (all.length > 0) this.#handle(all)
  }
}

/** The longest pause between two steps. Milliseconds. A longer step waits for a disk or a store, and leaves the processor to other work. */
const longestPause = 100

/**
 * Runs the steps of background work until one returns false, or until the process stops. Pauses after each step for `rest` times as long as it took, up
 * to `longestPause`, so that by default the work uses half of a core at the most.
 */
export async function runInSteps(
  step: () => Promise<boolean>,
  isStopping: () => boolean,
  rest = 1,
): Promise<void> {
  while (!isStopping()) {
    const start = performance.now()
    if (!(await step())) return
    const pause = Math.min(rest * (performance.now() - start), longestPause)
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}

/** Throws the failures of work whose parts do not depend on each other, if there are any. */
export function throwFailures(failures: readonly unknown[], what: string): void {
  if (failures.length === 1) throw failures[0]
  // Many mostly have one cause.
  if (failures.length > 1)
    throw new AggregateError(failures.slice(0, 3), `${what} failed ${failures.length} times`)
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
  await Promise.all(
    Array.from({ length: Math.min(limit, items.length) }, async () => {
      for (const [index, item] of waiting) [results[index]] = await Promise.allSettled([work(item)])
    }),
  )
  return results
}

/** Returns whether this is the first call for this time. Milliseconds. */
export function oncePer(interval: number): () => boolean {
  let last = Number.NEGATIVE_INFINITY
  return () => {
    const now = performance.now()
    if (now - last < interval) return false
    last = now
    return true
  }
}
