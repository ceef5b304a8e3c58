import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import createRouter from 'find-my-way'
import { errorCode, Fault } from '../core/faults.ts'
import { discardBody, discardUnreadBody, hasBody } from './bodies.ts'
import type { CorsPolicy } from './cors.ts'
import {
  HeaderFault,
  protocolFault,
  refuseCodeDestination,
  refuseServiceWorker,
  requireHostHeader,
} from './headers.ts'
import type { RequestLimits } from './limits.ts'
import { changesByScope, type OperationDescription } from './openapi/description.ts'
import { isForProbe, refusalOfConnection } from './probe-places.ts'
import { type FaultReporter, problemResponse } from './problems.ts'
import { requestIdsOf } from './request-ids.ts'
import type { RequestLogger } from './request-log.ts'
import type { Exchange, Reply, Route } from './route.ts'
import { maxHeaderSize } from './server.ts'

/** The largest body that is read and discarded where an operation takes none (docs/interface.md N5). Bytes. */
const maxIgnoredBody = 65_536

/** Short, because the media base URL may change. */
const redirectCaching = 'public, max-age=300'

/** A media type (RFC 9110, section 8.3.1), and parameters of any form. */
const mediaType = /^[ \t]*[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+[ \t]*(?:;|$)/

type Headers = Readonly<Record<string, string>>
const noHeaders: Headers = {}

/** A route, and what its responses need. */
interface Endpoint {
  readonly route: Route
  readonly serializers: ReadonlyMap<number, Serializer>
}

/** The routes of one pattern. */
interface Path {
  readonly pattern: string
  /** Keyed by method. */
  readonly endpoints: ReadonlyMap<string, Endpoint>
  readonly allow: string
  readonly optionsHeaders: Headers
  readonly servesBytes: boolean
}

/** Where a URL leads. */
interface Match {
  /** Null for an unknown path. */
  readonly path: Path | null
  /** Whether the path cannot be decoded. */
  readonly isMalformed: boolean
  readonly params: Exchange['params']
  readonly query: Exchange['query']
}

/** What the dispatcher needs to handle every request. */
export interface DispatcherParts {
  readonly baseUrl: string
  readonly logRequest: RequestLogger
  readonly corsHeaders: CorsPolicy
  readonly limits: Pick<RequestLimits, 'countAddress'>
  /** Null without a media base URL. */
  readonly mediaHost: MediaHost | null
  readonly reportFault: FaultReporter
  /** Aborted when the service begins to stop. */
  readonly stopping: AbortSignal
  /** Whether requests that change something are refused (docs/interface.md O13). */
  readonly isReadOnly: () => boolean
}

/**
 * Calls the handler of each request. Gives the request its id, logs it, counts it against the limits, refuses what no route
 * accepts, and sends the reply, or the problem of what was thrown.
 */
export class Dispatcher {
  readonly #parts: DispatcherParts
  readonly #find: (url: string) => Match

  constructor(routes: readonly Route[], parts: DispatcherParts) {
    this.#parts = parts
    this.#find = createMatcher(routes)
  }

  /** Handles a request of the HTTP server. */
  dispatch(request: IncomingMessage, response: ServerResponse): void {
    const { logRequest, stopping } = this.#parts
    const { url = '' } = request
    const { id, trace, headers } = requestIdsOf(request.headers)
    if (headers !== null) for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    // The path is found before the line of the log begins: it names the route.
    const fault = protocolFault(request)
    const match = fault === null ? this.#find(url) : nowhere
    const { params, query } = match
    const endpoint = match.path?.endpoints.get(request.method ?? '')
    const kind = endpoint?.route.kind ?? 'other'
    const route = match.path?.pattern ?? 'unknown'
    const line = logRequest(request, response, { id, trace, route, kind })
    const sendsBody = hasBody(request)
    if (sendsBody) discardUnreadBody(request, response)
    if (fault !== null || stopping.aborted || isForProbe(request.socket)) response.shouldKeepAlive = false
    const exchange = { id, request, response, line, params, query }
    if (fault === null) void this.#serve(exchange, match, endpoint, sendsBody)
    // At once: the parser may find the framing invalid in the same read, and that refusal closes the connection.
    else this.#sendProblem(exchange, fault, noHeaders)
  }

  async #serve(
    exchange: Exchange,
    match: Match,
    endpoint: Endpoint | undefined,
    sendsBody: boolean,
  ): Promise<void> {
    const { request, response } = exchange
    const more = (endpoint ? endpoint.route.headers : match.path?.optionsHeaders) ?? noHeaders
    try {
      let reply = this.#refuse(request, match, endpoint)
      if (reply !== null || endpoint === undefined) await parsed
      else {
        const { route } = endpoint
        if (sendsBody && !route.readsBody) await discardBody(request, maxIgnoredBody)
        reply = await route.handle(exchange)
      }
      // The route has sent the response itself.
      if (reply === null) return
      const serialize = endpoint?.serializers.get(reply.status) ?? JSON.stringify
      await send(response, request.method === 'HEAD', reply, serialize, {
        ...this.#parts.corsHeaders(request.headers),
        ...more,
        ...reply.headers,
      })
    } catch (error) {
      await parsed
      // The client has closed the connection before the end of a stream. A stream of a store can end early too.
      if (response.destroyed && errorCode(error) === 'ERR_STREAM_PREMATURE_CLOSE') return
      const fault = this.#parts.reportFault(error, exchange)
      if (response.headersSent) response.destroy()
      else this.#sendProblem(exchange, fault, more)
    }
  }

  /** Throws Fault for what no route accepts. Returns the reply if no handler is called. */
  #refuse(
    request: IncomingMessage,
    { path, isMalformed }: Match,
    endpoint: Endpoint | undefined,
  ): Reply | null {
    const { limits, mediaHost, isReadOnly } = this.#parts
    const { method = '', headers } = request
    // The limits come first, so that no refusal below is free of them.
    const isProbe = endpoint?.route.description?.unlimited === true
    const refusal = isProbe ? null : (refusalOfConnection(request.socket) ?? limits.countAddress(request))
    if (refusal) throw refusal
    // Then what makes the path unusable.
    if (isMalformed) throw new Fault('request-malformed', 'The path of the request cannot be decoded.')
    requireHostHeader(request)
    if (path === null) throw new Fault('route-unknown', 'The service has no such path.')
    refuseServiceWorker(headers)
    // A browser may not run the bytes of items as scripts or styles.
    if (path.servesBytes) refuseCodeDestination(headers)
    const location = mediaHost?.redirectUrl(request, path.servesBytes) ?? null
    if (location !== null) return { status: 308, headers: { 'cache-control': redirectCaching, location } }
    // Then the method and the type of the body. Refused before the body is read.
    if (endpoint === undefined) {
      if (method === 'OPTIONS') return { status: 204, headers: { allow: path.allow } }
      const detail = `${method} is not allowed here; use one of ${path.allow}.`
      throw new HeaderFault('method-not-allowed', detail, { allow: path.allow })
    }
    if (isReadOnly() && changesSomething(endpoint.route, method))
      throw new Fault('read-only', 'The service accepts no changes at present. Reads continue.')
    const type = headers['content-type']
    if (type !== undefined && method !== 'GET' && method !== 'HEAD' && !mediaType.test(type))
      throw new Fault('request-malformed', 'The Content-Type header is not a media type.')
    return null
  }

  #sendProblem({ request, response, id }: Exchange, fault: Fault, more: Headers): void {
    const { baseUrl, corsHeaders } = this.#parts
    const { status, headers, body } = problemResponse(fault, baseUrl, id)
    const cors = corsHeaders(request.headers)
    const isAlone = Object.keys(cors).length === 0 && more === noHeaders
    response.writeHead(status, isAlone ? headers : { ...cors, ...more, ...headers })
    response.end(body)
  }
}

