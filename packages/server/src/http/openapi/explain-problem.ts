import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { Fault, type FaultCode } from '../../core/fault.ts'
import { namesType } from '../headers/accept.ts'
import { problemKinds } from '../problems/problems.ts'
import { commonMarkToHtml, htmlPage } from './html.ts'
import { exampleBase, type OperationDescription, routeOptions } from './operation-description.ts'
import { ProblemParams } from './request-schemas.ts'

const isCode = (text: string): text is FaultCode => Object.hasOwn(problemKinds, text)

/** `GET /problems/{code}`: the page that a problem's `type` links to, with its cause and remedy (docs/interface.md P2). */
export function explainProblemRoute(app: FastifyInstance, vary: string): void {
  app.get<{ Params: ProblemParams }>('/problems/:code', routeOptions(description), async (request, reply) => {
    const { code } = request.params
    if (!isCode(code)) throw new Fault('route-unknown', 'No problem has this code.')
    reply.headers({ 'cache-control': 'public, max-age=3600', vary, 'x-content-type-options': 'nosniff' })
    const { status, title, cause, cure } = problemKinds[code]
    if (!namesType(request.headers.accept, 'text/html')) {
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
    'Returns the cause of a problem and what to do about it. The `type` of a problem links here. Plain text, or HTML for clients that accept it.',
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
