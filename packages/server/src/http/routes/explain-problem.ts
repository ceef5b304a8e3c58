import type { FastifyInstance } from 'fastify'
import type { FaultCode } from '../../core/fault.ts'
import { Fault } from '../../core/fault.ts'
import { problemKinds } from '../problems.ts'
import { ProblemParams } from '../schemas.ts'

const isCode = (text: string): text is FaultCode => Object.hasOwn(problemKinds, text)

/** `GET /problems/{code}`: where a problem's `type` leads: its cause and its cure (docs/interface.md P2). */
export function explainProblemRoute(app: FastifyInstance): void {
  app.get<{ Params: ProblemParams }>(
    '/problems/:code',
    { schema: { params: ProblemParams } },
    async (request, reply) => {
      const { code } = request.params
      if (!isCode(code)) throw new Fault('route-unknown', 'There is no problem with this code.')
      const { status, title, cause, cure } = problemKinds[code]
      return reply
        .type('text/plain; charset=utf-8')
        .header('cache-control', 'public, max-age=3600')
        .send(`${title} (${status}, ${code})\n\n${cause}\n\n${cure}\n`)
    },
  )
}
