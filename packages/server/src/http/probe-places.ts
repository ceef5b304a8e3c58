import type { Socket } from 'node:net'
import type { Fault } from '../core/faults.ts'
import { currentResponse } from './client-connections.ts'
import type { FaultSerializer } from './problems.ts'
import type { RefusalReason, Refuser } from './refused-connections.ts'

/** Connections beyond the limits that may send a probe: a request for `/healthz`, `/readyz` or `/metrics`. */
const maxPlaces = 128

/** How long such a connection stays open. A check of readiness takes up to four seconds. Milliseconds. */
const longestTime = 5_000

/** How long a connection has its place at least, if many compete for them: its request has been sent with it. Milliseconds. */
const leastTime = 50

interface Place {
  readonly address: string
  readonly reason: RefusalReason
  readonly serializeFault: FaultSerializer
  readonly since: number
}

/** Counts the refusal of a request, and returns its fault. */
const refusals = new WeakMap<Socket, () => Fault>()

/** Whether a connection is beyond the limits, and so only for one probe. */
export const isForProbe = (socket: Socket): boolean => refusals.has(socket)

/** The fault for a request that is no probe on a connection beyond the limits; null for all other connections. */
export const refusalOfConnection = (socket: Socket): Fault | null => refusals.get(socket)?.() ?? null

/**
 * Keeps places for probes while the limits of connections are reached. If all are taken, the oldest connection of the address with
 * the most places gives way, so that no client can shut out the others by taking all of them.
 */
export class ProbePlaces {
  readonly #refuser: Refuser
  readonly #places = new Map<Socket, Place>()
  readonly #byAddress = new Map<string, Set<Socket>>()

  constructor(refuser: Refuser) {
    this.#refuser = refuser
  }

  count(): number {
    return this.#places.size
  }

  /** Gives the connection a place; refuses it and returns false if there is none. */
  take(socket: Socket, refused: Omit<Place, 'since'>): boolean {
    const { address, reason, serializeFault } = refused
    if (this.#places.size >= maxPlaces && !this.#makeRoom(address)) {
      this.#refuser.refuse(socket, reason, serializeFault)
      return false
    }
    this.#places.set(socket, { ...refused, since: performance.now() })
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? new Set()).add(socket))
    refusals.set(socket, () => this.#refuser.report(socket, reason))
    const timer = setTimeout(() => this.#close(socket), longestTime)
    socket.once('close', () => {
      clearTimeout(timer)
      this.#leave(socket)
    })
    return true
  }

  /** Frees a place for another connection of the address; false if it has as many as any other, and all are new. */
  #makeRoom(address: string): boolean {
    const own = this.#byAddress.get(address)?.size ?? 0
    const [largest] = [...this.#byAddress.values()].sort((a, b) => b.size - a.size)
    const most = largest?.size ?? 0
    const [oldest] = (most > own ? largest : this.#byAddress.get(address)) ?? []
    const place = oldest && this.#places.get(oldest)
    if (oldest === undefined || place === undefined) return false
    if (most <= own + 1 && performance.now() - place.since < leastTime) return false
    this.#close(oldest)
    return true
  }

  /** Refuses the connection if it has not sent the head of a request. */
  #close(socket: Socket): void {
    const place = this.#places.get(socket)
    if (place === undefined) return
    this.#leave(socket)
    if (currentResponse(socket) === null && socket.bytesWritten === 0)
      this.#refuser.refuse(socket, place.reason, place.serializeFault)
    else socket.destroy()
  }

  #leave(socket: Socket): void {
    const place = this.#places.get(socket)
    if (place === undefined) return
    this.#places.delete(socket)
    const same = this.#byAddress.get(place.address)
    same?.delete(socket)
    if (same?.size === 0) this.#byAddress.delete(place.address)
  }
}
