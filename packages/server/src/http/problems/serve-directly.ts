import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CorsPolicy } from '../headers/cors.ts'
import type { RequestLimits } from '../limits/request-limits.ts'
import type { RequestLogger } from '../metrics/request-log.ts'
import { problemResponse } from './problem-response.ts'
import type { FaultReporter } from './report-fault.ts'

export interface DirectParts {
  readonly logRequest: RequestLogger
  readonly corsHeaders: CorsPolicy
  readonly limits: Pick<RequestLimits, 'countAddress'>
  readonly reportFault: FaultReporter
  readonly baseUrl: string
}

/** A route that is served without the framework, and the headers of its problems. */
export interface DirectRoute {
  readonly url: string
  readonly problemHeaders: Readonly<Record<string, string>>
}

/** Serves one request: `respond` sends the response, or throws before it has begun. */
export type DirectServer = (
  route: DirectRoute,
  request: IncomingMessage,
  response: ServerResponse,
  respond: (requestId: string) => Promise<void>,
) => Promise<void>

/** What the framework's hooks and error handler do, for requests that bypass it: logs, metrics, rate limits, problems. */
export function createDirectServer(parts: DirectParts): DirectServer {
  const { logRequest, corsHeaders, limits, reportFault, baseUrl } = parts
  return async (route, request, response, respond) => {
    const { method = '', url = '' } = request
    const id = randomUUID()
    logRequest({ id, method, url, route: route.url }, response)
    try {
      const refusal = limits.countAddress(request)
      if (refusal) throw refusal
      await respond(id)
    } catch (error) {
      const fault = reportFault(error, request, id)
      if (response.headersSent) return void response.destroy()
      const { status, headers, body } = problemResponse(fault, baseUrl, id)
      response.writeHead(status, { ...corsHeaders(request.headers), ...route.problemHeaders, ...headers })
      response.end(body)
    }
  }
}
