import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

// Opens many uploads, sends half of each, and then the rest once all halves are sent; prints how many were stored.
// Arguments: the URL of the server, a token, how many, bytes of each.
const [base = '', token, count, bytes] = process.argv.slice(2)
const { hostname, port } = new URL(base)
const size = Number(bytes)
const half = Buffer.alloc(size / 2, '0123456789')
const head = `POST /api/media HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/octet-stream\r\nContent-Length: ${half.length * 2}\r\n\r\n`

async function open(): Promise<Socket> {
  const socket = connect({ host: hostname, port: Number(port) })
  await once(socket, 'connect')
  socket.write(head)
  await new Promise((resolve) => socket.write(half, resolve))
  return socket
}

async function finish(socket: Socket): Promise<boolean> {
  socket.write(half)
  const [response] = await once(socket, 'data')
  socket.destroy()
  return String(response).startsWith('HTTP/1.1 201 ')
}

const startedAt = performance.now()
const sockets: Socket[] = []
// The backlog of a listening socket is too short for thousands of connections at the same moment.
while (sockets.length < Number(count))
  sockets.push(
    ...(await Promise.all(
      Array.from({ length: Math.min(100, Number(count) - sockets.length) }, () => open()),
    )),
  )
const stored = await Promise.all(sockets.map((socket) => finish(socket).catch(() => false)))
console.log(
  JSON.stringify({
    opened: sockets.length,
    stored: stored.filter(Boolean).length,
    seconds: (performance.now() - startedAt) / 1000,
  }),
)
process.exit(0)
