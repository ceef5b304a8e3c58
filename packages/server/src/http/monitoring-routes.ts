import { Type } from 'typebox'
import { Fault } from '../core/fault.ts'
import type { HttpContext } from './context.ts'
import type { Metrics } from './metrics/metrics.ts'
import { exampleBase, type OperationDescription } from './openapi/operation-description.ts'
import { ReadinessQuery } from './openapi/request-schemas.ts'
import { Health, ReadinessObject } from './openapi/schemas.ts'
import type { Operations } from './operations.ts'
import { type Exchange, type Reply, type Route, route } from './routing/route.ts'

const headers = { 'cache-control': 'no-store' }

/** `/healthz`, `/readyz` and `/metrics` (docs/interface.md O1, O2). */
export function monitoringRoutes(http: HttpContext, operations: Operations): readonly Route[] {
  const { metrics, isStopping } = http
  const renderMetrics = createMetricsRenderer(metrics)

  async function checkHealth(): Promise<Reply> {
    return { status: 200, headers, json: { status: 'ok' } }
  }

  async function checkReadiness({ query }: Exchange): Promise<Reply> {
    if (isStopping()) throw new Fault('shutting-down', 'The service is stopping.')
    const { reads, writes, reasons } = await operations.readiness()
    if (!reads || (!writes && query['writes'] !== undefined))
      throw new Fault(
        'not-ready',
        `The service cannot serve ${reads ? 'uploads' : 'its data'}: ${reasons.join(', ')}.`,
      )
    return { status: 200, headers, json: { status: 'ready', reads, writes, reasons } }
  }

  async function sendMetrics(): Promise<Reply> {
    const body = await renderMetrics()
    return { status: 200, headers: { ...headers, 'content-type': metrics.registry.contentType }, body }
  }

  return [
    route('GET', '/healthz', healthDescription, checkHealth),
    route('GET', '/readyz', readinessDescription, checkReadiness),
    route('GET', '/metrics', metricsDescription, sendMetrics),
  ]
}

/** How long a rendered text is reused. Milliseconds. */
const metricsMaxAge = 1_000

/** Renders at most once a second: it takes milliseconds, and anyone can request it without a token. */
function createMetricsRenderer(metrics: Pick<Metrics, 'text'>): () => Promise<Buffer> {
  let text: Promise<Buffer> | null = null
  let renderedAt = 0
  return () => {
    const now = performance.now()
    if (text === null || now - renderedAt >= metricsMaxAge) {
      renderedAt = now
      text = metrics.text().then(Buffer.from)
    }
    return text
  }
}

const healthDescription: OperationDescription = {
  operationId: 'live',
  tag: 'Operations',
  summary: 'Check that the process runs',
  description: 'Returns 200 as long as the process runs, also while it stops.',
  rules: 'O1',
  needs: 'nothing',
  unlimited: true,
  responses: {
    200: {
      description: 'The process runs.',
      headers: ['Cache-Control'],
      content: { 'application/json': { schema: Health, examples: { alive: { status: 'ok' } } } },
    },
  },
  problems: [],
  curl: `curl ${exampleBase}/healthz`,
}

const readinessDescription: OperationDescription = {
  operationId: 'ready',
  tag: 'Operations',
  summary: 'Check that the service is ready',
  description: `Returns whether listings and bytes can be served (\`reads\`) and uploads can be stored (\`writes\`). Returns 503 if
reads fail or the service is stopping; with the query parameter \`writes\` also if uploads fail. Deletes work on a full disk.`,
  rules: 'O1',
  needs: 'nothing',
  unlimited: true,
  query: ReadinessQuery,
  responses: {
    200: {
      description: 'The service is ready.',
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
  summary: 'Get the metrics',
  description: 'Returns the metrics in the text format of Prometheus, without names of items or buckets.',
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
