import type { Server as HttpServer } from 'node:http'
import { createApp } from '../http/app.ts'
import { limitConnections } from '../http/connections/connection-limits.ts'
import { trackUnusedConnections } from '../http/connections/idle-connections.ts'
import type { HttpParts } from '../http/context.ts'
import type { Gallery } from '../http/gallery/gallery-files.ts'
import type { GallerySignIn } from '../http/gallery/gallery-routes.ts'
import { createClientAddresses } from '../http/limits/client-address.ts'
import { createRequestLimits } from '../http/limits/request-limits.ts'
import type { Operations } from '../http/operations.ts'
import type { StartContext } from './start-context.ts'

export interface HttpApp {
  readonly server: HttpServer
  /** From now on readiness is false, and responses close their connections. */
  announceStop(): void
  /** Closes the connections that have no request in progress. */
  closeUnused(): void
}

/** Creates the HTTP server, ready to listen. `closePort` stops it. */
export function createHttpApp(
  { config, log, metrics, closers, peers }: StartContext,
  operations: Operations,
  parts: Pick<HttpParts, 'settings' | 'catalog' | 'downloadLog'> & {
    readonly gallery: Gallery | null
    readonly signIn: GallerySignIn | null
    readonly writeLine: (line: string) => void
    readonly closePort: () => Promise<void>
  },
): HttpApp {
  const { settings, catalog, downloadLog, gallery, signIn, writeLine, closePort } = parts
  const addresses = createClientAddresses(config.trustedProxies)
  const limits = createRequestLimits(config, { addresses, metrics, log, peers })
  let stopping = false
  const isStopping = () => stopping
  const server = createApp(
    operations,
    { settings, catalog, log, metrics, limits, addresses, isStopping, downloadLog },
    { writeLine, gallery, signIn },
  )
  const connections = trackUnusedConnections(server)
  limitConnections(server, config, { addresses, metrics, log, baseUrl: settings.baseUrl, peers })
  closers.add('the HTTP server', closePort)
  return {
    server,
    announceStop() {
      stopping = true
    },
    closeUnused: connections.closeUnused,
  }
}
