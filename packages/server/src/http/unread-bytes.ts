import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { sentBytes } from './client-connections.ts'

/** Milliseconds between two counts, while there are unread bytes. In this time, the service can make about half of the least limit. */
const countInterval = 250

/** Bytes that many responses share, and which take memory once: those of a cache. */
const sharedBytes = new WeakMap<Socket, number>()

/** Leaves these bytes of a response out of the count, until it has ended. Call it when they have been written. */
export function leaveOut(response: ServerResponse, socket: Socket, bytes: number): void {
  if (socket.writableLength === 0) return
  sharedBytes.set(socket, bytes)
  response.once('close', () => sharedBytes.delete(socket))
}

const unreadBytes = (socket: Socket): number =>
  Math.max(0, socket.writableLength - (sharedBytes.get(socket) ?? 0))

/** When a connection was first seen with unread bytes, and `sentBytes` at that time. */
interface Observation {
  readonly since: number
  readonly sent: number
}

/** A connection with unread bytes. */
interface Reader {
  readonly socket: Socket
  readonly unread: number
  /** The milliseconds in which it would read them; 0 if it has just begun. */
  readonly left: number
}

/**
 * Limits the bytes of responses that clients have not read, for all connections of the process together (docs/interface.md N6): above
 * `limit`, the connections that would need the most time to read theirs are closed.
 */
export class UnreadBytes {
  readonly #limit: number
  readonly #onClose: () => void
  readonly #open = new Set<Socket>()
  readonly #observations = new WeakMap<Socket, Observation>()
  #timer: NodeJS.Timeout | null = null

  constructor({ limit, onClose }: { readonly limit: number; readonly onClose: () => void }) {
    this.#limit = limit
    this.#onClose = onClose
  }

  /** Counts the responses of a server too. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket)
      socket.once('close', () => this.#open.delete(socket))
    })
    server.on('request', () => this.#schedule())
  }

  /** The bytes that all connections have not read. */
  total(): number {
    let total = 0
    for (const socket of this.#open) total += unreadBytes(socket)
    return total
  }

  #schedule(): void {
    if (this.#timer !== null) return
    this.#timer = setTimeout(() => this.#check(), countInterval)
    this.#timer.unref()
  }

  #check(): void {
    this.#timer = null
    const now = performance.now()
    const readers = [...this.#open].flatMap((socket) => this.#observe(socket, now) ?? [])
    let total = readers.reduce((sum, { unread }) => sum + unread, 0)
    if (total > this.#limit) {
      readers.sort((a, b) => b.left - a.left || b.unread - a.unread)
      for (const { socket, unread } of readers) {
        if (total <= this.#limit) break
        total -= unread
        this.#onClose()
        socket.destroy()
      }
    }
    if (readers.length > 0) this.#schedule()
  }

  #observe(socket: Socket, now: number): Reader | null {
    const unread = unreadBytes(socket)
    if (unread === 0) {
      this.#observations.delete(socket)
      return null
    }
    const sent = sentBytes(socket)
    const first = this.#observations.get(socket) ?? { since: now, sent }
    this.#observations.set(socket, first)
    const left = first.since === now ? 0 : (unread * (now - first.since)) / Math.max(1, sent - first.sent)
    return { socket, unread, left }
  }
}
