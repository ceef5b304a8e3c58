import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'

export const headOf = (body: string, ...more: string[]): string[] => [
  ...['etag', '"a"', ...more],
  ...['content-length', `${body.length}`],
]

/** Runs a server with this listener during `use`. */
export async function serve<T>(listener: RequestListener, use: (port: number) => Promise<T>): Promise<T> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return await use((server.address() as AddressInfo).port)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

/** Sends the requests on one connection; returns what the server sent, except for `Date`. */
export const exchange = (listener: RequestListener, requests: readonly string[]): Promise<string> =>
  serve(listener, async (port) => {
    const socket = connect(port, '127.0.0.1')
    socket.end(requests.join(''))
    return (await text(socket)).replaceAll(/Date: .*\r\n/g, '')
  })

export const get = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n'
const others = [
  'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
  'GET / HTTP/1.0\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n',
]

/** Requests on one connection: with the usual head of a response, and with others before or after it. */
export const sequences: readonly string[][] = [
  [get, get, get],
  ...others.map((other) => [get, other]),
  ...others.map((other) => [other, get]),
]
