import type { IncomingMessage } from 'node:http'

/** How often a header was sent; `name` in lower case. Of some headers Node keeps the first and silently drops others. */
export function timesSent(request: IncomingMessage, name: string): number {
  let times = 0
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const sent = request.rawHeaders[i]
    if (sent?.length === name.length && sent.toLowerCase() === name) times += 1
  }
  return times
}
