import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** One body's way past the gate. */
interface Passage {
  /** Waits while the gate is shut. */
  opened(): Promise<void> | undefined
  /** So many bytes have been read and are not dealt with yet. */
  hold(bytes: number): void
  release(bytes: number): void
  /** Nothing more is read of this body, and nothing of it held; as often as one likes. */
  leave(): void
}

export interface BodyGate {
  enter(request: IncomingMessage): Passage
}

/**
 * Bounds the bytes of all bodies that have been read and that no reader has dealt with yet. While they are more than
 * `room`, nothing is read from any of their connections: what thousands of clients send at once waits in the system's
 * buffers, and with the clients, not in this process.
 */
export function createBodyGate(room: number): BodyGate {
  const passing = new Set<IncomingMessage>()
  let held = 0
  let shut: PromiseWithResolvers<void> | null = null
  let isSettling = false

  /**
   * For whatever holds a turn later. A stream that is resumed and paused within one turn reads on, and Node's own pauses
   * pass it by from then on; so nothing is resumed but here, and a stream that may be about to resume is paused but here.
   */
  function settle(): void {
    if (isSettling) return
    isSettling = true
    setImmediate(() => {
      isSettling = false
      for (const { socket, readableLength, readableHighWaterMark } of passing) {
        if (shut) socket.pause()
        else if (readableLength < readableHighWaterMark) {
          socket.resume()
          hearAnew(socket)
        }
      }
    })
  }

  function change(bytes: number, by: Socket): void {
    held += bytes
    if (shut === null && held > room) {
      shut = Promise.withResolvers()
      // At once: thousands may be read in one turn. Not the one whose chunk this is: it may be about to resume.
      for (const { socket } of passing) if (socket !== by) socket.pause()
      settle()
    } else if (shut !== null && held <= room / 2) {
      shut.resolve()
      shut = null
      settle()
    }
  }

  /** One after another, each in a turn of its own: whoever goes on first may shut it for the others. */
  async function opened(socket: Socket): Promise<void> {
    while (shut) {
      await shut.promise
      await nextTurn()
    }
    hearAnew(socket)
  }

  return {
    enter(request) {
      const { socket } = request
      let mine = 0
      const leave = (): void => {
        change(-mine, socket)
        mine = 0
        if (!passing.delete(request) || !shut) return
        // Its next request must be read, whatever the gate; one that was sent before the answer may be here already.
        if (![...passing].some((other) => other.socket === socket)) socket.resume()
      }
      passing.add(request)
      if (shut) settle()
      // A reader that was given up without being told may hold bytes for ever.
      request.once('close', leave)
      return {
        opened: () => (shut ? opened(socket) : undefined),
        hold(bytes) {
          mine += bytes
          change(bytes, socket)
          if (shut) settle()
        },
        release(bytes) {
          const released = Math.min(bytes, mine)
          mine -= released
          change(-released, socket)
        },
        leave,
      }
    },
  }
}

/** What was silent while we did not listen begins to count only now. */
function hearAnew(socket: Socket): void {
  if (socket.timeout !== undefined) socket.setTimeout(socket.timeout)
}
