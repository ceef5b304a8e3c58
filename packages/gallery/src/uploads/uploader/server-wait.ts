/** Waits for a server that does not respond, or that asked to wait. */
export interface ServerWait {
  /** Whether the server does not respond. */
  readonly waiting: boolean
  /** Resolves when `end` is called. */
  untilBack(): Promise<void>
  /** Resolves after these milliseconds, or when `end` is called. */
  delay(milliseconds: number): Promise<void>
  /** Ends the current wait. */
  end(): void
}

export function createServerWait(): ServerWait {
  let waiting = false
  let endCurrent = () => {}
  const wait = (milliseconds: number | null) =>
    new Promise<void>((resolve) => {
      const timer = milliseconds === null ? undefined : setTimeout(() => endCurrent(), milliseconds)
      endCurrent = () => {
        clearTimeout(timer)
        waiting = false
        resolve()
      }
    })
  return {
    get waiting() {
      return waiting
    },
    async untilBack() {
      waiting = true
      await wait(null)
    },
    delay: (milliseconds) => wait(milliseconds),
    end: () => endCurrent(),
  }
}
