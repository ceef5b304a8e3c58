import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A proxy that loses responses. */
export interface LossyProxy extends AsyncDisposable {
  readonly url: string
  /** The methods of the received requests, in order; those with a lost response end in `!`. */
  readonly seen: string[]
  /** How many responses were lost. */
  readonly lost: () => number
}

/**
 * Forwards everything; instead of the responses that `loses` selects, it closes the connection. `hold` is called when the server has
 * responded, and delays the response.
 */
export async function startLossyProxy(
  target: string,
  loses: (method: string, nth: number) => boolean,
  hold: (method: string, path: string) => Promise<void> = async () => {},
): Promise<LossyProxy> {
  const seen: string[] = []
  const counts = new Map<string, number>()

  function forward(incoming: IncomingMessage, response: ServerResponse): void {
    const { method = '', url = '', headers } = incoming
    const nth = (counts.get(method) ?? 0) + 1
    counts.set(method, nth)
    const lost = loses(method, nth)
    seen.push(lost ? `${method}!` : method)
    const onward = request(new URL(url, target), { method, headers }, async (got) => {
      if (lost) {
        // Only after the complete response: the server has executed the request.
        got.resume().on('end', () => incoming.socket.destroy())
        return
      }
      await hold(method, url)
      // Locations name the server itself; the client must keep using the proxy.
      const location = got.headers.location?.replace(target, base())
      response.writeHead(got.statusCode ?? 502, { ...got.headers, ...(location ? { location } : {}) })
      got.pipe(response)
    })
    onward.on('error', () => incoming.socket.destroy())
    incoming.on('error', () => onward.destroy())
    incoming.pipe(onward)
  }

  const server = createServer(forward)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: base(),
    seen,
    lost: () => seen.filter((method) => method.endsWith('!')).length,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
