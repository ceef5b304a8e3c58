import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { ownClientHeader, ownClientValue } from '../http/limits.ts'

// An import would load more: see core/node-http.ts.
const http = process.getBuiltinModule('node:http')

/** Statuses whose responses have no body. */
const withoutBody: ReadonlySet<number> = new Set([101, 204, 205, 304])

/** A secret that the processes of one service share, with which requests to itself name the client that they are sent for. */
export const newOwnSecret = (): string => randomBytes(32).toString('base64url')

interface OwnService {
  readonly secret: string
  /** The address on which this process listens. */
  readonly host: string
  readonly port: number
  /** The base URLs of the service, as clients have them. Each may have a path, which a proxy removes. */
  readonly baseUrls: readonly string[]
}

/**
 * Makes a fetch for the service's own URLs, for a client of this address. Its requests go to this machine whatever proxies are before it. Redirects are
 * not followed. Requests to other origins, such as those of a store, are sent as usual.
 */
export function createOwnFetch({
  secret,
  host,
  port,
  baseUrls,
}: OwnService): (client: string | null) => typeof fetch {
  const bases = baseUrls.map((text) => new URL(text))
  // Of its own: the global one may use a proxy of the environment.
  const agent = new http.Agent()
  return (client) => async (input, init) => {
    const request = new Request(input, init)
    const url = new URL(request.url)
    const base = bases.find(({ origin }) => origin === url.origin)
    if (base === undefined) return fetch(request)
    const body = Buffer.from(await request.arrayBuffer())
    const prefix = base.pathname.replace(/\/+$/, '')
    const path = url.pathname.startsWith(`${prefix}/`) ? url.pathname.slice(prefix.length) : url.pathname
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const sent = http.request({
      ...{ agent, host, port, method: request.method, path: path + url.search, signal: request.signal },
      headers: {
        ...Object.fromEntries(request.headers),
        host: url.host,
        ...(client !== null && { [ownClientHeader]: ownClientValue(secret, client) }),
        ...(body.length > 0 && { 'content-length': body.length }),
      },
    })
    sent.once('error', reject).once('response', resolve)
    sent.end(body)
    const response = await promise
    const status = response.statusCode ?? 500
    response.on('error', () => undefined)
    if (withoutBody.has(status)) response.resume()
    const answered = new Response(
      withoutBody.has(status) ? null : ReadableStream.from(Readable.from(response)),
      {
        status,
        headers: Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        ),
      },
    )
    // Which only fetch itself sets: it tells the client whose response it is.
    return Object.defineProperty(answered, 'url', { value: request.url })
  }
}
