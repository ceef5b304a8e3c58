import { createServer } from 'node:http'
import { Duplex } from 'node:stream'
import { boundPipelining, isPause, unsupported } from './pipelining.ts'

const twoRequests = Buffer.from('GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n')

/** Throws UnsupportedNodeError where the parser cannot be paused: at the start, not at the first connection. */
export function requirePausableParser(): void {
  const server = createServer({ requireHostHeader: false })
  boundPipelining(server)
  let isPaused = false
  server.on('clientError', (error) => {
    isPaused = 'code' in error && isPause({ code: String(error.code) })
  })
  const connection = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  server.emit('connection', connection)
  for (const parse of connection.listeners('data')) parse.call(connection, twoRequests)
  connection.destroy()
  if (!isPaused) throw unsupported()
}
