import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** One body's part in the backpressure. */
interface Ticket {
  /** Undefined while bodies may be read. */
  waitUntilResumed(): Promise<void> | undefined
  /** So many bytes have been read and are not processed yet. */
  hold(bytes: number): void
  release(bytes: number): void
  /** Nothing more of this body is read or held. May be called more than once. */
  close(): void
}

export interface Backpressure {
  open(request: IncomingMessage): Ticket
}

/**
 * Bounds the bytes of all bodies that have been read and are not processed yet. While they are more than `room`, no
 * connection with such a body is read: what thousands of clients send at once waits in the system's buffers and with
 * the clients, not in this process.
 */
export function createBackpressure(room: number): Backpressure {
  const open = new Set<IncomingMessage>()
  let held = 0
  let paused: PromiseWithResolvers<void> | null = null
  let isScheduled = false

  /**
   * Deferred by a turn of the event loop. A stream that is resumed and paused within one turn reads on, and Node's own
   * pauses have no effect on it from then on. So streams are resumed here alone, and one that may be about to resume is
   * paused here.
   */
  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      for (const { socket, readableLength, readableHighWaterMark } of open) {
        if (paused) socket.pause()
        else if (readableLength < readableHighWaterMark) {
          socket.resume()
          restartIdleTimer(socket)
        }
      }
    })
  }

  function change(bytes: number, by: Socket): void {
    held += bytes
    if (paused === null && held > room) {
      paused = Promise.withResolvers()
      // At once: thousands may be read in one turn. Not the socket of this chunk: it may be about to resume.
      for (const { socket } of open) if (socket !== by) socket.pause()
      schedule()
    } else if (paused !== null && held <= room / 2) {
      paused.resolve()
      paused = null
      schedule()
    }
  }

  /** One reader after another, each in a turn of its own: one that is resumed may cause the next pause. */
  async function resumed(socket: Socket): Promise<void> {
    while (paused) {
      await paused.promise
      await nextTurn()
    }
    restartIdleTimer(socket)
  }

  return {
    open(request) {
      const { socket } = request
      let mine = 0
      const close = (): void => {
        change(-mine, socket)
        mine = 0
        if (!open.delete(request) || !paused) return
        // The next request of the connection must be read, paused or not; it may have been sent before the answer.
        if (![...open].some((other) => other.socket === socket)) socket.resume()
      }
      open.add(request)
      if (paused) schedule()
      // A reader that was abandoned does not release what it holds.
      request.once('close', close)
      return {
        waitUntilResumed: () => (paused ? resumed(socket) : undefined),
        hold(bytes) {
          mine += bytes
          change(bytes, socket)
          if (paused) schedule()
        },
        release(bytes) {
          const released = Math.min(bytes, mine)
          mine -= released
          change(-released, socket)
        },
        close,
      }
    },
  }
}

/** The time while the connection was paused does not count as silence of the client. */
function restartIdleTimer(socket: Socket): void {
  if (socket.timeout !== undefined) socket.setTimeout(socket.timeout)
}
