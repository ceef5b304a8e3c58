import { extname, join, resolve } from 'node:path'
import { styleText } from 'node:util'
import { parse, UsageError } from '@mediabucket/cli/command'
import { programName, shellWord, watchNpm } from '@mediabucket/cli/processes'
import type { Logger } from 'pino'
import { locationText, withoutPassword } from '../core/storage-urls.ts'
import { type Config, readConfig } from '../service/config.ts'
import { rereadVariables } from '../service/environment.ts'
import { compareSettings, reloadableOf, takeOver } from '../service/reload.ts'
import type { RequestLog, Service } from '../service/start.ts'
import { checkSettings } from './check-settings.ts'
import type { Command } from './command.ts'
import { loadMcpHandler } from './mcp-handler.ts'
import {
  handleSignals,
  logProcessWarnings,
  lowerWorkerPriority,
  releaseMemoryOfStart,
  skippedSignals,
  startPoolWithFirstRequest,
} from './serve-process.ts'

/** The reason why the service stops, for the log. */
type Cause = Readonly<{ signal?: string; cause?: string }>

export const serve: Command = {
  help: `Usage: mediabucket serve [--check [--connect]]

Listens on MEDIABUCKET_HOST and MEDIABUCKET_PORT (default http://127.0.0.1:8080). Stores all data in the directory
MEDIABUCKET_DATA (default ./data), which is created if it does not exist. The first start creates the bucket "default"
and prints a token of it with all scopes; the token is not shown again.

Options:
  --check    Check the settings, print what is wrong with them, and exit.
  --connect  With --check: also check that the data directory can be written, and that the database, the store of the
             files and the scanner of uploads can be reached. Changes nothing; the service may be running.

Signals:
  SIGTERM, SIGINT           accept requests for MEDIABUCKET_SHUTDOWN_DELAY (off), finish the requests in progress within
                            MEDIABUCKET_SHUTDOWN_TIMEOUT (10s), and exit; a second signal, one second or more after the first,
                            exits at once
  SIGHUP                    read the settings again: rates, origins, MEDIABUCKET_READ_ONLY and the level of the log apply;
                            after the terminal of the service was closed, as SIGTERM
  SIGUSR1, SIGUSR2, SIGPIPE ignored

Exit codes:
  0    stopped by a signal; with --check: the settings are valid
  1    the start failed, or an error stopped the service; standard error has the reason
  2    a setting is invalid
  130  a second SIGINT
  143  a second SIGTERM

The log is written to standard error: as JSON, one object per line, or as readable text on a terminal
(MEDIABUCKET_LOG_FORMAT). \`mediabucket help settings\` lists the settings.`,

  async run(args, { config, warnings, print, report }) {
    const { values, positionals } = parse('serve', {
      args: [...args],
      allowPositionals: true,
      options: { check: { type: 'boolean' }, connect: { type: 'boolean' } },
    })
    if (positionals.length > 0)
      throw new UsageError(`serve takes no arguments, but received: ${positionals.join(' ')}`)
    if (values.connect && !values.check) throw new UsageError('--connect needs --check')
    if (values.check) return await checkSettings({ config, warnings, print, report }, values.connect === true)
    // Loaded here, so that other commands start faster.
    const [start, { openServiceLog }, { default: closeWithGrace }] = await Promise.all([
      loadStart(config),
      import('./service-log.ts'),
      import('close-with-grace'),
    ])
    const { log, isReadable, requestLog } = openServiceLog(config)
    logProcessWarnings(log)
    for (const warning of warnings) log.warn(warning)

    const failed = new AbortController()
    const onFailure = (error: Error) => {
      log.fatal({ err: error }, `${error.message}; stopping`)
      failed.abort(error)
    }
    const service = await start(config, log, { requestLog, onFailure })
    lowerWorkerPriority()
    let cause: Cause = {}
    const { close } = closeWithGrace(
      {
        delay: config.shutdownDelay + config.shutdownTimeout + 5_000,
        logger: false,
        skip: [...skippedSignals],
      },
      async ({ err }) => {
        if (err) log.fatal({ err }, 'an unexpected error occurred; stopping')
        else log.info(cause, 'stopping')
        await service.stop()
        log.info('stopped')
        // The exit code is 0 unless this function throws.
        failed.signal.throwIfAborted()
      },
    )
    let stopping = false
    const stop = (reason: Cause) => {
      if (stopping) return
      stopping = true
      cause = reason
      close()
    }
    handleSignals({
      stop: (signal) => stop({ signal }),
      onSecond: (signal) => log.warn({ signal }, 'a second signal; exiting at once'),
      reload: createReload(config, service, log),
      onIgnored: (signal) => log.info({ signal }, 'ignored'),
    })
    watchNpm(() => stop({ cause: 'the process that started this one has ended' }))
    failed.signal.addEventListener('abort', () => stop({}))
    if (failed.signal.aborted) return stop({})

    const { host, data } = config
    // On a terminal, the banner contains this.
    if (!isReadable)
      log.info(
        {
          url: service.address.baseUrl,
          host,
          port: service.address.port,
          ...(service.address.s3Port !== null && { s3Port: service.address.s3Port }),
          data,
          ...placesOf(config),
          pid: process.pid,
        },
        'listening',
      )
    const isForPeople = config.logFormat === 'text' || (config.logFormat === 'auto' && process.stdout.isTTY)
    console.log(isForPeople ? banner(service, config) : announcement(service, config))
  },
}

