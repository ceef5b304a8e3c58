import type { ServerResponse } from 'node:http'
import type { FastifyBaseLogger } from 'fastify'
import type { Metrics } from './metrics.ts'

/** What is recorded of a request. `route` is the pattern of its path, `url` the path with its query. */
export interface Recorded {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly route: string
}

export type RecordRequest = (request: Recorded, response: ServerResponse) => void

/** One line of log and one observation for each request, answered or cut short (docs/interface.md O3). */
export function createRecordRequest(metrics: Metrics, log: FastifyBaseLogger): RecordRequest {
  return ({ id, method, url, route }, response) => {
    const begun = performance.now()
    const observe = metrics.observerOf(method, route)
    // `close` comes once and always: after the last byte, or when the connection ends before it.
    response.once('close', () => {
      const ms = performance.now() - begun
      const status = response.headersSent ? response.statusCode : null
      observe(status, ms / 1000)
      log.info(
        { requestId: id, method, path: pathOf(url), status, ms: Math.round(ms * 10) / 10 },
        response.writableFinished ? 'answered' : 'cut short',
      )
    })
  }
}

/** Without its query, and without a token that somebody put into the path. */
function pathOf(url: string): string {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  return path.includes('mbkt_') ? path.replace(/mbkt_[0-9a-z]+/gi, 'mbkt_…') : path
}
