import type { Fault } from '../../core/fault.ts'
import { STATUS_CODES } from '../../core/node-http.ts'
import { problemResponse } from '../problems/problem-response.ts'

/** Serializes a problem as a complete response that closes the connection, for connections without a ServerResponse. */
export function serializeProblem(
  fault: Fault,
  baseUrl: string,
  requestId: string,
): { readonly status: number; readonly bytes: Buffer } {
  const { status, headers, body } = problemResponse(fault, baseUrl, requestId)
  const head = Object.entries({ connection: 'close', ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  return {
    status,
    bytes: Buffer.concat([Buffer.from(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n`), body]),
  }
}
