import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { Fault, type FaultCode } from '../../core/fault.ts'
import { problemKinds } from '../problems/problems.ts'
import { commonMarkToHtml, htmlPage, prefersHtml } from './html.ts'
import { exampleBase, type OperationDescription, routeOptions } from './operation-description.ts'
import { ProblemParams } from './schemas.ts'

const isCode = (text: string): text is FaultCode => Object.hasOwn(problemKinds, text)

/** `GET /problems/{code}`: where a problem's `type` leads: its cause and its cure (docs/interface.md P2). */
export function explainProblemRoute(app: FastifyInstance, vary: string): void {
  app.get<{ Params: ProblemParams }>('/problems/:code', routeOptions(description), async (request, reply) => {
    const { code } = request.params
    if (!isCode(code)) throw new Fault('route-unknown', 'There is no problem with this code.')
    reply.headers({ 'cache-control': 'public, max-age=3600', vary, 'x-content-type-options': 'nosniff' })
    const { status, title, cause, cure } = problemKinds[code]
    if (!prefersHtml(request.headers.accept)) {
      return reply
        .type('text/plain; charset=utf-8')
        .send(`${title} (${status}, ${code})\n\n${cause}\n\n${cure}\n`)
    }
    const body = `<h1>${title}</h1>\n${commonMarkToHtml(`\`${status}\` \`${code}\`\n\n${cause}\n\n${cure}`)}`
    return reply
      .type('text/html; charset=utf-8')
      .header(
        'content-security-policy',
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'",
      )
      .send(htmlPage({ title, body }))
  })
}

const description: OperationDescription = {
  operationId: 'explainProblem',
  tag: 'Operations',
  summary: 'Explain a problem',
  description:
    'Where the `type` of a problem leads: what causes it and what to do. Plain text, or HTML for whoever accepts that.',
  rules: 'P2',
  needs: 'nothing',
  path: ProblemParams,
  responses: {
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
