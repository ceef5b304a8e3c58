import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { sentBytes } from './connections.ts'

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
 * `limit`, the connections that would need the most time to read theirs are closed. Returns the function that counts the bytes.
 */
export function limitUnreadBytes(
  server: Server,
  { limit, onClose }: { readonly limit: number; readonly onClose: () => void },
): () => number {
  const open = new Set<Socket>()
  const observations = new WeakMap<Socket, Observation>()
  let timer: NodeJS.Timeout | null = null

  function read(socket: Socket, now: number): Reader | null {
    const unread = unreadBytes(socket)
    if (unread === 0) {
      observations.delete(socket)
      return null
    }
    const sent = sentBytes(socket)
    const first = observations.get(socket) ?? { since: now, sent }
    observations.set(socket, first)
    const left = first.since === now ? 0 : (unread * (now - first.since)) / Math.max(1, sent - first.sent)
    return { socket, unread, left }
  }

  function countAll(): void {
    timer = null
    const now = performance.now()
    const readers = [...open].flatMap((socket) => read(socket, now) ?? [])
    let total = readers.reduce((sum, { unread }) => sum + unread, 0)
    if (total > limit) {
      readers.sort((a, b) => b.left - a.left || b.unread - a.unread)
      for (const { socket, unread } of readers) {
        if (total <= limit) break
        total -= unread
        onClose()
        socket.destroy()
      }
    }
    if (readers.length > 0) schedule()
  }

  function schedule(): void {
    if (timer !== null) return
    timer = setTimeout(countAll, countInterval)
    timer.unref()
  }

  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  server.on('request', schedule)
  return () => {
    let total = 0
    for (const socket of open) total += unreadBytes(socket)
    return total
  }
}
