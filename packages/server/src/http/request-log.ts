import type { ServerResponse } from 'node:http'
import { redactTokens } from '../core/tokens.ts'
import type { Metrics } from './metrics.ts'

/** The logged fields of a request. `route` is the pattern of its path, `url` its path with the query. */
interface LoggedRequest {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly route: string
}

export type RequestLogger = (request: LoggedRequest, response: ServerResponse) => void

/** Writes a line to the destination of the log, or nothing where the log level excludes requests. Never waits. */
export type LineWriter = (line: string) => void

/** Writes one log line and one observation for each request, completed or aborted (docs/interface.md O3). */
export function createRequestLogger(metrics: Metrics, writeLine: LineWriter): RequestLogger {
  return ({ id, method, url, route }, response) => {
    const startedAt = performance.now()
    const observe = metrics.responseObserver(method, route)
    // `close` is emitted exactly once: after the last byte, or when the connection ends before it.
    response.on('close', () => {
      const ms = performance.now() - startedAt
      const status = response.headersSent ? response.statusCode : null
      observe(status, ms / 1000)
      const msg = response.writableFinished ? 'completed' : 'aborted'
      writeLine(formatLine({ id, method, path: loggedPath(url), status, ms, msg }))
    })
  }
}

/** The level `info` of the log. */
const info = 30

/** Formats the line like the logger, which would take twice the time: a tenth of a listing's. */
function formatLine(fields: {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly status: number | null
  readonly ms: number
  readonly msg: string
}): string {
  const { id, method, path, status, ms, msg } = fields
  return `{"level":${info},"time":${Date.now()},"requestId":"${id}","method":"${method}","path":${JSON.stringify(path)},"status":${status},"ms":${Math.round(ms * 10) / 10},"msg":"${msg}"}\n`
}

/** The characters of a path that are logged. */
const maxLoggedPath = 1_024

/** Matches nearly all paths: media URLs, and short paths without percent-encoding and authority. A matching path is too short for a token. */
const plainPath = /^\/(?:media\/[a-z0-9]{1,28}(?:\.[a-z0-9]{1,8})?|[^%?#]{0,37})$/

/**
 * The path without query and fragment, percent-encoded ones included, and with tokens and signatures redacted (docs/interface.md O3, A5, H11).
 * A query may be written with its separators only.
 */
function loggedPath(url: string): string {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  if (plainPath.test(path) && !/mbkt_/i.test(path)) return path
  // A request target in absolute form may contain a user name and a password.
  const [withoutQuery = ''] = path
    .replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
    .split(/[?#&;]|%(?:25)*(?:3f|23|26|3b)/i, 1)
  const redacted = redactTokens(withoutQuery)
  return redacted.length > maxLoggedPath ? `${redacted.slice(0, maxLoggedPath)}…` : redacted
}
