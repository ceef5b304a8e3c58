import { dayOf } from '../core/times.ts'
import { parseUsageListQuery, parseUsageQuery } from '../core/usage-queries.ts'
import type { HttpContext } from '../http/context.ts'
import { noStore } from '../http/headers.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { requireBucketName } from './bucket-operations.ts'
import { findUsage, type listUsageOperation } from './usage-operations.ts'
import * as openapi from './usage-routes.openapi.ts'

/** The operations that these routes call. */
interface UsageOperations {
  readonly listUsage: ReturnType<typeof listUsageOperation>
}

/** `GET /api/buckets/{name}/usage` and `GET /api/usage` (docs/interface.md, Usage). */
export function usageRoutes(http: HttpContext, operations: UsageOperations): readonly Route[] {
  return [
    route('GET', '/api/buckets/:name/usage', openapi.findUsage, (exchange) => showUsage(http, exchange)),
    route('GET', '/api/usage', openapi.listUsage, (exchange) => listUsage(http, operations, exchange)),
  ]
}

async function showUsage(
  { authorizeService, catalog }: HttpContext,
  exchange: Exchange<'name'>,
): Promise<Reply> {
  await authorizeService(exchange, 'buckets:manage')
  const now = Date.now()
  const query = parseUsageQuery(exchange.query, dayOf(now))
  const name = requireBucketName(exchange.params.name)
  return { status: 200, headers: noStore, json: await findUsage(catalog, name, query, now) }
}

async function listUsage(
  { authorizeService, tickQueue }: HttpContext,
  operations: UsageOperations,
  exchange: Exchange,
): Promise<Reply> {
  const { tokenId } = await authorizeService(exchange, 'buckets:manage')
  const now = Date.now()
  const query = parseUsageListQuery(exchange.query, dayOf(now))
  await tickQueue.next(tokenId)
  return { status: 200, headers: noStore, json: await operations.listUsage(query, now) }
}
