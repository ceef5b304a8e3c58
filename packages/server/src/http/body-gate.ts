import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** One body's way past the gate. */
interface Passage {
  /** Waits while the gate is shut. */
  opened(): Promise<void> | undefined
  /** So many bytes have been read and are not dealt with yet. */
  hold(bytes: number): void
  release(bytes: number): void
  /** Nothing more is read of this body; as often as one likes. */
  leave(): void
}

export interface BodyGate {
  enter(request: IncomingMessage): Passage
}

/**
 * Bounds the bytes of all bodies that have been read and that the disk has not taken yet. While they are more than
 * `room`, nothing is read from any of their connections: what thousands of clients send at once waits in the system's
 * buffers, and with the clients, not in this process.
 */
export function createBodyGate(room: number): BodyGate {
  const sockets = new Set<Socket>()
  let held = 0
  let shut: PromiseWithResolvers<void> | null = null

  function change(bytes: number): void {
    held += bytes
    if (shut === null && held > room) {
      shut = Promise.withResolvers()
      for (const socket of sockets) socket.pause()
    } else if (shut !== null && held <= room / 2) {
      shut.resolve()
      shut = null
      for (const socket of sockets) socket.resume()
    }
  }

  return {
    enter(request) {
      const { socket } = request
      let mine = 0
      const leave = (): void => {
        if (!sockets.delete(socket)) return
        // Its next request must be read, whatever the gate.
        if (shut) socket.resume()
        change(-mine)
        mine = 0
      }
      sockets.add(socket)
      if (shut) socket.pause()
      // A reader that was given up without being told may hold bytes for ever.
      request.once('close', leave)
      return {
        opened: () => shut?.promise,
        hold(bytes) {
          mine += bytes
          change(bytes)
          if (shut) socket.pause()
        },
        release(bytes) {
          const released = Math.min(bytes, mine)
          mine -= released
          change(-released)
        },
        leave,
      }
    },
  }
}
