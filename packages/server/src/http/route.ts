import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { OperationDescription } from './openapi/description.ts'

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
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Record<Parameter, string>>
  /** The parameters of the query, decoded. A repeated one is a list. */
  readonly query: Readonly<Record<string, unknown>>
}

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
  /** Headers of every response of the handler, problems included. */
  readonly headers?: Readonly<Record<string, string>>
  /** Headers besides `Allow` of the responses to OPTIONS and to methods that the path does not support. */
  readonly optionsHeaders?: Readonly<Record<string, string>>
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

/** Serializes a value as JSON. */
export type Serializer = (value: unknown) => string

/** The serializers of the JSON responses of an operation, by status. Pages and unions are sent as they are. */
export function serializersOf(description: OperationDescription | null): ReadonlyMap<number, Serializer> {
  const serializers = new Map<number, Serializer>()
  for (const [status, { content }] of Object.entries(description?.responses ?? {})) {
    const json = content?.['application/json']
    if (json?.schema && 'properties' in json.schema && !json.enveloped)
      serializers.set(Number(status), createSerializer({ schema: json.schema }))
  }
  return serializers
}

type Copy = (value: unknown) => unknown

/** Creates the serializer of a response: only members that the schema names are sent. */
export function createSerializer({ schema }: { readonly schema?: unknown }): (value: unknown) => string {
  const copy = copyOf(schema)
  return (value) => JSON.stringify(copy(value))
}

const unchanged: Copy = (value) => value

/** Returns a function that copies the named members of objects, also inside arrays. Values of any other schema are not copied. */
function copyOf(schema: unknown): Copy {
  if (!isRecord(schema)) return unchanged
  const { properties, additionalProperties, items } = schema
  if (isRecord(properties) && !additionalProperties) return objectCopy(properties)
  const copyItem = copyOf(items)
  if (copyItem === unchanged) return unchanged
  return (value) => (Array.isArray(value) ? value.map(copyItem) : value)
}

function objectCopy(properties: Readonly<Record<string, unknown>>): Copy {
  const members = Object.entries(properties).map(([name, schema]) => [name, copyOf(schema)] as const)
  return (value) => {
    if (!isRecord(value)) return value
    const copied: Record<string, unknown> = {}
    for (const [name, copy] of members) copied[name] = copy(value[name])
    return copied
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
