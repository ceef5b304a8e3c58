import { writeSync } from 'node:fs'
import { redactTokens } from '../core/redact-tokens.ts'
import type { Server } from '../server.ts'
import { requireNoRestore } from '../upkeep/restore-stage.ts'
import { type Command, UsageError } from './command.ts'
import { favourMainThread } from './favour-main-thread.ts'
import { gatheredLines } from './gathered-lines.ts'

export const serve: Command = {
  summary: 'Serve the bucket over HTTP.',
  help: `Usage: mediabucket serve

Serves at MEDIABUCKET_HOST and MEDIABUCKET_PORT (http://127.0.0.1:8080 unless set) from the directory
MEDIABUCKET_DATA (./data unless set), which is made if need be. The first start makes the bucket "default"
and prints its token once. Stops on SIGTERM or SIGINT when the requests under way are done.

The log goes to standard error, one line of JSON for each event. \`mediabucket help\` lists the settings.`,

  async run(args, { config, warnings, print }) {
    if (args.length > 0) throw new UsageError(`serve takes no arguments, and was given: ${args.join(' ')}`)
    requireNoRestore(config.data)
    // Loaded here, so that the other commands need not wait for it.
    const [{ startServer }, { pino }, { default: closeWithGrace }] = await Promise.all([
      import('../server.ts'),
      import('pino'),
      import('close-with-grace'),
    ])
    const lines = gatheredLines((bytes) => writeSync(2, bytes))
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
    favourMainThread()
    const { close } = closeWithGrace(
      { delay: config.shutdownTimeout + 5_000, logger: false },
      async ({ err, signal }) => {
        if (err) log.fatal({ err }, 'an unexpected error; stopping')
        else log.info({ signal }, 'stopping')
        await server.stop()
        log.info('stopped')
        // The exit code is 0 unless this function throws.
        failed.signal.throwIfAborted()
      },
    )
    failed.signal.addEventListener('abort', () => void close())
    if (failed.signal.aborted) return void close()

    log.info(
      { url: server.baseUrl, host: config.host, port: server.port, data: config.data, pid: process.pid },
      'listening',
    )
    print(server.firstToken === null ? later(server) : welcome(server, server.firstToken))
  },
}

const ready = ({ baseUrl, hasGallery }: Server) => `
Mediabucket is ready at ${baseUrl}
${hasGallery ? 'Open it in a browser to see, add and delete files with a token.\n' : ''}`

const welcome = (server: Server, token: string) => `${ready(server)}
The bucket "default" is made. This is its token; it is shown this once:

  ${token}

Upload a file:

  curl -H 'Authorization: Bearer ${token}' -F file=@README.md ${server.baseUrl}/api/media

List what is there:

  curl -H 'Authorization: Bearer ${token}' ${server.baseUrl}/api/media
`

const later = (server: Server) => `${ready(server)}
To make another token: npx mediabucket token create --bucket default
`
