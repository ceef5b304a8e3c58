import { STATUS_CODES } from 'node:http'
import type { Fault } from '../../core/fault.ts'
import { problemResponse } from '../problems/problem-response.ts'

/** A problem as the bytes of a whole answer, for connections without a request that could be answered. It ends the connection. */
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