/** Returns the function that reads the settings again. It never throws. */
function createReload(started: Config, service: Pick<Service, 'reload'>, log: Logger): () => void {
  let current = started
  return () => {
    try {
      const { config: next, warnings } = readConfig(rereadVariables())
      for (const warning of warnings) log.warn(warning)
      const { applied, needRestart } = compareSettings(current, next)
      current = takeOver(current, next, applied)
      service.reload(reloadableOf(current))
      // Whatever the level is: the operator looks for it.
      if (current.logLevel !== 'silent')
        log.child({}, { level: 'info' }).info({ applied }, 'read the settings again')
      if (needRestart.length > 0) log.warn({ settings: needRestart }, 'these settings need a restart')
    } catch (err) {
      log.error({ err }, 'the settings stay as they were, because the new ones cannot be used')
    }
  }
}

type Start = (
  config: Config,
  log: Logger,
  parts: {
    readonly requestLog: RequestLog
    readonly onFailure: (error: Error) => void
  },
) => Promise<Service>

/** Loads what starts the service as one process, or as several. */
async function loadStart({ workers }: Pick<Config, 'workers'>): Promise<Start> {
  if (workers === 1) {
    const { startService } = await import('../service/start.ts')
    return async (config, log, parts) => {
      const handleMcp = await loadMcpHandler(config)
      const service = await startService(config, log, { ...parts, handleMcp, shared: null })
      startPoolWithFirstRequest(service.http)
      releaseMemoryOfStart()
      return service
    }
  }
  const { startWorkers } = await import('../service/workers.ts')
  // The extension is .ts in the sources and .js in the published build.
  const program = new URL(`./serve-worker${extname(import.meta.url)}`, import.meta.url)
  return (config, log, parts) => startWorkers(config, log, { ...parts, program })
}

type Places = Pick<Config, 'data' | 'databaseUrl' | 'blobsUrl'>

/** Where the rows and the files are, without passwords. */
export const placesOf = ({ data, databaseUrl, blobsUrl }: Places) => ({
  catalog: databaseUrl === null ? join(resolve(data), 'catalog.db') : withoutPassword(databaseUrl),
  files: blobsUrl === null ? resolve(data) : locationText(blobsUrl),
})

/** The command that creates another token. */
const tokenCommand = ({ data }: Pick<Config, 'data'>): string =>
  `${resolve(data) === resolve('data') ? '' : `MEDIABUCKET_DATA=${shellWord(resolve(data))} `}${programName()} token create --bucket default`

/**
 * The same as `banner` as a line of JSON, where the log is JSON: programs that collect the output of a service read standard output and the
 * log as one (docs/interface.md O10). The token is on standard output only, never in the log.
 */
export function announcement(
  { address, firstToken }: Pick<Service, 'address' | 'firstToken'>,
  config: Places,
): string {
  const about = { url: address.baseUrl, ...placesOf(config) }
  const ready = `Mediabucket is ready at ${address.baseUrl}`
  const line = { level: 30, time: Date.now() }
  return JSON.stringify(
    firstToken === null
      ? {
          ...line,
          ...about,
          createToken: tokenCommand(config),
          msg: `${ready} with the data of earlier starts`,
        }
      : {
          ...{ ...line, ...about, bucket: 'default', token: firstToken, createToken: tokenCommand(config) },
          msg: `${ready} with the new bucket "default"; its token, with all scopes, is shown only now`,
        },
  )
}

/** The text that a start prints on standard output: the URL, the token of the first start, and the next steps. */
export function banner(
  { address, firstToken }: Pick<Service, 'address' | 'firstToken'>,
  config: Places,
): string {
  const { catalog, files } = placesOf(config)
  const { baseUrl, hasGallery } = address
  const paint = (format: Parameters<typeof styleText>[0], text: string) =>
    styleText(format, text, { stream: process.stdout })
  const heading = (text: string) => paint('bold', text)
  const command = (text: string) => `  ${paint('cyan', text)}`
  const authorization = `-H 'Authorization: Bearer ${firstToken}'`

  const opening = [
    `${heading('Mediabucket is ready at')} ${paint(['bold', 'green', 'underline'], baseUrl)}`,
    ...(hasGallery ? ['Open it in a browser to view, upload and delete files with a token.'] : []),
    paint('dim', `The catalog is ${catalog}.`),
    paint('dim', `Files are stored in ${files}. Ctrl-C stops the service.`),
  ]
  const first = [
    heading('Created the bucket "default". Its token, with all scopes, is shown only now:'),
    '',
    `  ${paint(['bold', 'yellow'], firstToken ?? '')}`,
    '',
    'Upload a file:',
    '',
    command(`curl ${authorization} -F file=@README.md ${baseUrl}/api/media`),
    '',
    'List the files:',
    '',
    command(`curl ${authorization} ${baseUrl}/api/media`),
  ]
  const later = [`To create another token: ${paint('cyan', tokenCommand(config))}`]
  return ['', ...opening, '', ...(firstToken === null ? later : first), ''].join('\n')
}
