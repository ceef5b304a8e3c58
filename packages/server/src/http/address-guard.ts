import { Resolver } from 'node:dns/promises'
import { statSync } from 'node:fs'
import type { LookupFunction } from 'node:net'
import { addressFamily, inRanges, isPublicAddress, plainAddress } from '../core/ip-address.ts'

// Which addresses the service may call for a user: the rules of webhooks and of uploads from a URL (docs/interface.md WH9, FU3).

/** Finds the addresses of a name. */
export type ResolveName = (name: string) => Promise<readonly string[]>

/** The host may not be called. The message has no address, and is for users. */
export class RefusedAddress extends Error {
  /** Whether the name has no address. */
  readonly isUnknown: boolean

  constructor(isUnknown: boolean) {
    super(
      isUnknown
        ? 'The host name has no address.'
        : 'The host has an address that is not allowed, such as one of a private network.',
    )
    this.isUnknown = isUnknown
  }
}

export class AddressGuard {
  readonly #mayCall: (address: string) => boolean
  readonly #resolveName: ResolveName

  constructor({
    isPublicAllowed,
    allowed,
    resolveName,
  }: {
    /** Whether addresses of the public internet may be called. */
    readonly isPublicAllowed: boolean
    /** Ranges of other addresses that may be called. */
    readonly allowed: readonly string[]
    readonly resolveName: ResolveName
  }) {
    const isAllowed = inRanges(allowed)
    this.#mayCall = (address) => (isPublicAllowed && isPublicAddress(address)) || isAllowed(address)
    this.#resolveName = resolveName
  }

  /** The addresses of a host of a URL, all of which may be called. Connect to these (`pinned`). Throws RefusedAddress. */
  async addressesOf(hostname: string): Promise<readonly string[]> {
    const host = hostname.replace(/^\[|\]$/g, '')
    const found = addressFamily(host) === 0 ? await this.#resolveName(host) : [host]
    const addresses = found.map(plainAddress)
    if (addresses.length === 0) throw new RefusedAddress(true)
    if (!addresses.every(this.#mayCall)) throw new RefusedAddress(false)
    return addresses
  }
}

/** Connects to these addresses, whatever the name has by now. */
export const pinned =
  (addresses: readonly string[]): LookupFunction =>
  (_name, { all }, callback) => {
    const found = addresses.map((address) => ({ address, family: addressFamily(address) }))
    const [first] = found
    if (all) callback(null, found)
    else callback(null, first?.address ?? '', first?.family)
  }

/** Names the name servers of the machine. A resolver reads it when it is created, and never again. */
const resolverFile = '/etc/resolv.conf'

/** What changes with each version of the file; empty where there is none. */
function versionOf(path: string): string {
  const status = statSync(path, { throwIfNoEntry: false })
  return status ? `${status.dev} ${status.ino} ${status.size} ${status.mtimeMs} ${status.ctimeMs}` : ''
}

/**
 * Asks the name servers for the addresses of a name. getaddrinfo would read /etc/hosts too, but it occupies a thread that file operations
 * need, for as long as a name server of the owner of the name does not respond.
 */
export function createNameResolver(servers?: readonly string[]): ResolveName {
  let resolver: { readonly version: string; readonly of: Resolver } | null = null
  function current(): Resolver {
    const version = versionOf(resolverFile)
    if (resolver?.version === version) return resolver.of
    const created = new Resolver({ timeout: 2_500, tries: 2 })
    if (servers) created.setServers(servers)
    resolver = { version, of: created }
    return created
  }
  return async (name) => {
    // RFC 6761, section 6.3.
    if (/(?:^|\.)localhost\.?$/i.test(name)) return ['127.0.0.1']
    const resolver = current()
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    return found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  }
}

/** Rejects with the reason of the signal once it is aborted. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', onAbort))
}
