import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import type { PeerCounts } from '../core/peer-counts.ts'
import type { ClientAddresses } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { ProbePlaces } from './probe-places.ts'
import { type RefusalReason, Refuser } from './refused-connections.ts'

export interface ConnectionSettings {
  /** 0 for no limit. */
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
}

interface ConnectionLimitsParts {
  readonly addresses: Pick<ClientAddresses, 'ofConnection'>
  readonly metrics: Pick<Metrics, 'refusedConnections' | 'closedIdleConnections' | 'watchConnections'>
  readonly log: Pick<BaseLogger, 'warn'>
  readonly baseUrl: string
  /** Null for a service of one process. */
  readonly peers: PeerCounts | null
}

/**
 * Limits the open connections, in total and for each address (docs/interface.md N2, N3). At a limit, a new connection replaces the one
 * that has been idle for longest. Where none is idle, it gets a place that is kept for probes, or is refused: then it gets neither
 * a parser nor any other listener of the server. Call it after all other listeners for connections have been added.
 */
export function limitConnections(
  server: Server,
  settings: ConnectionSettings,
  { addresses, metrics, log, baseUrl, peers }: ConnectionLimitsParts,
): void {
  const idle = new IdleConnections(server)
  const open = new OpenConnections(settings, peers)
  const places = new ProbePlaces(new Refuser(baseUrl, log, metrics))
  metrics.watchConnections(() => open.count() + places.count())

  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const address = addresses.ofConnection(socket)
    let reason = open.refusalOf(address)
    // A connection of a trusted proxy or of another address can leave both limits reached.
    while (reason !== null && idle.closeOldest(reason === 'address' ? address : null)) {
      metrics.closedIdleConnections.inc()
      reason = open.refusalOf(address)
    }
    if (reason === null) idle.add(socket, address ?? proxies, open.add(socket, address ?? proxies))
    else if (!places.take(socket, address ?? proxies, reason)) return
    for (const listener of listeners) listener.call(server, socket)
  })
}

/** The key of the connections of trusted proxies, whose number is not limited for each address. */
const proxies = ''

/** Counts the connections within the limits. */
class OpenConnections {
  readonly #settings: ConnectionSettings
  readonly #peers: PeerCounts | null
  /** Those of this process. */
  #own = 0
  /** Those of all processes. */
  #all = 0
  readonly #perAddress = new Map<string, number>()

  constructor(settings: ConnectionSettings, peers: PeerCounts | null) {
    this.#settings = settings
    this.#peers = peers
    peers?.subscribe('connections', (address, connections) => this.#change(address, connections))
  }

  count(): number {
    return this.#own
  }

  /** The limit that a further connection would exceed; null if there is none. `address` is null for trusted proxies. */
  refusalOf(address: string | null): RefusalReason | null {
    const { maxConnections, maxConnectionsPerAddress } = this.#settings
    // The address is checked first, so that the reason is `total` only where other clients are affected too.
    if (
      address !== null &&
      maxConnectionsPerAddress > 0 &&
      (this.#perAddress.get(address) ?? 0) >= maxConnectionsPerAddress
    )
      return 'address'
    return maxConnections > 0 && this.#all >= maxConnections ? 'total' : null
  }

  /** Counts a connection until it is closed, or until the function that it returns is called. */
  add(socket: Socket, address: string): () => void {
    this.#changeOwn(address, 1)
    const release = once(() => this.#changeOwn(address, -1))
    socket.once('close', release)
    return release
  }

  #changeOwn(address: string, connections: number): void {
    this.#own += connections
    this.#change(address, connections)
    this.#peers?.add('connections', address, connections)
  }

  #change(address: string, connections: number): void {
    this.#all += connections
    if (address === proxies) return
    const left = (this.#perAddress.get(address) ?? 0) + connections
    if (left > 0) this.#perAddress.set(address, left)
    else this.#perAddress.delete(address)
  }
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
class IdleConnections {
  readonly #known = new WeakMap<Socket, IdleConnection>()
  readonly #idle = new Set<Socket>()
  readonly #byAddress = new Map<string, Set<Socket>>()

  constructor(server: Server) {
    server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      this.#remove(socket)
      response.once('close', () => this.#insert(socket))
    })
  }

  /** `release` counts the connection as closed. */
  add(socket: Socket, address: string, release: () => void): void {
    this.#known.set(socket, { address, release, bytesRead: 0 })
    this.#insert(socket)
    socket.once('close', () => this.#remove(socket))
  }

  /** Closes the one that has been idle for longest, of all or of an address; false if there is none. */
  closeOldest(address: string | null): boolean {
    for (const socket of (address === null ? this.#idle : this.#byAddress.get(address)) ?? []) {
      const connection = this.#known.get(socket)
      this.#remove(socket)
      // The head of its next request is arriving. It is idle again after the response.
      if (connection === undefined || socket.bytesRead > connection.bytesRead) continue
      connection.release()
      socket.destroy()
      return true
    }
    return false
  }

  #remove(socket: Socket): void {
    if (!this.#idle.delete(socket)) return
    const address = this.#known.get(socket)?.address ?? ''
    const same = this.#byAddress.get(address)
    same?.delete(socket)
    if (same?.size === 0) this.#byAddress.delete(address)
  }

  #insert(socket: Socket): void {
    const connection = this.#known.get(socket)
    if (connection === undefined || socket.destroyed) return
    connection.bytesRead = socket.bytesRead
    this.#idle.add(socket)
    const same = this.#byAddress.get(connection.address) ?? new Set()
    this.#byAddress.set(connection.address, same.add(socket))
  }
}
