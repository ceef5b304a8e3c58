import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Metrics } from './metrics.ts'

/** One line of log and one observation for each request, answered or cut short (docs/interface.md O3). */
export function createRecordRequest(metrics: Metrics) {
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const begun = performance.now()
    // `close` comes once and always: after the last byte, or when the connection ends before it.
    reply.raw.once('close', () => {
      const { method, routeOptions } = request
      const ms = performance.now() - begun
      const status = reply.raw.headersSent ? reply.raw.statusCode : null
      metrics.duration.observe(
        { method, route: routeOptions.url ?? 'unknown', status: status ?? 'none' },
        ms / 1000,
      )
      request.log.info(
        { method, path: pathOf(request), status, ms: Math.round(ms * 10) / 10 },
        reply.raw.writableFinished ? 'answered' : 'cut short',
      )
    })
  }
}

/** Without its query, and without a token that somebody put into the path. */
const pathOf = ({ originalUrl }: FastifyRequest): string =>
  (originalUrl.split('?', 1)[0] ?? '').replace(/mbkt_[0-9a-z]+/gi, 'mbkt_…')
