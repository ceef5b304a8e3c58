import { Type } from 'typebox'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { ReadinessQuery } from '../http/openapi/parameters.ts'
import { Health, ReadinessObject } from '../http/openapi/schemas.ts'

export const live: OperationDescription = {
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

export const ready: OperationDescription = {
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

export const metrics: OperationDescription = {
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
