import type { ServerResponse } from 'node:http'
import { redactTokens } from '../../core/redact-tokens.ts'
import type { Metrics } from './metrics.ts'

/** What is recorded of a request. `route` is the pattern of its path, `url` the path with its query. */
export interface LoggedRequest {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly route: string
}

export type RequestLogger = (request: LoggedRequest, response: ServerResponse) => void

/** Where the lines of requests go: the log's own destination, or nowhere where its level is above them. */
export type WriteLine = (line: string) => void

/** One line of log and one observation for each request, answered or cut short (docs/interface.md O3). */
export function createRequestLogger(metrics: Metrics, writeLine: WriteLine): RequestLogger {
  return ({ id, method, url, route }, response) => {
    const begun = performance.now()
    const observe = metrics.responseObserver(method, route)
    // `close` comes once and always: after the last byte, or when the connection ends before it.
    response.on('close', () => {
      const ms = performance.now() - begun
      const status = response.headersSent ? response.statusCode : null
      observe(status, ms / 1000)
      const msg = response.writableFinished ? 'answered' : 'cut short'
      writeLine(lineOf({ id, method, path: pathOf(url), status, ms, msg }))
    })
  }
}

/** The level `info` of the log. */
const info = 30

/** What the logger would write; it takes twice the time, which is a tenth of a listing's. */
function lineOf(about: {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly status: number | null
  readonly ms: number
  readonly msg: string
}): string {
  const { id, method, path, status, ms, msg } = about
  return `{"level":${info},"time":${Date.now()},"requestId":"${id}","method":"${method}","path":${JSON.stringify(path)},"status":${status},"ms":${Math.round(ms * 10) / 10},"msg":"${msg}"}\n`
}

/** Paths that hold no escape, no token and no authority, as nearly all do. */
const plainPath = /^\/[^%?#]{0,37}$/

/** The path without its query and fragment, escaped ones included, and without tokens (docs/interface.md O3, A5). */
function pathOf(url: string): string {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  if (plainPath.test(path) && !/mbkt_/i.test(path)) return path
  // The absolute form of a request-target may name a user and a password.
  const [withoutQuery = ''] = path
    .replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
    .split(/[?#]|%(?:25)*(?:3f|23)/i, 1)
  return redactTokens(withoutQuery)
}
