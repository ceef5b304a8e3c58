import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTick } from 'node:timers/promises'
import { createSlab } from '../../core/slab.ts'

/** The share of one body in the backpressure. */
interface Ticket {
  /** Returns undefined while bodies may be read, otherwise a promise for the time when they may. */
  waitUntilResumed(): Promise<void> | undefined
  /** Counts bytes that have been read and are not processed yet. */
  hold(bytes: number): void
  release(bytes: number): void
  /** Releases all bytes of this body. Can be called more than once. */
  close(): void
}

export interface Backpressure {
  open(request: IncomingMessage): Ticket
}

/**
 * Limits the bytes of all bodies that have been read and are not processed yet. While they exceed `room`, all
 * connections with an open ticket are paused: the bytes of thousands of clients wait in the system's buffers and on the
 * clients, not in this process.
 */
export function createBackpressure(room: number): Backpressure {
  const open = createSlab<IncomingMessage>()
  let held = 0
  let paused: PromiseWithResolvers<void> | null = null
  let isScheduled = false

  /**
   * Pauses or resumes the connections in the next tick. A stream that is resumed and paused within one tick continues to
   * read and ignores Node's own pauses afterwards. For that reason streams are resumed only here.
   */
  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      for (const { socket, readableLength, readableHighWaterMark } of open.values()) {
        if (paused) socket.pause()
        else if (readableLength < readableHighWaterMark) {
          socket.resume()
          restartIdleTimer(socket)
        }
      }
    })
  }

  function change(bytes: number, source: Socket): void {
    held += bytes
    if (paused === null && held > room) {
      paused = Promise.withResolvers()
      // Immediately, because thousands of sockets can be read in one tick; the source may be about to resume, so not it.
      for (const { socket } of open.values()) if (socket !== source) socket.pause()
      schedule()
    } else if (paused !== null && held <= room / 2) {
      paused.resolve()
      paused = null
      schedule()
    }
  }

  /** Readers continue in different ticks, because one reader can cause the next pause. */
  async function resumed(socket: Socket): Promise<void> {
    while (paused) {
      await paused.promise
      await nextTick()
    }
    restartIdleTimer(socket)
  }

  return {
    open(request) {
      const { socket } = request
      const key = open.add(request)
      let ownBytes = 0
      let isClosed = false
      const close = (): void => {
        change(-ownBytes, socket)
        ownBytes = 0
        if (isClosed) return
        isClosed = true
        open.remove(key)
        // The next request of this connection may have no body, and must be read even while bodies are paused.
        if (paused && ![...open.values()].some((other) => other.socket === socket)) socket.resume()
      }
      if (paused) schedule()
      // An abandoned reader does not call close.
      request.once('close', close)
      return {
        waitUntilResumed: () => (paused ? resumed(socket) : undefined),
        hold(bytes) {
          ownBytes += bytes
          change(bytes, socket)
          if (paused) schedule()
        },
        release(bytes) {
          const released = Math.min(bytes, ownBytes)
          ownBytes -= released
          change(-released, socket)
        },
        close,
      }
    },
  }
}

/** The client is not idle while the server has paused its connection. */
function restartIdleTimer(socket: Socket): void {
  if (socket.timeout !== undefined) socket.setTimeout(socket.timeout)
}
