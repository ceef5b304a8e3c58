import { writeSync } from 'node:fs'
import { redactTokens } from '../core/redact-tokens.ts'
import { requireNoRestore } from '../upkeep/restore-stage.ts'
import { banner } from './banner.ts'
import { createBufferedLogLines } from './buffered-log-lines.ts'
import { type Command, UsageError } from './command.ts'
import { handleSignals } from './handle-signals.ts'
import { readableLogLines } from './readable-log-lines.ts'
import { lowerWorkerPriority } from './thread-priorities.ts'
import { watchNpm } from './watch-npm.ts'

/** Why the service stops, for the log. */
type Cause = Readonly<{ signal?: string; cause?: string }>

/** Signals that close-with-grace would handle: handleSignals does, or the system's default action holds. */
const otherSignals = [
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

export const serve: Command = {
  summary: 'Serve the bucket over HTTP.',
  help: `Usage: mediabucket serve

Serves at MEDIABUCKET_HOST and MEDIABUCKET_PORT (http://127.0.0.1:8080 unless set) from the directory
MEDIABUCKET_DATA (./data unless set), which is made if need be. The first start makes the bucket "default"
and prints its token once.

Signals:
  SIGTERM, SIGINT           finish the requests under way, for MEDIABUCKET_SHUTDOWN_TIMEOUT (10s) at most, and exit;
                            a second one, a second or more after the first, exits at once
  SIGHUP                    ignored, unless the terminal of the service was closed: then as SIGTERM
  SIGUSR1, SIGUSR2, SIGPIPE ignored

Exit codes:
  0    stopped as asked
  1    the start failed, or a disk or an unexpected error stopped the service; standard error says which
  2    a setting is not accepted
  130  a second SIGINT
  143  a second SIGTERM

The log goes to standard error: one line of JSON for each event, and lines for people on a terminal
(MEDIABUCKET_LOG_FORMAT). \`mediabucket help\` lists the settings.`,

  async run(args, { config, warnings, print }) {
    if (args.length > 0) throw new UsageError(`serve takes no arguments, and was given: ${args.join(' ')}`)
    requireNoRestore(config.data)
    // Loaded here, so that the other commands need not wait for it.
    const [{ startServer }, { pino }, { default: closeWithGrace }] = await Promise.all([
      import('../server/start-server.ts'),
      import('pino'),
      import('close-with-grace'),
    ])
    const isReadable = config.logFormat === 'text' || (config.logFormat === 'auto' && process.stderr.isTTY)
    const gathered = createBufferedLogLines((bytes) => writeSync(2, bytes))
    const lines = isReadable ? readable(gathered) : gathered
    // An unexpected error may quote what a client sent. Lines of requests are redacted where they are made.
    const options = { level: config.logLevel, base: null, hooks: { streamWrite: redactTokens } }
    const log = pino(options, lines)
    for (const warning of warnings) log.warn(warning)

    const failed = new AbortController()
    const writeLine = log.isLevelEnabled('info') ? lines.write : () => undefined
    const server = await startServer(config, log, writeLine, (error) => {
      log.fatal({ err: error }, 'a thread that writes failed; stopping')
      failed.abort(error)
    })
    lowerWorkerPriority()
    let cause: Cause = {}
    const { close } = closeWithGrace(
      { delay: config.shutdownTimeout + 5_000, logger: false, skip: [...otherSignals] },
      async ({ err }) => {
        if (err) log.fatal({ err }, 'an unexpected error; stopping')
        else log.info(cause, 'stopping')
        await server.stop()
        log.info('stopped')
        // The exit code is 0 unless this function throws.
        failed.signal.throwIfAborted()
      },
    )
    let stopping = false
    const stop = (why: Cause) => {
      if (stopping) return
      stopping = true
      cause = why
      close()
    }
    handleSignals({
      stop: (signal) => stop({ signal }),
      onSecond: (signal) => log.warn({ signal }, 'a second signal; exiting at once'),
      onIgnored: (signal) => log.info({ signal }, 'ignored'),
    })
    watchNpm(() => stop({ cause: 'the process that started this one has ended' }))
    failed.signal.addEventListener('abort', () => stop({}))
    if (failed.signal.aborted) return stop({})

    const { host, data } = config
    // For people, the banner says so.
    if (!isReadable)
      log.info({ url: server.baseUrl, host, port: server.port, data, pid: process.pid }, 'listening')
    print(banner(server, config.data))
  },
}

/** The same destination for lines of JSON, which it receives as lines for people. */
function readable({ write, flushSync }: ReturnType<typeof createBufferedLogLines>) {
  const toReadable = readableLogLines(process.stderr)
  return { write: (line: string) => write(toReadable(line)), flushSync }
}
