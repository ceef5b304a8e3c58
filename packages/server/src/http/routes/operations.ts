import type { FastifyInstance } from 'fastify'
import { Fault } from '../../core/fault.ts'
import type { Readiness } from '../../media/readiness.ts'
import { live, metrics as metricsDescription, ready } from '../descriptions/operations.ts'
import type { Metrics } from '../metrics.ts'
import { described } from '../openapi/description.ts'

interface Parts {
  readonly readiness: () => Promise<Readiness>
  readonly isStopping: () => boolean
  readonly metrics: Metrics
}

/** `/healthz`, `/readyz`, `/metrics` (docs/interface.md O1, O2). */
export function operationsRoutes(app: FastifyInstance, { readiness, isStopping, metrics }: Parts): void {
  const noStore = { 'cache-control': 'no-store' }
  const scrape = createScrape(metrics.registry)

  app.get('/healthz', described(live), async (_request, reply) =>
    reply.headers(noStore).send({ status: 'ok' }),
  )

  app.get<{ Querystring: { writes?: unknown } }>('/readyz', described(ready), async (request, reply) => {
    if (isStopping()) throw new Fault('shutting-down', 'The service is stopping.')
    const { reads, writes, reasons } = await readiness()
    if (!reads || (!writes && request.query.writes !== undefined))
      throw new Fault(
        'not-ready',
        `The service cannot serve ${reads ? 'uploads' : 'its data'}: ${reasons.join(', ')}.`,
      )
    return reply.headers(noStore).send({ status: 'ready', reads, writes, reasons: [...reasons] })
  })

  app.get('/metrics', described(metricsDescription), async (_request, reply) =>
    reply
      .headers(noStore)
      .type(metrics.registry.contentType)
      .send(await scrape()),
  )
}

/** How long one text of the metrics is sent. Milliseconds. */
const metricsAge = 1_000

/** At most one text a second: making it takes milliseconds, and needs no token. */
function createScrape(registry: Metrics['registry']): () => Promise<Buffer> {
  let text: Promise<Buffer> | null = null
  let madeAt = 0
  return () => {
    const now = performance.now()
    if (text === null || now - madeAt >= metricsAge) {
      madeAt = now
      text = registry.metrics().then(Buffer.from)
    }
    return text
  }
}
