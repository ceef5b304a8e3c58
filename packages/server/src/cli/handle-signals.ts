import { isatty } from 'node:tty'

/** Milliseconds in which a second signal counts as the first: npm repeats the SIGINT that Ctrl-C sends to all processes. */
const repeated = 1_000

/** Exit codes of a process that a signal ends, as in shells. */
const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const

interface Actions {
  /** Receives the first SIGINT or SIGTERM, or the SIGHUP of a terminal that was closed. */
  readonly stop: (signal: string) => void
  /** Receives the second one, just before the process exits. */
  readonly onSecond: (signal: string) => void
  /** Receives a SIGHUP that has no effect. */
  readonly onIgnored: (signal: string) => void
}

/** Handles the signals that a service receives (docs/interface.md O5). */
export function handleSignals({ stop, onSecond, onIgnored }: Actions): void {
  let first: number | null = null

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      const now = performance.now()
      if (first === null) {
        first = now
        return stop(signal)
      }
      if (now - first < repeated) return
      onSecond(signal)
      process.exit(exitCodes[signal])
    })
  }

  const terminals = [0, 1, 2].filter((fd) => isatty(fd))
  process.on('SIGHUP', () => {
    // A terminal that was closed is one no longer; `kill -HUP` and log rotation leave it as it is.
    if (terminals.every((fd) => isatty(fd))) return onIgnored('SIGHUP')
    first ??= performance.now()
    stop('SIGHUP')
  })
  process.on('SIGUSR2', () => onIgnored('SIGUSR2'))
}