/** A POST with the scope for reading creates links, which changes no item. */
const changesSomething = ({ description }: Route, method: string): boolean =>
  method !== 'GET' && method !== 'HEAD' && changesByScope(description?.needs ?? 'nothing')

/** Sends a reply. A stream that fails ends the connection, so that the response is never taken for complete. */
async function send(
  response: ServerResponse,
  isHead: boolean,
  { status, json, body, stream }: Reply,
  serialize: Serializer,
  headers: Record<string, string>,
): Promise<void> {
  if (stream !== undefined) {
    response.writeHead(status, headers)
    if (!isHead) return await pipeline(stream, response)
    stream.destroy()
    response.end()
    return
  }
  const bytes = json === undefined ? body : serialize(json)
  if (json !== undefined) headers['content-type'] ??= 'application/json; charset=utf-8'
  // RFC 9110, section 8.6: a 204 has no Content-Length, and that of a 304 or of a HEAD is that of the bytes that are not sent.
  if (bytes !== undefined) headers['content-length'] = `${Buffer.byteLength(bytes)}`
  else if (status !== 204 && status !== 304 && !isHead) headers['content-length'] = '0'
  response.writeHead(status, headers)
  response.end(bytes)
}

/** Serializes a value as JSON. */
type Serializer = (value: unknown) => string

/** The serializers of the JSON responses of an operation, by status. Pages and unions are sent as they are. */
function serializersOf(description: OperationDescription | null): ReadonlyMap<number, Serializer> {
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
  const { properties, additionalProperties, items, required } = schema
  if (isRecord(properties) && !additionalProperties) return objectCopy(properties, required)
  const copyItem = copyOf(items)
  if (copyItem === unchanged) return unchanged
  return (value) => (Array.isArray(value) ? arrayCopy(value, copyItem) : value)
}

