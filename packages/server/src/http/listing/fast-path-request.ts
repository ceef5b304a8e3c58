import type { IncomingMessage } from 'node:http'
import { countHeader } from '../headers/raw-headers.ts'

/** All of a plain listing's request that its answer and its headers depend on. */
export interface FastPathRequest {
  readonly url: string
  readonly authorization: string
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
  readonly origin: string | undefined
}

/** Null for a request that is not of the plain form: it has a body, expects something, or asks twice. */
export function parseFastPathRequest(request: IncomingMessage): FastPathRequest | null {
  const { method, url, headers } = request
  const { authorization, origin } = headers
  if (method !== 'GET' || url === undefined || authorization === undefined) return null
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return null
  if (headers.expect !== undefined || headers['access-control-request-method'] !== undefined) return null
  // Of these, Node keeps one and drops others.
  if (countHeader(request, 'host') !== 1 || countHeader(request, 'authorization') !== 1) return null
  return {
    url,
    authorization,
    acceptEncoding: headers['accept-encoding'],
    ifNoneMatch: headers['if-none-match'],
    origin,
  }
}

/** Whether one answer is right for both. */
export const areIdentical = (one: FastPathRequest, other: FastPathRequest): boolean =>
  one.url === other.url &&
  one.authorization === other.authorization &&
  one.acceptEncoding === other.acceptEncoding &&
  one.ifNoneMatch === other.ifNoneMatch &&
  one.origin === other.origin
