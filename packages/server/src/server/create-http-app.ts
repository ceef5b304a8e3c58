import type { Server as HttpServer } from 'node:http'
import type { Catalog } from '../catalog/catalog.ts'
import { createApp } from '../http/app.ts'
import type { HttpSettings, Operations } from '../http/app-parts.ts'
import { limitConnections } from '../http/connections/connection-limits.ts'
import { trackUnusedConnections } from '../http/connections/unused-connections.ts'
import type { Gallery } from '../http/gallery/gallery-files.ts'
import type { GallerySignIn } from '../http/gallery/sign-in-route.ts'
import { createClientAddresses } from '../http/limits/client-address.ts'
import { createRequestLimits } from '../http/limits/request-limits.ts'
import type { DownloadLog } from '../media/download-log.ts'
import type { BoundAddress } from './bind-address.ts'
import type { StartContext } from './start-context.ts'

export interface HttpApp {
  readonly server: HttpServer
  /** From now on readiness is false, and responses close their connections. */
  announceStop(): void
  /** Closes the connections that have no request in progress. */
  closeUnused(): void
}

/** Creates the HTTP server, ready to listen. */
export async function createHttpApp(
  { config, log, metrics, closers, peers }: StartContext,
  parts: Pick<BoundAddress, 'baseUrl' | 'closePort'> & {
    readonly settings: HttpSettings
    readonly catalog: Catalog
    readonly operations: Operations
    readonly gallery: Gallery | null
    readonly signIn: GallerySignIn | null
    readonly downloadLog: DownloadLog | null
    readonly writeLine: (line: string) => void
  },
): Promise<HttpApp> {
  const { catalog, settings, baseUrl, closePort, operations, gallery, signIn, downloadLog, writeLine } = parts
  const addresses = createClientAddresses(config.trustedProxies)
  const limits = createRequestLimits(config, { addresses, metrics, log, peers })
  let stopping = false
  const app = await createApp(operations, {
    catalog,
    settings,
    log,
    writeLine,
    isStopping: () => stopping,
    gallery,
    signIn,
    downloadLog,
    metrics,
    limits,
    addresses,
  })
  const connections = trackUnusedConnections(app.server)
  limitConnections(app.server, config, { addresses, metrics, log, baseUrl, peers })
  closers.add('the HTTP server', () => Promise.all([closePort(), app.close()]))
  await app.ready()

  return {
    server: app.server,
    announceStop() {
      stopping = true
    },
    closeUnused: connections.closeUnused,
  }
}
