import type { McpRequest } from '@mediabucket/cli/mcp-http'
import { Fault } from '../core/faults.ts'
import { readJsonObject } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { namedBucket, noStore, parseBearerToken, requireAuthorization } from '../http/headers.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'

/** Answers a message of the Model Context Protocol, whose token is verified. */
export type HandleMcp = (call: McpRequest) => Promise<Response>

export interface McpParts {
  readonly http: HttpContext
  readonly handle: HandleMcp
  readonly canWrite: boolean
  /** Sends requests to this service for a client of an address. */
  readonly ownFetch: (client: string | null) => typeof fetch
}

/** `POST /mcp`: the Streamable HTTP transport of the Model Context Protocol, without sessions (docs/interface.md MC1). */
export const mcpRoutes = (parts: McpParts): readonly Route[] => [
  route('POST', '/mcp', null, (exchange) => answer(parts, exchange), { readsBody: true }),
]

async function answer({ http, handle, canWrite, ownFetch }: McpParts, exchange: Exchange): Promise<Reply> {
  const { request, response } = exchange
  requireOwnOrigin(http, request.headers.origin)
  const previous = await http.authorize(exchange, null)
  const message = await readJsonObject(request, http.readBody, null)
  // The token can be revoked or expire while the body arrives (docs/interface.md A7, A9).
  const caller = await http.authorize(exchange, null, { isCounted: true, previous })
  const { baseUrl } = http.settings
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const headers = new Headers()
  for (const name of ['accept', 'content-type', 'mcp-protocol-version', 'mcp-session-id', 'last-event-id'])
    if (request.headers[name] !== undefined) headers.set(name, request.headers[name].toString())
  const bucket = await http.catalog.bucket(caller.bucketId)
  const answered = await handle({
    request: new Request(`${baseUrl}/mcp`, { method: 'POST', headers, body: JSON.stringify(message) }),
    ...{ message, url: baseUrl, canWrite, fetch: ownFetch(http.addresses.wholeOfRequest(request)) },
    token: parseBearerToken(requireAuthorization(request)),
    namedBucket: namedBucket(request),
    bucket: bucket?.name ?? null,
    scopes: caller.scopes,
    signal: AbortSignal.any([gone.signal, http.closing]),
  })
  const type = answered.headers.get('content-type')
  return {
    status: answered.status,
    headers: { ...noStore, ...(type !== null && { 'content-type': type }) },
    body: Buffer.from(await answered.arrayBuffer()),
  }
}

/** A page of a foreign origin may not use an agent's access, whatever its host name resolves to. Throws Fault `origin-refused`. */
function requireOwnOrigin({ settings }: HttpContext, origin: string | undefined): void {
  const { baseUrl, corsOrigins } = settings
  if (origin === undefined || origin === new URL(baseUrl).origin || corsOrigins.includes(origin)) return
  throw new Fault(
    'origin-refused',
    'Pages of this origin may not use the Model Context Protocol of the service (MEDIABUCKET_CORS_ORIGINS).',
  )
}
