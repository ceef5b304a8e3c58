import type { IncomingMessage } from 'node:http'
import { countHeader } from '../headers/raw-headers.ts'

/** The parts of a plain listing request that determine the response. */
export interface FastPathRequest {
  readonly url: string
  readonly authorization: string
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
  readonly origin: string | undefined
}

/** Returns null for requests that need the framework, such as those with a body, with `Expect` or with repeated headers. */
export function parseFastPathRequest(request: IncomingMessage): FastPathRequest | null {
  const { method, url, headers } = request
  const { authorization, origin } = headers
  if (method !== 'GET' || url === undefined || authorization === undefined) return null
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return null
  if (headers.expect !== undefined || headers['access-control-request-method'] !== undefined) return null
  // `headers` does not show repeated ones.
  if (countHeader(request, 'host') !== 1 || countHeader(request, 'authorization') !== 1) return null
  return {
    url,
    authorization,
    acceptEncoding: headers['accept-encoding'],
    ifNoneMatch: headers['if-none-match'],
    origin,
  }
}

/** Whether both requests get the same response. */
export const areIdentical = (one: FastPathRequest, other: FastPathRequest): boolean =>
  one.url === other.url &&
  one.authorization === other.authorization &&
  one.acceptEncoding === other.acceptEncoding &&
  one.ifNoneMatch === other.ifNoneMatch &&
  one.origin === other.origin
