import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import type { PeerCounts } from '../core/peer-counts.ts'
import { type ConnectionWatcher, watchConnection } from './client-connections.ts'
import type { ClientAddresses } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { ProbePlaces } from './probe-places.ts'
import { type RefusalReason, Refuser } from './refused-connections.ts'
import { faultSerializerOf } from './server.ts'

export interface ConnectionSettings {
  /** 0 for no limit. */
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
}

interface ConnectionLimitsParts {
  readonly addresses: Pick<ClientAddresses, 'ofConnection'>
  readonly metrics: Pick<Metrics, 'refusedConnections' | 'closedIdleConnections' | 'watchConnections'>
  readonly log: Pick<BaseLogger, 'warn'>
  /** Null for a service of one process. */
  readonly peers: PeerCounts | null
}

/**
 * Limits the open connections of all servers together, in total and for each address (docs/interface.md N2, N3). At a limit, a new connection replaces the one
 * that has been idle for longest. Where none is idle, it gets a place that is kept for probes, or is refused: then it gets neither
 * a parser nor any other listener of its server. Call it after all other listeners for connections have been added.
 */
export function limitConnections(
  servers: readonly Server[],
  settings: ConnectionSettings,
  { addresses, metrics, log, peers }: ConnectionLimitsParts,
): void {
  const idle = new IdleConnections()
  const open = new OpenConnections(settings, peers)
  const places = new ProbePlaces(new Refuser(log, metrics))
  metrics.watchConnections(() => open.count() + places.count())

  for (const server of servers) {
    const serializeFault = faultSerializerOf(server)
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
      const key = address ?? proxies
      const release = reason === null ? open.add(socket, key) : null
      if (reason !== null && !places.take(socket, { address: key, reason, serializeFault })) return
      for (const listener of listeners) listener.call(server, socket)
      if (release !== null) idle.add(socket, key, release)
    })
  }
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

/** A place in an order of connections. */
interface Link {
  readonly connection: WatchedConnection
  previous: Link | null
  next: Link | null
}

/** Connections in the order in which they became idle. A Set would be searched, and rebuilt now and then, for each request. */
class IdleOrder {
  #first: Link | null = null
  #last: Link | null = null

  get oldest(): WatchedConnection | null {
    return this.#first?.connection ?? null
  }

  append(link: Link): void {
    link.previous = this.#last
    if (this.#last === null) this.#first = link
    else this.#last.next = link
    this.#last = link
  }

  remove(link: Link): void {
    const { previous, next } = link
    if (previous === null) this.#first = next
    else previous.next = next
    if (next === null) this.#last = previous
    else next.previous = previous
    link.previous = null
    link.next = null
  }
}

/** The idle connections of an address, and how many connections it has. */
class AddressConnections extends IdleOrder {
  open = 0
}

/** A connection, which is in two orders while no request is in progress. */
class WatchedConnection implements ConnectionWatcher {
  readonly socket: Socket
  /** Counts the connection as closed. */
  readonly release: () => void
  readonly #all: IdleOrder
  readonly #ofAddress: IdleOrder
  readonly #inAll: Link = { connection: this, previous: null, next: null }
  readonly #inAddress: Link = { connection: this, previous: null, next: null }
  #isIdle = false
  /** The bytes that it had received when it became idle. */
  #bytesRead = 0

  constructor(socket: Socket, release: () => void, all: IdleOrder, ofAddress: IdleOrder) {
    this.socket = socket
    this.release = release
    this.#all = all
    this.#ofAddress = ofAddress
    this.responseEnded()
  }

  /** Whether it has received the beginning of a request since it became idle. */
  get hasBegun(): boolean {
    return this.socket.bytesRead > this.#bytesRead
  }

  requestBegan(): void {
    if (!this.#isIdle) return
    this.#isIdle = false
    this.#all.remove(this.#inAll)
    this.#ofAddress.remove(this.#inAddress)
  }

  responseEnded(): void {
    if (this.#isIdle || this.socket.destroyed) return
    this.#isIdle = true
    this.#bytesRead = this.socket.bytesRead
    this.#all.append(this.#inAll)
    this.#ofAddress.append(this.#inAddress)
  }
}

/** Knows which connections have no request in progress, in the order in which they were last used. */
class IdleConnections {
  readonly #all = new IdleOrder()
  readonly #byAddress = new Map<string, AddressConnections>()

  /** `release` counts the connection as closed. */
  add(socket: Socket, address: string, release: () => void): void {
    const same = this.#byAddress.get(address) ?? new AddressConnections()
    this.#byAddress.set(address, same)
    same.open += 1
    const connection = new WatchedConnection(socket, release, this.#all, same)
    watchConnection(socket, connection)
    socket.once('close', () => {
      connection.requestBegan()
      same.open -= 1
      if (same.open === 0) this.#byAddress.delete(address)
    })
  }

  /** Closes the one that has been idle for longest, of all or of an address; false if there is none. */
  closeOldest(address: string | null): boolean {
    const order = address === null ? this.#all : this.#byAddress.get(address)
    for (;;) {
      const connection = order?.oldest ?? null
      if (connection === null) return false
      connection.requestBegan()
      // The head of its next request is arriving. It is idle again after the response.
      if (connection.hasBegun) continue
      connection.release()
      connection.socket.destroy()
      return true
    }
  }
}
