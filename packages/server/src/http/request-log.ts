import { hash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { redactTokens } from '../core/token-rules.ts'
import type { ClientAddresses } from './limits.ts'
import type { Metrics } from './metrics.ts'
import type { RequestIds } from './request-ids.ts'
import type { RequestKind } from './usage-log.ts'

/** Logs a request when its response has ended. `route` is the pattern of its path. Returns the line, to which more can be added until then. */
export type RequestLogger = (
  request: IncomingMessage,
  response: ServerResponse,
  about: Pick<RequestIds, 'id' | 'trace'> & {
    readonly route: string
    readonly kind: RequestKind
    /** What is logged as the path, if that of the request has the name of a file. */
    readonly path?: string
  },
) => RequestLine

/** Where the lines of requests are written. */
export interface RequestLines {
  /** Whether the log level includes them at present. */
  readonly areWritten: () => boolean
  /** Never waits. */
  readonly write: (line: string) => void
}

/** What is added to the line of a request while it is handled. */
export interface RequestLine {
  /** As what the request counts in the usage of its bucket. */
  readonly kind: RequestKind
  /** The id of its token: of one that is or was valid. */
  token: string | undefined
  /** The Authorization header with a token that was refused. The line has its fingerprint. */
  refused: string | undefined
}

export const emptyLine = (kind: RequestKind = 'other'): RequestLine => ({
  kind,
  token: undefined,
  refused: undefined,
})

/**
 * Tells refused tokens apart without revealing them: 32 bits of a hash with a value of the data directory, so that a text that was sent by
 * mistake, such as a password, cannot be found by the log alone.
 */
const tokenFingerprint = (authorization: string, salt: string): string =>
  hash('sha256', `${salt}\0${authorization}`).slice(0, 8)

/** Writes one log line and one observation for each request, completed or aborted (docs/interface.md O3). */
export function createRequestLogger(
  metrics: Pick<Metrics, 'responseObserver'>,
  addresses: Pick<ClientAddresses, 'wholeOfRequest'>,
  lines: RequestLines,
  /** A secret value of the data directory. */
  salt: string,
): RequestLogger {
  const pathText = formatOnce((url) => JSON.stringify(loggedPath(url)))
  const agentText = formatOnce((agent) => JSON.stringify(loggedAgent(agent)))
  const addressText = formatOnce(JSON.stringify)
  const tokenText = formatOnce(JSON.stringify)

  return (request, response, { id, trace, route, kind, path: shownPath }) => {
    const startedAt = performance.now()
    const observer = metrics.responseObserver(request.method ?? '', route)
    const line = emptyLine(kind)
    // Known only while the connection is open.
    const sent = lines.areWritten()
      ? { address: addresses.wholeOfRequest(request), bytesBefore: request.socket.bytesWritten }
      : null
    // `close` is emitted exactly once: after the last byte, or when the connection ends before it.
    response.on('close', () => {
      const ms = performance.now() - startedAt
      const status = response.headersSent ? response.statusCode : null
      observer.observe(status, ms / 1000)
      if (sent === null) return
      const { address, bytesBefore } = sent
      const { method = '', url = '', headers, socket } = request
      const { token, refused } = line
      const fingerprint = refused === undefined ? undefined : tokenFingerprint(refused, salt)
      const bytes = socket.bytesWritten - bytesBefore
      const path = shownPath === undefined ? pathText(url) : JSON.stringify(shownPath)
      const agent = headers['user-agent']
      const msg = response.writableFinished ? 'completed' : 'aborted'
      const traced = trace === null ? '' : `,${JSON.stringify(trace).slice(1, -1)}`
      // As the logger formats it; a test compares them. JSON.stringify of all members costs more (bench/RESULTS.md).
      // An id (`idShape` of request-ids.ts), and a method that Node parses, need no escapes.
      lines.write(
        `{"level":${info},"time":${Date.now()},"requestId":"${id}","method":"${method}","path":${path},` +
          `"status":${status},"ms":${tenths(ms)},"bytes":${bytes},"address":${address === null ? 'null' : addressText(address)}` +
          (agent === undefined ? '' : `,"userAgent":${agentText(agent)}`) +
          (token === undefined ? '' : `,"token":${tokenText(token)}`) +
          (fingerprint === undefined ? '' : `,"tokenFingerprint":"${fingerprint}"`) +
          `${traced},"msg":"${msg}"}\n`,
      )
    })
    return line
  }
}

/** The level `info` of the log. */
const info = 30

/** Returns a function that formats a value only if it differs from the last one: most clients repeat a request. */
function formatOnce(format: (value: string) => string): (value: string) => string {
  let last = ''
  let text = format(last)
  return (value) => {
    if (value !== last) {
      text = format(value)
      last = value
    }
    return text
  }
}

/** A number of at least 0 with one decimal at most. Formatting two integers takes less time than one fraction. */
function tenths(value: number): string {
  const rounded = Math.round(value * 10)
  const rest = rounded % 10
  return rest === 0 ? `${rounded / 10}` : `${(rounded - rest) / 10}.${rest}`
}

/** The characters of a path, and of a User-Agent, that are logged. */
const maxLoggedPath = 1_024
const maxLoggedAgent = 200

/** Matches nearly all values: they are too short, or have too short words, for a token. */
const plainAgent = /^(?:[^\s_]{0,25}(?:\s|$)){1,40}$/

function loggedAgent(agent: string): string {
  const redacted = agent.length <= maxLoggedAgent && plainAgent.test(agent) ? agent : redactTokens(agent)
  return redacted.length > maxLoggedAgent ? `${redacted.slice(0, maxLoggedAgent)}…` : redacted
}

/** Matches nearly all paths: media URLs, and short paths without percent-encoding and authority. A matching path is too short for a token. */
const plainPath = /^\/(?:media\/[a-z0-9]{1,28}(?:\.[a-z0-9]{1,8})?|(?!media\/)[^%?#]{0,37})$/

/**
 * The path without query and fragment, percent-encoded ones included, and with tokens and signatures redacted (docs/interface.md O3, A5, H11).
 * A query may be written with its separators only.
 */
function loggedPath(url: string): string {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  if (plainPath.test(path) && !/mbk[ts]_/i.test(path)) return path
  // A request target in absolute form may contain a user name and a password.
  const [withoutQuery = ''] = path
    .replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
    .split(/[?#&;]|%(?:25)*(?:3f|23|26|3b)/i, 1)
  // The name in the URL of bytes is that of a file.
  const redacted = redactTokens(withoutQuery.replace(/^(\/+media\/[^/]*\/).+$/s, '$1…'))
  return redacted.length > maxLoggedPath ? `${redacted.slice(0, maxLoggedPath)}…` : redacted
}
