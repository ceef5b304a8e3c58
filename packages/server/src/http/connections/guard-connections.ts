import type { Server } from 'node:http'
import type { BaseLogger } from 'pino'
import { handleExpectations } from '../bodies/unread-bodies.ts'
import { closeOnIdleTimeout } from './idle-timeout.ts'
import { refuseTunnels } from './require-http1.ts'
import { closeSlowReaders } from './slow-readers.ts'

/** The rate at which a client must read a response. Bytes per second. */
const minSendRate = 2_000

/** Adds the server's listeners for `Expect`, `CONNECT`, idle connections and slow readers. */
export function guardConnections(
  server: Server,
  parts: {
    readonly settings: { readonly baseUrl: string; readonly idleTimeout: number }
    readonly log: Pick<BaseLogger, 'info'>
    /** Called for each connection that is closed because its client reads too slowly. */
    readonly onSlowReader: () => void
  },
): void {
  const { settings, log, onSlowReader } = parts
  const { baseUrl, idleTimeout } = settings
  handleExpectations(server)
  refuseTunnels(server, { baseUrl, log })
  closeOnIdleTimeout(server, idleTimeout)
  closeSlowReaders(server, { minSendRate, idleTimeout }, onSlowReader)
}
