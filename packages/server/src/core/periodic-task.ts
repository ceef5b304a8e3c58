/** Runs `work` again and again, never twice at once, until it is stopped; `stop` waits for the run that is under way. */
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
  // It is no reason for the process to go on.
  timer.unref()
  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}
