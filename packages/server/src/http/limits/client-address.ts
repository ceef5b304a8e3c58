import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { addressFamily, addressGroup, inRanges, plainAddress } from '../../core/ip-address.ts'

/** The addresses of clients. They are used for limits and the audit log, never in URLs (docs/interface.md L18, W1, Y2). */
export interface ClientAddresses {
  /** An IPv4 address, or the /64 of an IPv6 address. */
  readonly ofRequest: (request: IncomingMessage) => string
  /** The whole address; null if it is unknown. */
  readonly wholeOfRequest: (request: IncomingMessage) => string | null
  /** The same for a connection; null for a trusted proxy, whose connections carry requests of many clients. */
  readonly ofConnection: (socket: Socket) => string | null
}

/** The peer of a connection. */
interface Peer {
  readonly address: string | null
  readonly group: string
  readonly isProxy: boolean
}

/** The group of closed sockets and of sockets other than TCP, which have no address. */
const unknown = 'unknown'

/** `proxies` are addresses, CIDR ranges and range names (core/ip-address.ts). */
export function createClientAddresses(proxies: readonly string[]): ClientAddresses {
  const isProxy = inRanges(proxies)
  const peers = new WeakMap<Socket, Peer>()

  function peerOf(socket: Socket): Peer {
    const known = peers.get(socket)
    if (known) return known
    const address = socket.remoteAddress
    if (address === undefined) return { address: null, group: unknown, isProxy: false }
    const peer = { address: plainAddress(address), group: addressGroup(address), isProxy: isProxy(address) }
    peers.set(socket, peer)
    return peer
  }

  /** The address in the headers of a trusted proxy; null if the peer is the client. */
  const forwardedFor = (peer: Peer, { headers }: IncomingMessage): string | null =>
    peer.isProxy ? clientOf(headers['x-forwarded-for']?.toString() ?? '', isProxy) : null

  return {
    ofRequest(request) {
      const peer = peerOf(request.socket)
      const client = forwardedFor(peer, request)
      return client === null ? peer.group : addressGroup(client)
    },
    wholeOfRequest(request) {
      const peer = peerOf(request.socket)
      const client = forwardedFor(peer, request)
      return client === null ? peer.address : plainAddress(client)
    },
    ofConnection(socket) {
      const peer = peerOf(socket)
      return peer.isProxy ? null : peer.group
    },
  }
}

/**
 * Returns the right-most entry of X-Forwarded-For that is not a trusted proxy, or the left-most one where all are; null
 * where an entry up to there is not an address. Entries further left come from the client and are not trustworthy.
 */
function clientOf(header: string, isProxy: (address: string) => boolean): string | null {
  let client: string | null = null
  for (let end = header.length; end >= 0; ) {
    const comma = end === 0 ? -1 : header.lastIndexOf(',', end - 1)
    const address = addressOf(header.slice(comma + 1, end).trim())
    if (address === null) return null
    client = address
    if (!isProxy(address)) return client
    end = comma
  }
  return client
}

/** The address of an entry; some proxies append a port. */
function addressOf(entry: string): string | null {
  if (addressFamily(entry) !== 0) return entry
  const address = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(entry)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(entry)?.[1]
  return address !== undefined && addressFamily(address) !== 0 ? address : null
}
