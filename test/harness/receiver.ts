import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'

const Change = Type.Object({
  type: Type.String({ pattern: '^item\\.' }),
  timestamp: Type.String(),
  data: Type.Object({
    number: Type.Integer(),
    bucket: Type.String(),
    item_id: Type.String(),
    item: Type.Union([
      Type.Null(),
      Type.Object({ url: Type.String(), caption: Type.Union([Type.Null(), Type.String()]) }),
    ]),
  }),
})
const readChange = Compile(Change)
const readBatch = Compile(
  Type.Object({ type: Type.Literal('items.changed'), data: Type.Object({ changes: Type.Array(Change) }) }),
)
const readType = Compile(Type.Object({ type: Type.String() }))

type ReceivedChange = Static<typeof Change>

/** A request that a receiver has verified. */
export interface Received {
  readonly id: string
  readonly type: string
  readonly changes: readonly ReceivedChange[]
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

type Respond = (received: Received, response: ServerResponse) => void | Promise<void>

/** A receiver of webhooks. */
export interface Receiver extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** What has arrived with a valid signature, in its order. */
  readonly received: Received[]
  /** The secrets that signatures may have. */
  readonly secrets: Set<string>
  /** Requests without a valid signature. */
  readonly refused: string[]
  /** How it responds from now on. */
  respond: Respond
  close(): Promise<void>
  /** Listens again at the same port. */
  listen(): Promise<void>
}

/** Responds with 204. */
const accept: Respond = (_received, response) => void response.writeHead(204).end()

/** Responds with a status and a body. */
export const respondWith =
  (status: number, body = '', headers: Readonly<Record<string, string>> = {}): Respond =>
  (_received, response) =>
    void response.writeHead(status, headers).end(body)

/** Starts a receiver that verifies signatures with the official library. */
export async function startReceiver(): Promise<Receiver> {
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    )
    const isValid = [...receiver.secrets].some((secret) => {
      try {
        new Webhook(secret).verify(body, headers)
        return true
      } catch {
        return false
      }
    })
    if (!isValid) {
      receiver.refused.push(body)
      response.writeHead(401).end()
      return
    }
    const received = { ...messageOf(body), id: headers['webhook-id'] ?? '', headers: request.headers, body }
    receiver.received.push(received)
    await receiver.respond(received, response)
  })
  const listenAt = (port: number) =>
    new Promise<void>((done) => {
      server.listen(port, '127.0.0.1', done)
    })
  await listenAt(0)
  const { port: bound } = server.address() as AddressInfo
  const close = () =>
    new Promise<void>((done) => {
      server.close(() => done())
      server.closeAllConnections()
    })
  const receiver: Receiver = {
    url: `http://127.0.0.1:${bound}/hook`,
    port: bound,
    received: [],
    secrets: new Set(),
    refused: [],
    respond: accept,
    close,
    listen: () => listenAt(bound),
    [Symbol.asyncDispose]: close,
  }
  return receiver
}

function messageOf(body: string): Pick<Received, 'type' | 'changes'> {
  const value: unknown = JSON.parse(body)
  const { type } = readType.Parse(value)
  if (type === 'items.changed') return { type, changes: readBatch.Parse(value).data.changes }
  return { type, changes: type.startsWith('item.') ? [readChange.Parse(value)] : [] }
}
