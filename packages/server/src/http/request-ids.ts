import { randomBytes, randomFillSync } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { redactTokens } from '../core/token-rules.ts'

/** The names of a request in this service and beyond (docs/interface.md O15). */
export interface RequestIds {
  /** That of the log, of problems and of the audit log. */
  readonly id: string
  /** The trace of the request (W3C Trace Context); null if it has none. */
  readonly trace: { readonly traceId: string; readonly parentId: string; readonly spanId: string } | null
  /** The headers of the response; null if the request names neither. */
  readonly headers: Readonly<Record<string, string>> | null
}

/** Bytes of an id. */
const idLength = 16

/** Random bytes for 256 ids: generating them for each id costs more than formatting it. */
const randomPool = Buffer.allocUnsafe(256 * idLength)
let poolOffset = randomPool.length

/** 128 random bits in hexadecimal digits. */
export function newRequestId(): string {
  if (poolOffset === randomPool.length) {
    randomFillSync(randomPool)
    poolOffset = 0
  }
  poolOffset += idLength
  return randomPool.toString('hex', poolOffset - idLength, poolOffset)
}

/** What clients and proxies use: UUIDs, hexadecimal numbers, ULIDs, and ids with a prefix. The log writes them without escapes. */
const idShape = /^[\w.:+/=@-]{1,128}$/

/** Later versions may have more members, which are ignored (https://www.w3.org/TR/trace-context/#versioning-of-traceparent). */
const traceShape = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** An id that holds a token would be logged, so it is ignored, as one of another form. */
const isRequestId = (text: string | undefined): text is string =>
  text !== undefined && idShape.test(text) && redactTokens(text) === text

/** Reads `X-Request-Id` and `traceparent`. A request without a valid id gets a new one. */
export function requestIdsOf(headers: IncomingHttpHeaders): RequestIds {
  const given = headers['x-request-id']
  const traceparent = headers['traceparent']
  if (given === undefined && traceparent === undefined)
    return { id: newRequestId(), trace: null, headers: null }
  const sent = given?.toString()
  const id = isRequestId(sent) ? sent : newRequestId()
  const [, version, traceId, parentId, flags, more] = traceShape.exec(traceparent?.toString() ?? '') ?? []
  if (traceId === undefined || parentId === undefined || (version === '00' && more !== undefined))
    return { id, trace: null, headers: { 'x-request-id': id } }
  const spanId = randomBytes(8).toString('hex')
  return {
    id,
    trace: { traceId, parentId, spanId },
    headers: { 'x-request-id': id, traceparent: `00-${traceId}-${spanId}-${flags}` },
  }
}
