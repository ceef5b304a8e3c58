import { findTools, toolNames } from '../media/pictures/find-tools.ts'
import type { FreeSpace } from '../media/space/free-space.ts'
import type { UploadLocks } from '../media/uploads/upload-locks.ts'
import { bindAddress } from './bind-address.ts'
import { createHttpApp, type HttpApp } from './create-http-app.ts'
import { createOperations } from './create-operations.ts'
import { loadGallery } from './load-gallery.ts'
import type { OpenData } from './open-data.ts'
import type { StartContext } from './start-context.ts'
import { startDownloadLog } from './start-download-log.ts'
import { startIssuer } from './start-issuer.ts'
import {
  startDimensionWorkers,
  startMetadataWorkers,
  startThumbnailWorkers,
} from './start-picture-workers.ts'
import { startRemovals } from './start-removals.ts'
import { startUploads } from './start-uploads.ts'

export interface ServedData {
  readonly baseUrl: string
  readonly port: number
  readonly hasGallery: boolean
  readonly app: HttpApp
}

/** Starts everything that handles requests, and listens. */
export async function serveData(
  context: StartContext,
  data: OpenData,
  parts: {
    readonly locks: UploadLocks
    readonly space: FreeSpace
    /** Writes one line per request to the log. */
    readonly writeLine: (line: string) => void
  },
): Promise<ServedData> {
  const { locks, space, writeLine } = parts
  const remover = startRemovals(context, data)
  const measurePicture = startDimensionWorkers(context, data)
  const tools = findTools(context.config.searchPath)
  const removeMetadata = startMetadataWorkers(context, { ...data, tools })
  const variants = startThumbnailWorkers(context, { ...data, space, tools })
  const uploads = startUploads(context, {
    ...data,
    measurePicture,
    removeMetadata,
    removeItem: remover.remove,
    locks,
    onStored: variants.renderAhead,
  })
  const { baseUrl, port, settings: bound, serve, closePort } = await bindAddress(context)
  const settings = { ...bound, tools: toolNames(tools) }
  const gallery = await loadGallery(context)
  const issuer = await startIssuer(context, { ...data, ...remover })
  const operations = createOperations(context, {
    ...data,
    ...uploads,
    ...variants,
    settings,
    remover,
    space,
    issuer,
  })
  const app = createHttpApp(context, operations, {
    settings,
    catalog: data.catalog,
    downloadLog: startDownloadLog(context, { ...data, space }),
    gallery,
    signIn: issuer?.signIn ?? null,
    writeLine,
    closePort,
  })
  await serve(app.server)
  return { baseUrl, port, hasGallery: gallery !== null, app }
}
