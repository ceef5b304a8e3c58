import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A way to a server on which answers get lost. */
export interface LossyProxy extends AsyncDisposable {
  readonly url: string
  /** The methods of the requests that came, in order; those whose answers were lost end in `!`. */
  readonly seen: string[]
}

/** Forwards everything; of the answers that `loses` names, the client sees no more than its connection ending. */
export async function startLossyProxy(
  target: string,
  loses: (method: string, nth: number) => boolean,
): Promise<LossyProxy> {
  const seen: string[] = []
  const counts = new Map<string, number>()

  function forward(asked: IncomingMessage, answer: ServerResponse): void {
    const { method = '', url = '', headers } = asked
    const nth = (counts.get(method) ?? 0) + 1
    counts.set(method, nth)
    const lost = loses(method, nth)
    seen.push(lost ? `${method}!` : method)
    const onward = request(new URL(url, target), { method, headers }, (got) => {
      if (lost) {
        // Only once it is whole: what was asked for has been done.
        got.resume().on('end', () => asked.socket.destroy())
        return
      }
      // Locations lead to the server itself; the client must stay on this way.
      const location = got.headers.location?.replace(target, base())
      answer.writeHead(got.statusCode ?? 502, { ...got.headers, ...(location ? { location } : {}) })
      got.pipe(answer)
    })
    onward.on('error', () => asked.socket.destroy())
    asked.on('error', () => onward.destroy())
    asked.pipe(onward)
  }

  const server = createServer(forward)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: base(),
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
