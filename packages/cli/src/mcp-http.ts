import { createClient } from '@mediabucket/client'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { createMcpServer } from './mcp-tools.ts'

/** A request of an agent, whose token the service has verified. */
export interface McpRequest {
  readonly request: Request
  /** The value of its body. */
  readonly message: unknown
  /** The base URL of the service. */
  readonly url: string
  readonly token: string
  /** The bucket that the request names; undefined for that of the token. */
  readonly namedBucket: string | undefined
  readonly bucket: string | null
  readonly scopes: ReadonlySet<string>
  readonly canWrite: boolean
  /** Sends the requests of the tools to the service. */
  readonly fetch: typeof fetch
  readonly signal: AbortSignal
}

/** The only request whose response does not end: a stream of notifications, of which this server has none. */
const isListen = (message: unknown): message is object =>
  typeof message === 'object' &&
  message !== null &&
  'method' in message &&
  message.method === 'subscriptions/listen'

const noStreams = (message: object) => ({
  jsonrpc: '2.0',
  id: 'id' in message ? message.id : null,
  error: { code: -32601, message: 'This server sends no notifications.' },
})

/** Answers one message by the Streamable HTTP transport, without a session. */
export async function handleMcp(call: McpRequest): Promise<Response> {
  const { request, message, url, token, namedBucket, bucket, scopes, canWrite, fetch, signal } = call
  if (isListen(message)) return Response.json(noStreams(message), { status: 404 })
  const client = createClient({ url, token, bucket: namedBucket, fetch, retry: { attempts: 1 } })
  const context = { client, url, interrupted: signal, explain: () => null }
  const handler = createMcpHandler(() => createMcpServer(context, { bucket, granted: scopes, canWrite }))
  try {
    const response = await handler.fetch(request, { parsedBody: message })
    // Before the server is closed.
    const body = await response.arrayBuffer()
    const { status, headers } = response
    return new Response(body.byteLength === 0 ? null : body, { status, headers })
  } finally {
    await handler.close()
  }
}
