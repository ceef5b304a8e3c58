import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import { Fault } from '../core/faults.ts'
import type { PeerCounts } from '../core/peer-counts.ts'
import { createLingeringClose, serializeProblem } from './connections.ts'
import type { ClientAddresses } from './limits.ts'
import type { Metrics } from './metrics.ts'

export interface ConnectionSettings {
  /** 0 for no limit. */
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
}

type RefusalReason = 'total' | 'address'

/** The key of the connections of trusted proxies, whose number is not limited for each address. */
const proxies = ''

/** Refusals within this time share one log line and one request id. Milliseconds. */
const reportInterval = 10_000

const texts: Readonly<Record<RefusalReason, { readonly detail: string; readonly message: string }>> = {
  total: {
    detail: 'The service has as many open connections as it accepts.',
    message: 'connections are refused: MEDIABUCKET_MAX_CONNECTIONS is reached',
  },
  address: {
    detail: 'Your address has as many open connections as the service accepts from one address.',
    message:
      'connections are refused: their address has reached MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS; if it is your reverse proxy, add it to MEDIABUCKET_TRUSTED_PROXIES',
  },
}

/**
 * Limits the open connections, in total and for each address (docs/interface.md N2, N3). A refused connection gets neither
 * a parser nor any other listener of the server. Call it after all other listeners for connections have been added.
 */
export function limitConnections(
  server: Server,
  { maxConnections, maxConnectionsPerAddress }: ConnectionSettings,
  parts: {
    readonly addresses: Pick<ClientAddresses, 'ofConnection'>
    readonly metrics: Pick<Metrics, 'refusedConnections' | 'countConnections'>
    readonly log: Pick<BaseLogger, 'warn'>
    readonly baseUrl: string
    /** Null for a service of one process. */
    readonly peers: PeerCounts | null
  },
): void {
  const { addresses, metrics, log, baseUrl, peers } = parts
  const refuse = createRefuser(baseUrl, log)
  /** Of all processes. */
  const perAddress = new Map<string, number>()
  let all = 0
  let open = 0
  metrics.countConnections(() => open)

  function refusalOf(address: string | null): RefusalReason | null {
    // The address is checked first, so that the reason is `total` only where other clients are affected too.
    if (
      address !== null &&
      maxConnectionsPerAddress > 0 &&
      (perAddress.get(address) ?? 0) >= maxConnectionsPerAddress
    )
      return 'address'
    return maxConnections > 0 && all >= maxConnections ? 'total' : null
  }

  function change(address: string, connections: number): void {
    all += connections
    if (address === proxies) return
    const left = (perAddress.get(address) ?? 0) + connections
    if (left > 0) perAddress.set(address, left)
    else perAddress.delete(address)
  }
  peers?.subscribe('connections', change)

  function changeOwn(address: string, connections: number): void {
    open += connections
    change(address, connections)
    peers?.add('connections', address, connections)
  }

  function count(socket: Socket, address: string): void {
    changeOwn(address, 1)
    socket.once('close', () => changeOwn(address, -1))
  }

  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const address = addresses.ofConnection(socket)
    const reason = refusalOf(address)
    if (reason !== null) {
      metrics.refusedConnections.inc({ reason })
      refuse(socket, reason)
      return
    }
    count(socket, address ?? proxies)
    for (const listener of listeners) listener.call(server, socket)
  })
}

/** One log line for many refusals. */
interface Report {
  readonly response: Buffer
  refused: number
}

function createRefuser(baseUrl: string, log: Pick<BaseLogger, 'warn'>) {
  const reports = new Map<RefusalReason, Report>()
  const sendAndClose = createLingeringClose()

  function reportOf(reason: RefusalReason, peer: string | undefined): Report {
    const known = reports.get(reason)
    if (known) return known
    const requestId = randomUUID()
    const { detail, message } = texts[reason]
    const report = {
      response: serializeProblem(new Fault('connections-too-many', detail), baseUrl, requestId).bytes,
      refused: 0,
    }
    reports.set(reason, report)
    log.warn({ requestId, peer }, message)
    setTimeout(() => {
      reports.delete(reason)
      if (report.refused > 1) log.warn({ requestId, refused: report.refused }, 'connections were refused')
    }, reportInterval).unref()
    return report
  }

  return (socket: Socket, reason: RefusalReason): void => {
    const report = reportOf(reason, socket.remoteAddress)
    report.refused += 1
    sendAndClose(socket, report.response)
  }
}
