import type { FastifyInstance } from 'fastify'
import { Fault } from '../../core/fault.ts'
import { live, metrics as metricsDescription, ready } from '../descriptions/operations.ts'
import type { Metrics } from '../metrics.ts'
import { described } from '../openapi/description.ts'

interface Parts {
  /** Throws when the service cannot serve. */
  readonly check: () => Promise<void>
  readonly isStopping: () => boolean
  readonly metrics: Metrics
}

/** `/healthz`, `/readyz`, `/metrics` (docs/interface.md O1, O2). */
export function operationsRoutes(app: FastifyInstance, { check, isStopping, metrics }: Parts): void {
  const noStore = { 'cache-control': 'no-store' }
  const scrape = createScrape(metrics.registry)

  app.get('/healthz', described(live), async (_request, reply) =>
    reply.headers(noStore).send({ status: 'ok' }),
  )

  app.get('/readyz', described(ready), async (_request, reply) => {
    if (isStopping()) throw new Fault('shutting-down', 'The service is stopping.')
    try {
      await check()
    } catch (cause) {
      throw new Fault('shutting-down', 'The service cannot reach its data.', { cause })
    }
    return reply.headers(noStore).send({ status: 'ready' })
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
