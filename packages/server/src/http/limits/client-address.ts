import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { addressFamily, addressGroup, inRanges } from '../../core/ip-address.ts'

/** The addresses of clients, for limits alone: no URL is made from them (docs/interface.md L18, W1). */
export interface ClientAddresses {
  /** An IPv4 address, or the /64 of an IPv6 address. */
  readonly ofRequest: (request: IncomingMessage) => string
  /** The same of a connection; null where a trusted proxy opened it, which carries requests of many clients. */
  readonly ofConnection: (socket: Socket) => string | null
}

/** What is known of a connection's other end. */
interface Peer {
  readonly group: string
  readonly isProxy: boolean
}

/** A socket that is closed, or that is no TCP socket, has no address. */
const unknown = 'unknown'

/** `proxies` are addresses, CIDR ranges and range names (core/ip-address.ts). */
export function createClientAddresses(proxies: readonly string[]): ClientAddresses {
  const isProxy = inRanges(proxies)
  const peers = new WeakMap<Socket, Peer>()

  function peerOf(socket: Socket): Peer {
    const known = peers.get(socket)
    if (known) return known
    const address = socket.remoteAddress
    if (address === undefined) return { group: unknown, isProxy: false }
    const peer = { group: addressGroup(address), isProxy: isProxy(address) }
    peers.set(socket, peer)
    return peer
  }

  return {
    ofRequest({ socket, headers }) {
      const peer = peerOf(socket)
      if (!peer.isProxy) return peer.group
      const client = clientOf(headers['x-forwarded-for']?.toString() ?? '', isProxy)
      return client === null ? peer.group : addressGroup(client)
    },
    ofConnection(socket) {
      const peer = peerOf(socket)
      return peer.isProxy ? null : peer.group
    },
  }
}

/**
 * The right-most entry of X-Forwarded-For that is no trusted proxy, or the left-most where all are; null where an entry
 * on the way is no address. What stands further left was sent by the client and proves nothing.
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

/** The address of an entry, which some proxies write with a port. */
function addressOf(entry: string): string | null {
  if (addressFamily(entry) !== 0) return entry
  const address = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(entry)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(entry)?.[1]
  return address !== undefined && addressFamily(address) !== 0 ? address : null
}