/** The array itself if no item is copied. */
function arrayCopy(items: readonly unknown[], copyItem: Copy): readonly unknown[] {
  const copies = items.map(copyItem)
  return areEqual(copies, items) ? items : copies
}

function objectCopy(properties: Readonly<Record<string, unknown>>, required: unknown): Copy {
  const members = Object.entries(properties).map(([name, schema]) => [name, copyOf(schema)] as const)
  const names = members.map(([name]) => name)
  const always = Array.isArray(required) ? names.filter((name) => required.includes(name)) : []
  const nested = members.filter(([, copy]) => copy !== unchanged)
  return (value) => {
    if (!isRecord(value)) return value
    const copies = nested.map(([name, copy]) => copy(value[name]))
    // Most objects have the required members of their schema, or all, in its order, and need no copy.
    const own = Object.keys(value)
    const isAsNamed = areEqual(own, always) || areEqual(own, names)
    if (isAsNamed && nested.every(([name], index) => copies[index] === value[name])) return value
    const copied: Record<string, unknown> = {}
    for (const name of names) copied[name] = value[name]
    for (const [index, [name]] of nested.entries()) copied[name] = copies[index]
    return copied
  }
}

function areEqual(some: readonly unknown[], others: readonly unknown[]): boolean {
  if (some.length !== others.length) return false
  for (let index = 0; index < some.length; index += 1) if (some[index] !== others[index]) return false
  return true
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** Awaited before a response that needs nothing else: a further request of the same read must find it unfinished (docs/interface.md N1). */
const parsed = Promise.resolve()

const nowhere: Match = { path: null, isMalformed: false, params: {}, query: {} }

/** Returns a function that finds the path of a URL. */
function createMatcher(routes: readonly Route[]): (url: string) => Match {
  // Paths are limited by the size of the headers.
  const router = createRouter({ maxParamLength: maxHeaderSize, onBadUrl: () => undefined })
  for (const path of pathsOf(routes)) router.on('GET', path.pattern, () => undefined, path)
  return (url) => {
    const found = router.find('GET', url)
    if (found === null) return nowhere
    const path: Path | null = found.store
    // No pattern has an optional parameter, so none is undefined.
    const params = found.params as Exchange['params']
    return { path, isMalformed: path === null, params, query: found.searchParams }
  }
}

function pathsOf(routes: readonly Route[]): readonly Path[] {
  return [...Map.groupBy(routes, ({ pattern }) => pattern)].map(([pattern, some]) => {
    const endpoints = new Map<string, Endpoint>()
    for (const route of some) {
      const endpoint = { route, serializers: serializersOf(route.description) }
      endpoints.set(route.method, endpoint)
      if (route.method === 'GET') endpoints.set('HEAD', endpoint)
    }
    return {
      pattern,
      endpoints,
      allow: [...endpoints.keys(), 'OPTIONS'].sort().join(', '),
      optionsHeaders: some.find(({ optionsHeaders }) => optionsHeaders)?.optionsHeaders ?? noHeaders,
      servesBytes: some.some(({ servesBytes }) => servesBytes),
    }
  })
}

/** The host that a request names: that of the base URL, that of the media base URL, or another one. */
type HostRole = 'main' | 'media' | 'other'

/** Separates the host of API and gallery from the host of bytes. */
export class MediaHost {
  readonly #mainUrl: URL
  readonly #mediaUrl: URL
  readonly #mediaBaseUrl: string

  constructor(baseUrl: string, mediaBaseUrl: string) {
    this.#mainUrl = new URL(baseUrl)
    this.#mediaUrl = new URL(mediaBaseUrl)
    this.#mediaBaseUrl = mediaBaseUrl
  }

  /**
   * Returns the URL to redirect to for bytes requested from the main host, null for all other requests.
   * Throws Fault `route-unknown` for anything but bytes on the media host (docs/interface.md B11).
   */
  redirectUrl(request: IncomingMessage, isBytes: boolean): string | null {
    const role = this.#roleOf(request)
    if (role === 'media' && !isBytes)
      throw new Fault('route-unknown', 'This host serves only the bytes of items.')
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const path = /\/media\/.*$/s.exec(request.url ?? '')?.[0]
    return role === 'main' && isBytes && isRead && path !== undefined ? this.#mediaBaseUrl + path : null
  }

  /** `other` occurs behind a proxy that changes Host. Such requests are served, since refusing them would lock everyone out. */
  #roleOf({ headers: { host = '' } }: IncomingMessage): HostRole {
    if (isSameHost(host, this.#mediaUrl)) return 'media'
    return isSameHost(host, this.#mainUrl) ? 'main' : 'other'
  }
}

/** Whether a Host header names the host and port of a URL; the default port of its scheme may be left out. */
export function isSameHost(host: string, url: URL): boolean {
  const candidate = `${url.protocol}//${host}`
  return URL.canParse(candidate) && new URL(candidate).host === url.host
}
