import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A forwarded request. */
export interface Passed {
  readonly method: string
  readonly path: string
  /** Upload-Offset; null if there is none. */
  readonly offset: number | null
  /** Bytes of its body received so far. */
  bytes: number
}

/** A proxy that counts the bytes of bodies and can stop a body in the middle. */
export interface WatchedProxy extends AsyncDisposable {
  readonly url: string
  readonly passed: Passed[]
  /** The requests with a chunk of a file. */
  readonly chunks: () => Passed[]
  /** Stops forwarding the first body for which `when` returns true, and resolves when it has stopped. */
  readonly hold: (when: (passed: Passed) => boolean) => Promise<void>
  /** Ends every connection of its clients. */
  readonly cut: () => void
}

/**
 * Forwards everything, with unchanged Locations. `target` is called for every request, since the server's port may
 * change; `change` may damage bodies.
 */
export async function startWatchedProxy(
  target: () => string,
  change: (chunk: Buffer, passed: Passed) => Buffer = (chunk) => chunk,
): Promise<WatchedProxy> {
  const passed: Passed[] = []
  let holding: { when: (passed: Passed) => boolean; reached: () => void } | null = null

  async function forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = incoming
    const offset = headers['upload-offset']
    const one: Passed = { method, path, offset: offset === undefined ? null : Number(offset), bytes: 0 }
    passed.push(one)
    const onward = request(new URL(path, target()), { method, headers }, (got) => {
      response.writeHead(got.statusCode ?? 502, got.headers)
      got.on('error', () => incoming.socket.destroy()).pipe(response)
    })
    onward.on('error', () => incoming.socket.destroy())
    incoming.on('error', () => onward.destroy())
    const closed = once(onward, 'close').catch(() => {})
    for await (const chunk of incoming) {
      one.bytes += chunk.length
      // A request whose connection the service has closed before the end of the body emits no "drain".
      if (!onward.write(change(chunk, one)) && !onward.destroyed)
        await Promise.race([once(onward, 'drain'), closed])
      if (holding?.when(one)) {
        holding.reached()
        holding = null
        await once(incoming, 'close')
      }
    }
    onward.end()
  }

  const server = createServer(
    (incoming, response) => void forward(incoming, response).catch(() => incoming.destroy()),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed,
    chunks: () => passed.filter(({ method }) => method === 'PATCH'),
    hold: (when) =>
      new Promise((reached) => {
        holding = { when, reached }
      }),
    cut: () => server.closeAllConnections(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
