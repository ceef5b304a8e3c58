import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** What the rate is measured over where there is no idle timeout, and the longest time between two measurements. Milliseconds. */
const defaultWindow = 60_000
const longestInterval = 5_000

/** When a client was first seen to have bytes to take, and how many it had taken by then. */
interface Observation {
  readonly since: number
  readonly sent: number
}

/**
 * Closes connections whose clients take fewer bytes in a second than `minSendRate`, measured over the idle timeout, while
 * more are ready (docs/interface.md N6). A client that waits for the service is not slow.
 */
export function closeSlowReaders(
  server: Server,
  { minSendRate, idleTimeout }: { readonly minSendRate: number; readonly idleTimeout: number },
  onClose: () => void,
): void {
  if (minSendRate === 0) return
  const window = idleTimeout || defaultWindow
  const open = new Set<Socket>()
  const observations = new WeakMap<Socket, Observation>()

  function measure(socket: Socket, now: number): void {
    // Everything was taken that there was.
    if (socket.writableLength === 0) {
      observations.delete(socket)
      return
    }
    const sent = sentBytes(socket)
    const before = observations.get(socket)
    if (before !== undefined && now - before.since < window) return
    observations.set(socket, { since: now, sent })
    if (before === undefined || ((sent - before.sent) * 1_000) / (now - before.since) >= minSendRate) return
    onClose()
    socket.destroy()
  }

  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  const timer = setInterval(
    () => {
      const now = performance.now()
      for (const socket of open) measure(socket, now)
    },
    Math.min(longestInterval, window / 4),
  )
  timer.unref()
  server.once('close', () => clearInterval(timer))
}

/** Bytes that the system has taken. Node counts a write as a whole, and only its handle knows how much of it is left. */
function sentBytes(socket: Socket): number {
  const handle = '_handle' in socket ? socket._handle : null
  if (typeof handle !== 'object' || handle === null) return 0
  const written = 'bytesWritten' in handle ? Number(handle.bytesWritten) : 0
  const queued = 'writeQueueSize' in handle ? Number(handle.writeQueueSize) : 0
  return written - queued
}
