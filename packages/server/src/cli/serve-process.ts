import { access, readdirSync } from 'node:fs'
import type { IncomingMessage, Server } from 'node:http'
import { getPriority, setPriority } from 'node:os'
import { isatty } from 'node:tty'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { BaseLogger } from 'pino'
import { nicenessStep } from '../storage/batch-threads.ts'

/** Signals that close-with-grace must not handle: handleSignals or the worker handles them, or their default action applies. */
export const skippedSignals = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGSEGV',
  'SIGUSR2',
  'SIGTERM',
] as const

/** Milliseconds in which a repeated signal is ignored: npm repeats the SIGINT that Ctrl-C sends to all processes. */
const repeatWindow = 1_000

/** Exit codes of a process that a signal ends, as in shells. */
const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const

interface Actions {
  /** Called for the first SIGINT or SIGTERM, and for SIGHUP after the terminal was closed. */
  readonly stop: (signal: string) => void
  /** Called for the second one, just before the process exits. */
  readonly onSecond: (signal: string) => void
  /** Called for SIGHUP, unless the terminal was closed. */
  readonly reload: () => void
  /** Called for a signal without effect. */
  readonly onIgnored: (signal: string) => void
}

/** Handles the signals of the service (docs/interface.md O5, O9). */
export function handleSignals({ stop, onSecond, reload, onIgnored }: Actions): void {
  let first: number | null = null

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      const now = performance.now()
      if (first === null) {
        first = now
        return stop(signal)
      }
      if (now - first < repeatWindow) return
      onSecond(signal)
      process.exit(exitCodes[signal])
    })
  }

  const terminals = [0, 1, 2].filter((fd) => isatty(fd))
  process.on('SIGHUP', () => {
    // A closed terminal is no longer a TTY; `kill -HUP` and log rotation leave it open.
    if (terminals.every((fd) => isatty(fd))) return reload()
    first ??= performance.now()
    stop('SIGHUP')
  })
  process.on('SIGUSR2', () => onIgnored('SIGUSR2'))
}

/** Writes warnings of Node.js to the log, instead of as text to standard error. */
export function logProcessWarnings(log: Pick<BaseLogger, 'warn'>): void {
  process.removeAllListeners('warning')
  process.on('warning', (warning) => log.warn({ err: warning }, 'a warning of Node.js'))
}

/** The request that supervisors send all the time, and that needs no thread. Readiness, which metrics include, writes a file. */
const probe = '/healthz'

/**
 * Starts the threads of libuv's pool with the first request, so that an idle service does not have them, and lowers their priority. All of
 * them start with their first task, with the priority of the main thread.
 */
export function startPoolWithFirstRequest(http: Server): void {
  const onRequest = ({ url = '' }: IncomingMessage) => {
    if (url === probe) return
    http.off('request', onRequest)
    access('/', () => undefined)
    lowerWorkerPriority()
  }
  http.on('request', onRequest)
}

/** Milliseconds. After the start, so that it takes none of its time. */
const collectionDelay = 1_000

/**
 * Makes V8 release the memory that only the start has used. V8 does so half a minute after the start, while
 * little is allocated, but only after a full collection, which an idle service has no need of.
 */
export function releaseMemoryOfStart(): void {
  setTimeout(() => {
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('gc')
    // Compiled code is kept for each set of flags.
    setFlagsFromString('--no-expose-gc')
    if (typeof collect === 'function') collect({ type: 'major', execution: 'async' })
  }, collectionDelay).unref()
}

/**
 * Lowers the CPU priority of all threads except the main thread, so that listings stay fast during uploads. Only Linux has priorities
 * of threads; on other systems this does nothing.
 */
export function lowerWorkerPriority(): void {
  if (process.platform !== 'linux') return
  try {
    const niceness = Math.min(getPriority() + nicenessStep, 19)
    for (const thread of readdirSync('/proc/self/task').map(Number))
      if (thread !== process.pid) setPriority(thread, niceness)
  } catch {
    // The threads cannot be listed, one has just ended, or changes are not allowed. The service also works without lower
    // priorities.
  }
}
