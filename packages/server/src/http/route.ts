import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { OperationDescription } from './openapi/description.ts'
import type { RequestLine } from './request-log.ts'
import type { RequestKind } from './usage-log.ts'

/** The names of the parameters of a pattern such as `/api/media/:id`. */
type ParameterNames<Pattern extends string> = Pattern extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParameterNames<Rest>
  : Pattern extends `${string}:${infer Name}`
    ? Name
    : never

/** A request with its response. */
export interface Exchange<Parameter extends string = string> {
  /** Names the request in the log, in problems and in the audit log. */
  readonly id: string
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** What the log says of it besides. */
  readonly line: RequestLine
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Record<Parameter, string>>
  /** The parameters of the query, decoded. A repeated one is a list. */
  readonly query: Readonly<Record<string, unknown>>
}

/** What is needed of a request to verify its token. */
export type RequestParts = Pick<Exchange, 'id' | 'request' | 'line'>

/** What a handler responds. At most one of `json`, `body` and `stream` is set. */
export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Only the members that the description of the response names are sent. */
  readonly json?: unknown
  readonly body?: string | Uint8Array
  readonly stream?: Readable
}

/** Resolves with null if the handler has begun the response itself. Rejects with a Fault for an expected error. */
type Handler<Parameter extends string = string> = (exchange: Exchange<Parameter>) => Promise<Reply | null>

interface RouteOptions {
  /** Whether the handler reads the body of the request. Other bodies are read and discarded up to a limit (docs/interface.md N5). */
  readonly readsBody?: boolean
  /** Headers of every Reply and every problem; not of a response that the handler begins itself. */
  readonly headers?: Readonly<Record<string, string>>
  /** Headers besides `Allow` of the responses to OPTIONS and to methods that the path does not support. */
  readonly optionsHeaders?: Readonly<Record<string, string>>
  /** As what its requests count in the usage of their bucket; `other` if it is left out. */
  readonly kind?: RequestKind
  /** Whether the responses have the bytes of items, which have a host of their own, and which browsers must not run. */
  readonly servesBytes?: boolean
}

export interface Route extends RouteOptions {
  /** A route for GET responds to HEAD too. */
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'DELETE'
  readonly pattern: string
  /** Null for what the OpenAPI document does not contain: the gallery. */
  readonly description: OperationDescription | null
  handle(exchange: Exchange): Promise<Reply | null>
}

/** A line of the table of routes. */
export const route = <Pattern extends string>(
  method: Route['method'],
  pattern: Pattern,
  description: OperationDescription | null,
  handle: Handler<ParameterNames<Pattern>>,
  options: RouteOptions = {},
): Route => ({ method, pattern, description, handle, ...options })
