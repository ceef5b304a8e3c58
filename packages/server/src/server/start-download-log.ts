import { createDownloadLog, type DownloadLog } from '../media/download-log.ts'
import { hasRoomForEvents } from '../media/space/event-room.ts'
import type { FreeSpace } from '../media/space/free-space.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'

/** One line of the log for each problem and minute. Milliseconds. */
const logInterval = 60_000

/** Records downloads in the audit log; null unless MEDIABUCKET_AUDIT is `all`. Start it before the HTTP server, which stops before it. */
export function startDownloadLog(
  { config, log, metrics, closers }: StartContext,
  { catalog, space }: Pick<OpenData, 'catalog'> & { readonly space: Pick<FreeSpace, 'read'> },
): DownloadLog | null {
  if (config.audit !== 'all') return null
  const [mayLogLoss, mayLogFailure] = [oncePer(logInterval), oncePer(logInterval)]
  const downloads = createDownloadLog({
    catalog,
    now: Date.now,
    hasRoom: () => hasRoomForEvents(space.read()),
    onLoss(count) {
      metrics.lostDownloadEvents.inc(count)
      if (mayLogLoss())
        log.error(
          'downloads are not recorded in the audit log, because the disk is nearly full or too many events wait to be stored; their number will be recorded',
        )
    },
    onFailure(err) {
      if (mayLogFailure()) log.warn({ err }, 'downloads could not be recorded in the audit log yet')
    },
  })
  closers.add('the log of downloads', async () => {
    const count = await downloads.close()
    if (count > 0) log.error({ count }, 'downloads were not recorded in the audit log before the stop')
  })
  return downloads
}

/** Returns whether this is the first call for this time. Milliseconds. */
function oncePer(interval: number): () => boolean {
  let last = Number.NEGATIVE_INFINITY
  return () => {
    const now = performance.now()
    if (now - last < interval) return false
    last = now
    return true
  }
}
