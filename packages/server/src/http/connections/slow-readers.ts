import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { sentBytes } from '../node-internals.ts'

/** The longest time between two checks of a connection. Milliseconds. */
const longestInterval = 5_000

/** When a measurement began, and `sentBytes` at that time. */
interface Observation {
  readonly since: number
  readonly sent: number
}

/**
 * Closes connections whose clients receive fewer bytes per second than `minSendRate` while more are ready, measured over
 * the idle timeout (docs/interface.md N6). Time in which the service has nothing to send does not count.
 */
export function closeSlowReaders(
  server: Server,
  { minSendRate, idleTimeout }: { readonly minSendRate: number; readonly idleTimeout: number },
  onClose: () => void,
): void {
  const open = new Set<Socket>()
  const observations = new WeakMap<Socket, Observation>()

  function measure(socket: Socket, now: number): void {
    // All bytes were sent, so a new measurement begins.
    if (socket.writableLength === 0) {
      observations.delete(socket)
      return
    }
    const sent = sentBytes(socket)
    const before = observations.get(socket)
    if (before !== undefined && now - before.since < idleTimeout) return
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
    Math.min(longestInterval, idleTimeout / 4),
  )
  timer.unref()
  server.once('close', () => clearInterval(timer))
}
