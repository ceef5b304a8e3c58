import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A request that the service received. */
export interface ReceivedRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A service on its own port that records its requests. */
export interface ForeignService extends AsyncDisposable {
  readonly url: string
  readonly requests: ReceivedRequest[]
}

type Handler = (request: ReceivedRequest, response: ServerResponse, turn: number) => void

/** Starts a service; `turn` counts the requests from 0. Bodies are read before the handler runs. */
export const startForeign = (handler: Handler): Promise<ForeignService> => {
  const requests: ReceivedRequest[] = []
  return listen(async (request, response) => {
    const one = await readRequest(request)
    handler(one, response, requests.push(one) - 1)
  }, requests)
}

/** Starts a service whose handler runs before the body is read; a failing handler closes the connection. */
export async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>,
  requests: ReceivedRequest[] = [],
): Promise<ForeignService> {
  const server = createServer((request, response) => {
    void Promise.resolve(handle(request, response)).catch(() => request.destroy())
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

async function readRequest(request: IncomingMessage): Promise<ReceivedRequest> {
  const { method = '', url: path = '', headers } = request
  return { method, path, headers, body: await text(request) }
}

export function sendJson(response: ServerResponse, value: unknown, status = 200, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
}

/** The page format of a foreign service. */
export interface Dialect {
  /** The base of its URLs, which may differ from the requested URL. */
  readonly base: string
  readonly path: string
  readonly wrapped: boolean
  /** Whether its links have a `page` member. */
  readonly linkPages: boolean
}

/** A page as Laravel's paginator writes it, with windowed links; independent of the service's code. */
export function foreignPage(items: readonly string[], number: number, dialect: Dialect): unknown {
  const { base, path, wrapped, linkPages } = dialect
  const last = Math.max(1, Math.ceil(items.length / 10))
  const data = items.slice((number - 1) * 10, number * 10)
  const at = (page: number) => `${base}${path}?page=${page}`
  const previous = number > 1 ? number - 1 : null
  const next = number < last ? number + 1 : null
  const link = (page: number | null, label: string) => ({
    url: page === null ? null : at(page),
    label,
    ...(linkPages ? { page } : {}),
    active: label === String(number),
  })
  const shown = Array.from({ length: last }, (_, index) => index + 1).filter(
    (page) => last < 14 || page < 3 || page > last - 2 || Math.abs(page - number) < 4,
  )
  const links = shown.flatMap((page, index) => [
    ...(index > 0 && shown[index - 1] !== page - 1 ? [{ url: null, label: '...', active: false }] : []),
    link(page, String(page)),
  ])
  const page = {
    current_page: number,
    data,
    first_page_url: at(1),
    from: data.length > 0 ? number * 10 - 9 : null,
    last_page: last,
    last_page_url: at(last),
    links: [link(previous, '&laquo; Previous'), ...links, link(next, 'Next &raquo;')],
    next_page_url: next === null ? null : at(next),
    path: `${base}${path}`,
    per_page: 10,
    prev_page_url: previous === null ? null : at(previous),
    to: data.length > 0 ? number * 10 - 10 + data.length : null,
    total: items.length,
  }
  return wrapped ? { data: page } : page
}
