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

/** What the framework's hooks and error handler do, for requests that bypass it: logs, metrics, rate limits, problems. */
export interface DirectServer {
  /** Logs and counts the request. Returns its id, or null where it has been refused. */
  begin(route: DirectRoute, request: IncomingMessage, response: ServerResponse): string | null
  /** `respond` sends the response, or throws before it has begun. */
  run(
    route: DirectRoute,
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    respond: () => Promise<void>,
  ): Promise<void>
}

export function createDirectServer(parts: DirectParts): DirectServer {
  const { logRequest, corsHeaders, limits, reportFault, baseUrl } = parts

  function fail(
    { problemHeaders }: DirectRoute,
    request: IncomingMessage,
    response: ServerResponse,
    id: string,
    error: unknown,
  ): void {
    const fault = reportFault(error, request, id)
    if (response.headersSent) return void response.destroy()
    const { status, headers, body } = problemResponse(fault, baseUrl, id)
    response.writeHead(status, { ...corsHeaders(request.headers), ...problemHeaders, ...headers })
    response.end(body)
  }

  return {
    begin(route, request, response) {
      const { method = '', url = '' } = request
      const id = randomUUID()
      logRequest({ id, method, url, route: route.url }, response)
      const refusal = limits.countAddress(request)
      if (refusal === null) return id
      fail(route, request, response, id, refusal)
      return null
    },

    async run(route, request, response, id, respond) {
      try {
        await respond()
      } catch (error) {
        fail(route, request, response, id, error)
      }
    },
  }
}
