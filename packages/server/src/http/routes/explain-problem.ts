import type { FastifyInstance } from 'fastify'
import type { FaultCode } from '../../core/fault.ts'
import { Fault } from '../../core/fault.ts'
import { explainProblem as description } from '../descriptions/explain-problem.ts'
import { htmlPage, proseToHtml } from '../html.ts'
import { described } from '../openapi/description.ts'
import { prefersHtml } from '../prefers-html.ts'
import { problemKinds } from '../problems.ts'
import type { ProblemParams } from '../schemas.ts'

const isCode = (text: string): text is FaultCode => Object.hasOwn(problemKinds, text)

/** `GET /problems/{code}`: where a problem's `type` leads: its cause and its cure (docs/interface.md P2). */
export function explainProblemRoute(app: FastifyInstance, vary: string): void {
  app.get<{ Params: ProblemParams }>('/problems/:code', described(description), async (request, reply) => {
    const { code } = request.params
    if (!isCode(code)) throw new Fault('route-unknown', 'There is no problem with this code.')
    reply.headers({ 'cache-control': 'public, max-age=3600', vary, 'x-content-type-options': 'nosniff' })
    const { status, title, cause, cure } = problemKinds[code]
    if (!prefersHtml(request.headers.accept)) {
      return reply
        .type('text/plain; charset=utf-8')
        .send(`${title} (${status}, ${code})\n\n${cause}\n\n${cure}\n`)
    }
    const body = `<h1>${title}</h1>\n${proseToHtml(`\`${status}\` \`${code}\`\n\n${cause}\n\n${cure}`)}`
    return reply
      .type('text/html; charset=utf-8')
      .header(
        'content-security-policy',
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'",
      )
      .send(htmlPage({ title, body }))
  })
}
