import type { Socket } from 'node:net'

/** How long a client may take to read the last response. Milliseconds. */
const lingerTime = 1_000

/** How many connections may linger at once; further ones are closed without a response. */
const maxLingering = 100

/** Sends the last bytes of a connection and closes it. */
export type LingeringClose = (socket: Socket, bytes: Buffer) => void

/**
 * Reads and discards what the client sends until the connection is closed: closing a socket with unread bytes resets it,
 * and the client loses the response.
 */
export function createLingeringClose(): LingeringClose {
  let lingering = 0
  return (socket, bytes) => {
    socket.on('error', () => undefined)
    if (lingering >= maxLingering) {
      socket.destroy()
      return
    }
    lingering += 1
    const timer = setTimeout(() => socket.destroy(), lingerTime)
    socket.once('close', () => {
      lingering -= 1
      clearTimeout(timer)
    })
    socket.once('end', () => socket.destroy())
    socket.resume()
    socket.end(bytes)
  }
}
