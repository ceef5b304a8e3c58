import type { Socket } from 'node:net'

/** How long a client may take to read a last answer, and how many may do so at once; others are closed at once. */
const lingerTime = 1_000
const maxLingering = 100

/** Sends the last bytes of a connection and closes it. */
export type LingeringClose = (socket: Socket, bytes: Buffer) => void

/**
 * What the client sends is read and discarded until the connection is closed: closing a socket with unread bytes resets
 * it, and the answer is lost.
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
    const cut = setTimeout(() => socket.destroy(), lingerTime)
    socket.once('close', () => {
      lingering -= 1
      clearTimeout(cut)
    })
    socket.once('end', () => socket.destroy())
    socket.resume()
    socket.end(bytes)
  }
}
