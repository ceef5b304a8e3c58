import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'

/** A proxy between browsers and a server that removes a path prefix and can stop uploads. */
export interface Gateway extends AsyncDisposable {
  /** Ends with the path prefix that it removes. */
  readonly url: string
  /** Bytes of uploads that were forwarded. */
  readonly passed: () => number
  /** Forwards this many bytes of uploads, counted from the start; requests with more bytes wait. */
  holdAfter(bytes: number): void
  /** Resets the connections of waiting requests and forwards everything from now on. */
  open(): void
}

export async function startGateway(target: string, prefix = ''): Promise<Gateway> {
  let allowed = Number.POSITIVE_INFINITY
  let passed = 0
  const waiting = new Set<() => void>()

  async function* metered(body: IncomingMessage) {
    for await (const chunk of body) {
      if (passed >= allowed) {
        await new Promise<void>((resolve) => waiting.add(resolve))
        body.destroy()
        return
      }
      passed += chunk.length
      yield chunk
    }
  }

  async function forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = incoming
    if (!url.startsWith(`${prefix}/`)) return void response.writeHead(404).end()
    const onward = request(new URL(url.slice(prefix.length), target), { method, headers }, (got) => {
      response.writeHead(got.statusCode ?? 502, got.headers)
      // Destroys a response that the server has cut off.
      pipeline(got, response, () => undefined)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    try {
      for await (const chunk of metered(incoming)) onward.write(chunk)
      if (incoming.complete) onward.end()
      else onward.destroy()
    } catch {
      onward.destroy()
    }
  }

  const server = createServer((incoming, response) => void forward(incoming, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    passed: () => passed,
    holdAfter(bytes) {
      allowed = bytes
    },
    open() {
      allowed = Number.POSITIVE_INFINITY
      for (const cut of waiting) cut()
      waiting.clear()
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
