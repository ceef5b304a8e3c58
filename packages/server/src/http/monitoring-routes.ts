import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { Fault } from '../core/fault.ts'
import type { Readiness } from '../media/check-readiness.ts'
import type { Metrics } from './metrics/metrics.ts'
import { exampleBase, type OperationDescription, routeOptions } from './openapi/operation-description.ts'
import { Health, ReadinessObject, ReadinessQuery } from './openapi/schemas.ts'

interface Parts {
  readonly readiness: () => Promise<Readiness>
  readonly isStopping: () => boolean
  readonly metrics: Metrics
}

/** `/healthz`, `/readyz`, `/metrics` (docs/interface.md O1, O2). */
export function monitoringRoutes(app: FastifyInstance, { readiness, isStopping, metrics }: Parts): void {
  const noStore = { 'cache-control': 'no-store' }
  const scrape = createScrape(metrics.registry)

  app.get('/healthz', routeOptions(live), async (_request, reply) =>
    reply.headers(noStore).send({ status: 'ok' }),
  )

  app.get<{ Querystring: { writes?: unknown } }>('/readyz', routeOptions(ready), async (request, reply) => {
    if (isStopping()) throw new Fault('shutting-down', 'The service is stopping.')
    const { reads, writes, reasons } = await readiness()
    if (!reads || (!writes && request.query.writes !== undefined))
      throw new Fault(
        'not-ready',
        `The service cannot serve ${reads ? 'uploads' : 'its data'}: ${reasons.join(', ')}.`,
      )
    return reply.headers(noStore).send({ status: 'ready', reads, writes, reasons: [...reasons] })
  })

  app.get('/metrics', routeOptions(metricsDescription), async (_request, reply) =>
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

const live: OperationDescription = {
  operationId: 'live',
  tag: 'Operations',
  summary: 'Whether the process lives',
  description: 'Answers as long as the process does, also while it stops.',
  rules: 'O1',
  needs: 'nothing',
  unlimited: true,
  responses: {
    200: {
      description: 'It lives.',
      headers: ['Cache-Control'],
      content: { 'application/json': { schema: Health, examples: { alive: { status: 'ok' } } } },
    },
  },
  problems: [],
  curl: `curl ${exampleBase}/healthz`,
}

const ready: OperationDescription = {
  operationId: 'ready',
  tag: 'Operations',
  summary: 'Whether it can serve',
  description: `Whether listings and bytes can be served (\`reads\`), and uploads too (\`writes\`). A 503 where reads cannot be
served or the service is stopping; with the query parameter \`writes\` also where uploads cannot. Deletes are served on a full disk.`,
  rules: 'O1',
  needs: 'nothing',
  unlimited: true,
  query: ReadinessQuery,
  responses: {
    200: {
      description: 'It can serve.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: ReadinessObject,
          examples: {
            ready: { status: 'ready', reads: true, writes: true, reasons: [] },
            'full disk': { status: 'ready', reads: true, writes: false, reasons: ['disk-full'] },
          },
        },
      },
    },
  },
  problems: ['shutting-down', 'not-ready'],
  curl: `curl ${exampleBase}/readyz`,
}

const metricsDescription: OperationDescription = {
  operationId: 'metrics',
  tag: 'Operations',
  summary: 'Metrics',
  description: 'For Prometheus, in its text format. Holds numbers alone, no name of an item or a bucket.',
  rules: 'O2',
  needs: 'nothing',
  unlimited: true,
  responses: {
    200: {
      description: 'The metrics.',
      headers: ['Cache-Control'],
      content: { 'text/plain': { schema: Type.String() } },
    },
  },
  problems: [],
  curl: `curl ${exampleBase}/metrics`,
}
