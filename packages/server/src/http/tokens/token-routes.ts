import { describeToken } from '../../access/describe-token.ts'
import { grantToken } from '../../access/grant-token.ts'
import { listTokens } from '../../access/list-tokens.ts'
import { revokeToken } from '../../access/revoke-token.ts'
import { rotateToken } from '../../access/rotate-token.ts'
import { parseTokenListQuery } from '../../core/token-list-query.ts'
import type { HttpContext } from '../context.ts'
import { type Exchange, type Reply, type Route, route } from '../routing/route.ts'
import { newTokenMembers, readNewToken, readRotation, rotationMembers } from './token-body.ts'
import * as descriptions from './token-descriptions.ts'

const noStore = { 'cache-control': 'no-store' }

/** `/api/token` and `/api/tokens` (docs/interface.md T1 to T8). */
export function tokenRoutes({ authorize, readAuthorizedJson, catalog }: HttpContext): readonly Route[] {
  async function describe(exchange: Exchange): Promise<Reply> {
    const grant = await authorize(exchange, null)
    return { status: 200, headers: noStore, json: await describeToken(catalog, grant) }
  }

  async function list(exchange: Exchange): Promise<Reply> {
    const grant = await authorize(exchange, 'tokens:manage')
    const tokens = await listTokens(catalog, grant, parseTokenListQuery(exchange.query))
    return { status: 200, headers: noStore, json: tokens }
  }

  async function create(exchange: Exchange): Promise<Reply> {
    const { caller, body } = await readAuthorizedJson(exchange, 'tokens:manage', newTokenMembers)
    const now = Date.now()
    const created = await grantToken(catalog, caller, readNewToken(body, now), now, caller.actor)
    return { status: 201, headers: noStore, json: created }
  }

  async function revoke(exchange: Exchange<'id'>): Promise<Reply> {
    const grant = await authorize(exchange, 'tokens:manage')
    await revokeToken(catalog, grant, exchange.params.id, Date.now(), grant.actor)
    return { status: 204 }
  }

  async function rotate(exchange: Exchange<'id'>): Promise<Reply> {
    const { caller, body } = await readAuthorizedJson(exchange, 'tokens:manage', rotationMembers)
    const now = Date.now()
    const rotation = readRotation(body, now)
    const created = await rotateToken(catalog, caller, exchange.params.id, rotation, now, caller.actor)
    return { status: 201, headers: noStore, json: created }
  }

  const readsBody = true
  return [
    route('GET', '/api/token', descriptions.describeToken, describe),
    route('GET', '/api/tokens', descriptions.listTokens, list),
    route('POST', '/api/tokens', descriptions.createToken, create, { readsBody }),
    route('DELETE', '/api/tokens/:id', descriptions.revokeToken, revoke),
    route('POST', '/api/tokens/:id/rotate', descriptions.rotateToken, rotate, { readsBody }),
  ]
}
