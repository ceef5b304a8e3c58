import type { HttpContext } from '../http/context.ts'
import { noStore } from '../http/headers.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { listKeys, removeKey, rotateKeys } from './key-operations.ts'
import * as openapi from './key-routes.openapi.ts'

type KeyParts = Pick<HttpContext, 'authorizeService' | 'catalog'>

/** `/api/keys` (docs/interface.md H12). */
export const keyRoutes = (http: HttpContext): readonly Route[] => [
  route('GET', '/api/keys', openapi.listKeys, (exchange) => list(http, exchange)),
  route('POST', '/api/keys', openapi.rotateKeys, (exchange) => rotate(http, exchange)),
  route('DELETE', '/api/keys/:id', openapi.removeKey, (exchange) => remove(http, exchange)),
]

async function list({ authorizeService, catalog }: KeyParts, exchange: Exchange): Promise<Reply> {
  await authorizeService(exchange, 'buckets:manage')
  return { status: 200, headers: noStore, json: { data: await listKeys(catalog) } }
}

async function rotate({ authorizeService, catalog }: KeyParts, exchange: Exchange): Promise<Reply> {
  const { actor } = await authorizeService(exchange, 'buckets:manage')
  return { status: 201, headers: noStore, json: await rotateKeys(catalog, actor) }
}

async function remove({ authorizeService, catalog }: KeyParts, exchange: Exchange<'id'>): Promise<Reply> {
  const { actor } = await authorizeService(exchange, 'buckets:manage')
  await removeKey(catalog, exchange.params.id, actor)
  return { status: 204 }
}
