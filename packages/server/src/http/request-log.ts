import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Metrics } from './metrics.ts'

/** One line of log and one observation for each request, answered or given up by its client (docs/interface.md O3). */
export function recordRequests(app: FastifyInstance, metrics: Metrics): void {
  const record = (request: FastifyRequest, reply: FastifyReply, message: string) => {
    const { method, url, routeOptions } = request
    const query = url.indexOf('?')
    const path = query === -1 ? url : url.slice(0, query)
    const status = reply.statusCode
    metrics.duration.observe(
      { method, route: routeOptions.url ?? 'unknown', status },
      reply.elapsedTime / 1000,
    )
    request.log.info({ method, path, status, ms: Math.round(reply.elapsedTime * 10) / 10 }, message)
  }
  app.addHook('onResponse', async (request, reply) => record(request, reply, 'answered'))
  app.addHook('onRequestAbort', async (request) => {
    request.log.info({ method: request.method, path: request.url.split('?', 1)[0] }, 'given up by the client')
  })
}
