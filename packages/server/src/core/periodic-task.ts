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
