import type { IncomingMessage, ServerResponse } from 'node:http'
import { formattedHead, markHeadSent } from '../node-internals.ts'
import { canWriteHead } from './direct-head.ts'

/** Sends a 200 response with a text of ASCII characters to a GET request. `head` has alternating names and valid values. */
export type TextWriter = (
  request: IncomingMessage,
  response: ServerResponse,
  head: readonly string[],
  text: string,
) => void

/**
 * Node checks and formats each header of every response. Here it formats only the lines that it adds itself, once a second, because of
 * its `Date`.
 */
export function createTextWriter(now: () => number = Date.now): TextWriter {
  let second = 0
  /** The lines after those of `head`. */
  let ownLines: string | null = null

  return (request, response, head, text) => {
    const { socket } = response
    if (!canWriteHead(request, response) || socket === null) {
      response.writeHead(200, [...head])
      response.end(text, 'latin1')
      return
    }
    const current = Math.floor(now() / 1000)
    const lines = linesOf(head)
    if (ownLines !== null && second === current) {
      markHeadSent(response)
      socket.write(lines + ownLines + text, 'latin1')
      response.end()
      return
    }
    response.writeHead(200, [...head])
    const whole = formattedHead(response)
    second = current
    ownLines = whole?.startsWith(lines) ? whole.slice(lines.length) : null
    response.end(text, 'latin1')
  }
}

function linesOf(head: readonly string[]): string {
  let lines = 'HTTP/1.1 200 OK\r\n'
  for (let index = 1; index < head.length; index += 2) lines += `${head[index - 1]}: ${head[index]}\r\n`
  return lines
}
