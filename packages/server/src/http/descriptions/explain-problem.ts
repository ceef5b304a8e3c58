import { Type } from 'typebox'
import { type Description, exampleBase } from '../openapi/description.ts'
import { ProblemParams } from '../schemas.ts'

export const explainProblem: Description = {
  operationId: 'explainProblem',
  tag: 'Operations',
  summary: 'Explain a problem',
  description:
    'Where the `type` of a problem leads: what causes it and what to do. Plain text, or HTML for whoever accepts that.',
  rules: 'P2',
  needs: 'nothing',
  path: ProblemParams,
  answers: {
    200: {
      description: 'The cause and the cure.',
      headers: ['Cache-Control', 'Vary', 'Content-Security-Policy', 'X-Content-Type-Options'],
      content: {
        'text/plain': { schema: Type.String() },
        'text/html': { schema: Type.String() },
      },
    },
  },
  problems: ['route-unknown'],
  curl: `curl ${exampleBase}/problems/page-malformed`,
}
