import closeWithGrace from 'close-with-grace'
import { readConfig } from '../service/config.ts'
import type { ReloadableSettings } from '../service/reload.ts'
import { ParentChannel, startWorker } from '../service/worker.ts'
import type { FromWorker, ToWorker } from '../service/worker-messages.ts'
import { explainFailure } from './explain-failure.ts'
import { loadMcpHandler } from './mcp-handler.ts'
import {
  logProcessWarnings,
  lowerWorkerPriority,
  releaseMemoryOfStart,
  skippedSignals,
  startPoolWithFirstRequest,
} from './serve-process.ts'
import { openServiceLog } from './service-log.ts'

// A worker of the service (MEDIABUCKET_WORKERS). The command `serve` starts it, and it ends when that process ends.

// A terminal sends its signals to all processes, and so does systemd. The parent decides what they mean.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const)
  process.on(signal, () => undefined)
process.on('disconnect', () => process.exit())
process.umask(0o077)

const send = (message: FromWorker): void => {
  if (process.connected) process.send?.(message)
}
const { config } = readConfig()
const { log, requestLog } = openServiceLog(config)
logProcessWarnings(log)
const parent = new ParentChannel(send)
const failed = new AbortController()
let worker: Awaited<ReturnType<typeof startWorker>> | null = null
/** Settings of a reload during the start. */
let reloaded: ReloadableSettings | null = null

const { close, uninstall } = closeWithGrace(
  {
    delay: config.shutdownDelay + config.shutdownTimeout + 1_000,
    logger: false,
    skip: [...skippedSignals],
  },
  async ({ err }) => {
    if (err) log.fatal({ err }, 'an unexpected error occurred in a worker; it stops')
    await worker?.stop()
    failed.signal.throwIfAborted()
  },
)

process.on('message', (message: ToWorker) => {
  if (parent.receive(message)) return
  if (message.kind === 'start') void start(message)
  else if (message.kind === 'reload') reload(message.settings)
  else if (message.kind === 'stop') close()
  else if (message.kind === 'snapshot-metrics') void snapshotMetrics(message.request)
})

function reload(settings: ReloadableSettings): void {
  reloaded = settings
  worker?.reload(settings)
}

async function start({
  owner,
  ownSecret,
  ports,
  settings,
}: Extract<ToWorker, { kind: 'start' }>): Promise<void> {
  try {
    const onFailure = (error: Error) => {
      log.fatal({ err: error }, `${error.message}; the worker stops`)
      failed.abort(error)
    }
    log.level = settings.logLevel
    const started = { ...config, ...settings }
    worker = await startWorker(started, log, {
      ...{ requestLog, onFailure, parent, owner, ownSecret, ports },
      handleMcp: await loadMcpHandler(started),
    })
    if (reloaded !== null) worker.reload(reloaded)
    lowerWorkerPriority()
    startPoolWithFirstRequest(worker.http)
    releaseMemoryOfStart()
    send({ kind: 'ready', address: worker.address })
    failed.signal.addEventListener('abort', () => close())
    if (failed.signal.aborted) close()
  } catch (error) {
    uninstall()
    const message =
      explainFailure(error) ?? (error instanceof Error ? error.stack : undefined) ?? String(error)
    process.send?.({ kind: 'failed', message }, () => process.exit(1))
  }
}

async function snapshotMetrics(request: number): Promise<void> {
  // Before the start is complete, there is nothing to count.
  const metrics = (await worker?.metrics.snapshot()) ?? []
  send({ kind: 'metrics-snapshot', request, metrics })
}
