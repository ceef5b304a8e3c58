/** Waits for a service that does not respond, or that asked to wait. */
export interface ServerWait {
  /** Whether the service does not respond. */
  readonly waiting: boolean
  /** Resolves when the service is back, or when the wait is cut short. */
  untilBack(): Promise<void>
  /** Resolves after these milliseconds, or when the wait is cut short. */
  delay(milliseconds: number): Promise<void>
  /** Ends every wait. */
  end(): void
}

export function createServerWait(): ServerWait {
  let waiting = false
  let end = () => {}
  const wait = (milliseconds: number | null) =>
    new Promise<void>((resolve) => {
      const timer = milliseconds === null ? undefined : setTimeout(() => end(), milliseconds)
      end = () => {
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
    end: () => end(),
  }
}
