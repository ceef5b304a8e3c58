import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { BaseLogger } from 'pino'
import { Fault } from '../../core/fault.ts'
import { METHODS } from '../../core/node-http.ts'
import { createLingeringClose, serializeProblem } from './last-response.ts'

/** The largest number of headers of a request. */
export const maxHeaders = 100

/** Node's parser also knows the methods of RTSP. */
const methods: ReadonlySet<string> = new Set(METHODS)

/** The detail of the problem `http-version-unsupported`. */
export const supportedVersions = 'The service supports HTTP/1.1 and HTTP/1.0 only.'

/** Why a request that Node's parser accepts is not valid HTTP/1.1 or HTTP/1.0 (docs/interface.md N4); null if it is. */
export function protocolFault(request: IncomingMessage): Fault | null {
  const { httpVersionMajor, httpVersionMinor, method = '', url = '', rawHeaders, headers } = request
  if (httpVersionMajor !== 1) return new Fault('http-version-unsupported', supportedVersions)
  if (!methods.has(method))
    return new Fault('method-unsupported', 'No operation of the service uses this method.')
  if (!url.startsWith('/') && !isAbsoluteOrAsterisk(method, url))
    return new Fault('request-malformed', 'The target of the request must be a path or an http URL.')
  if (rawHeaders.length > 2 * maxHeaders)
    return new Fault('headers-too-large', `A request may have at most ${maxHeaders} headers.`)
  const coding = headers['transfer-encoding']
  if (coding === undefined) return null
  // RFC 9112, section 6.1: this framing is faulty.
  if (httpVersionMinor === 0)
    return new Fault('request-malformed', 'An HTTP/1.0 request cannot have a Transfer-Encoding.')
  if (coding.toLowerCase() === 'chunked') return null
  return new Fault('transfer-coding-unsupported', 'Send the body with Transfer-Encoding: chunked alone.')
}

const isAbsoluteOrAsterisk = (method: string, url: string): boolean =>
  /^https?:\/\//i.test(url) || (url === '*' && method === 'OPTIONS')

/** Refuses CONNECT: the service is no proxy. Node ignores upgrades, as RFC 9110, section 7.8, allows. */
export function refuseTunnels(
  server: Server,
  { baseUrl, log }: { readonly baseUrl: string; readonly log: Pick<BaseLogger, 'info'> },
): void {
  const sendAndClose = createLingeringClose()
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    const requestId = randomUUID()
    const fault = new Fault('method-unsupported', 'The service is no proxy and does not support CONNECT.')
    const { status, bytes } = serializeProblem(fault, baseUrl, requestId)
    log.info({ requestId, status, reason: 'CONNECT' }, 'refused a request')
    sendAndClose(socket, bytes)
  })
}
