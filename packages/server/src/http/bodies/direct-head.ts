import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Whether the head of a response can be written without Node: HTTP/1.1 with keep-alive, on the connection's turn. Node adds the same lines
 * to each such response.
 */
export const canWriteHead = (request: IncomingMessage, response: ServerResponse): boolean =>
  response.shouldKeepAlive && request.httpVersionMinor === 1 && response.socket?.writable === true
