import { Type } from 'typebox'
import { type Description, exampleBase } from '../openapi/description.ts'
import { Health, ReadinessObject, ReadinessQuery } from '../schemas.ts'

export const live: Description = {
  operationId: 'live',
  tag: 'Operations',
  summary: 'Whether the process lives',
  description: 'Answers as long as the process does, also while it stops.',
  rules: 'O1',
  needs: 'nothing',
  unlimited: true,
  answers: {
    200: {
      description: 'It lives.',
      headers: ['Cache-Control'],
      content: { 'application/json': { schema: Health, examples: { alive: { status: 'ok' } } } },
    },
  },
  problems: [],
  curl: `curl ${exampleBase}/healthz`,
}

export const ready: Description = {
  operationId: 'ready',
  tag: 'Operations',
  summary: 'Whether it can serve',
  description: `Whether listings and bytes can be served (\`reads\`), and uploads too (\`writes\`). A 503 where reads cannot be
served or the service is stopping; with the query parameter \`writes\` also where uploads cannot. Deletes are served on a full disk.`,
  rules: 'O1',
  needs: 'nothing',
  unlimited: true,
  query: ReadinessQuery,
  answers: {
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

export const metrics: Description = {
  operationId: 'metrics',
  tag: 'Operations',
  summary: 'Metrics',
  description: 'For Prometheus, in its text format. Holds numbers alone, no name of an item or a bucket.',
  rules: 'O2',
  needs: 'nothing',
  unlimited: true,
  answers: {
    200: {
      description: 'The metrics.',
      headers: ['Cache-Control'],
      content: { 'text/plain': { schema: Type.String() } },
    },
  },
  problems: [],
  curl: `curl ${exampleBase}/metrics`,
}
