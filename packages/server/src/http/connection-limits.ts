import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import type { PeerCounts } from '../core/peer-counts.ts'
import type { ClientAddresses } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { createProbePlaces } from './probe-places.ts'
import { createRefuser, type RefusalReason } from './refused-connections.ts'

export interface ConnectionSettings {
  /** 0 for no limit. */
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
}

/** The key of the connections of trusted proxies, whose number is not limited for each address. */
const proxies = ''

/**
 * Limits the open connections, in total and for each address (docs/interface.md N2, N3). At a limit, a new connection replaces the one
 * that has been idle for longest. Where none is idle, it gets a place that is kept for probes, or is refused: then it gets neither
 * a parser nor any other listener of the server. Call it after all other listeners for connections have been added.
 */
export function limitConnections(
  server: Server,
  { maxConnections, maxConnectionsPerAddress }: ConnectionSettings,
  parts: {
    readonly addresses: Pick<ClientAddresses, 'ofConnection'>
    readonly metrics: Pick<Metrics, 'refusedConnections' | 'closedIdleConnections' | 'watchConnections'>
    readonly log: Pick<BaseLogger, 'warn'>
    readonly baseUrl: string
    /** Null for a service of one process. */
    readonly peers: PeerCounts | null
  },
): void {
  const { addresses, metrics, log, baseUrl, peers } = parts
  const refuser = createRefuser(baseUrl, log, metrics)
  const idle = trackIdleConnections(server)
  const places = createProbePlaces(refuser)
  /** Of all processes. */
  const perAddress = new Map<string, number>()
  let all = 0
  let open = 0
  metrics.watchConnections(() => open + places.count())

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
    const release = once(() => changeOwn(address, -1))
    socket.once('close', release)
    idle.add(socket, address, release)
  }

  /** Closes the connection that has been idle for longest, of the address if its limit is reached; false if none is idle. */
  function closeIdle(reason: RefusalReason, address: string | null): boolean {
    const closed = idle.closeOldest(reason === 'address' ? address : null)
    if (closed) metrics.closedIdleConnections.inc()
    return closed
  }

  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const address = addresses.ofConnection(socket)
    let reason = refusalOf(address)
    // A connection of a trusted proxy or of another address can leave both limits reached.
    while (reason !== null && closeIdle(reason, address)) reason = refusalOf(address)
    if (reason === null) count(socket, address ?? proxies)
    else if (!places.take(socket, address ?? proxies, reason)) return
    for (const listener of listeners) listener.call(server, socket)
  })
}

function once(action: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) action()
    isDone = true
  }
}

/** A connection without a request in progress. */
interface IdleConnection {
  readonly address: string
  /** Counts the connection as closed. */
  readonly release: () => void
  /** The bytes that it had received when it became idle: more of them are the beginning of a request. */
  bytesRead: number
}

/** Knows which connections have no request in progress, in the order in which they were last used. */
function trackIdleConnections(server: Server) {
  const known = new WeakMap<Socket, IdleConnection>()
  const idle = new Set<Socket>()
  const byAddress = new Map<string, Set<Socket>>()

  function remove(socket: Socket): void {
    if (!idle.delete(socket)) return
    const address = known.get(socket)?.address ?? ''
    const same = byAddress.get(address)
    same?.delete(socket)
    if (same?.size === 0) byAddress.delete(address)
  }

  function insert(socket: Socket): void {
    const connection = known.get(socket)
    if (connection === undefined || socket.destroyed) return
    connection.bytesRead = socket.bytesRead
    idle.add(socket)
    const same = byAddress.get(connection.address) ?? new Set()
    byAddress.set(connection.address, same.add(socket))
  }

  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    remove(socket)
    response.once('close', () => insert(socket))
  })

  return {
    add(socket: Socket, address: string, release: () => void): void {
      known.set(socket, { address, release, bytesRead: 0 })
      insert(socket)
      socket.once('close', () => remove(socket))
    },

    /** Closes the one that has been idle for longest, of all or of an address; false if there is none. */
    closeOldest(address: string | null): boolean {
      for (const socket of (address === null ? idle : byAddress.get(address)) ?? []) {
        const connection = known.get(socket)
        remove(socket)
        // The head of its next request is arriving. It is idle again after the response.
        if (connection === undefined || socket.bytesRead > connection.bytesRead) continue
        connection.release()
        socket.destroy()
        return true
      }
      return false
    },
  }
}
