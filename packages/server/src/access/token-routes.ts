import type { ParameterFault } from '../core/faults.ts'
import type { JsonObject } from '../core/json.ts'
import { parseCursorQuery } from '../core/queries.ts'
import { defaultOverlap, maxOverlap } from '../core/token-rules.ts'
import { malformed } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { noStore } from '../http/headers.ts'
import { itemsText, ListTexts, listReply } from '../http/list-texts.ts'
import { TokenList } from '../http/openapi/token-schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import { expiryFault, newTokenMembers, readExpiry, readNewToken } from './new-tokens.ts'
import { hasServiceToken } from './service-access.ts'
import {
  describeToken,
  grantToken,
  listTokens,
  revokeToken,
  rotateToken,
  tokenUnknown,
} from './token-operations.ts'
import * as openapi from './token-routes.openapi.ts'

interface TokenParts
  extends Pick<
    HttpContext,
    'authorize' | 'authorizeService' | 'readAuthorizedJson' | 'catalog' | 'tickQueue'
  > {
  readonly serialize: ReturnType<typeof createSerializer>
}

/** `/api/token` and `/api/tokens` (docs/interface.md T1 to T8). */
export function tokenRoutes({
  authorize,
  authorizeService,
  readAuthorizedJson,
  catalog,
  tickQueue,
}: HttpContext): readonly Route[] {
  const serialize = createSerializer({ schema: TokenList.properties.data })
  const parts = { authorize, authorizeService, readAuthorizedJson, catalog, tickQueue, serialize }
  const readsBody = true
  return [
    route('GET', '/api/token', openapi.describeToken, (exchange) => describeOwnToken(parts, exchange)),
    route('GET', '/api/tokens', openapi.listTokens, (exchange) => listBucketTokens(parts, exchange)),
    route('POST', '/api/tokens', openapi.createToken, (exchange) => createToken(parts, exchange), {
      readsBody,
    }),
    route('DELETE', '/api/tokens/:id', openapi.revokeToken, (exchange) => revoke(parts, exchange)),
    route('POST', '/api/tokens/:id/rotate', openapi.rotateToken, (exchange) => rotate(parts, exchange), {
      readsBody,
    }),
  ]
}

async function describeOwnToken(
  { authorize, authorizeService, catalog }: TokenParts,
  exchange: Exchange,
): Promise<Reply> {
  const described = hasServiceToken(exchange.request)
    ? await describeToken(catalog, await authorizeService(exchange, null))
    : await describeBucketToken({ authorize, catalog }, exchange)
  if (described === null) throw tokenUnknown()
  return { status: 200, headers: noStore, json: described }
}

async function describeBucketToken(
  { authorize, catalog }: Pick<TokenParts, 'authorize' | 'catalog'>,
  exchange: Exchange,
): ReturnType<typeof describeToken> {
  return (
    (await describeToken(catalog, await authorize(exchange, null))) ??
    // The row of a new user is still being added.
    (await describeToken(catalog, await authorize(exchange, null, { isCounted: true, waits: true })))
  )
}

async function listBucketTokens(
  { authorize, catalog, tickQueue, serialize }: TokenParts,
  exchange: Exchange,
): Promise<Reply> {
  const grant = await authorize(exchange, 'tokens:manage')
  await tickQueue.next(grant.tokenId)
  const { data, next_cursor } = await listTokens(catalog, grant, parseCursorQuery(exchange.query))
  const list = new ListTexts(
    (tokens: typeof data) => itemsText(serialize(tokens)),
    () => tickQueue.next(grant.tokenId),
  )
  const added = await list.add(data)
  return listReply(noStore, list.texts, {
    next_cursor: added < data.length ? (data[added - 1]?.id ?? null) : next_cursor,
  })
}

async function createToken({ readAuthorizedJson, catalog }: TokenParts, exchange: Exchange): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, 'tokens:manage', newTokenMembers)
  const now = Date.now()
  const { request, faults } = readNewToken(body, now)
  if (request === null) throw malformed(faults)
  const created = await grantToken(catalog, caller, request, now, caller.actor)
  return { status: 201, headers: noStore, json: created }
}

async function revoke({ authorize, catalog }: TokenParts, exchange: Exchange<'id'>): Promise<Reply> {
  const grant = await authorize(exchange, 'tokens:manage')
  await revokeToken(catalog, grant, exchange.params.id, Date.now(), grant.actor)
  return { status: 204 }
}

async function rotate({ readAuthorizedJson, catalog }: TokenParts, exchange: Exchange<'id'>): Promise<Reply> {
  const { caller, body } = await readAuthorizedJson(exchange, 'tokens:manage', rotationMembers)
  const now = Date.now()
  const rotation = readRotation(body, now)
  const created = await rotateToken(catalog, caller, exchange.params.id, rotation, now, caller.actor)
  return { status: 201, headers: noStore, json: created }
}

const rotationMembers = ['expires_at', 'overlap_seconds'] as const

/** Reads the body of a request that replaces a token (docs/interface.md T8). Throws Fault `json-malformed`. */
function readRotation(
  body: JsonObject,
  now: number,
): {
  /** Milliseconds. */
  readonly overlap: number
  readonly expiresAt: number | null
} {
  const faults: ParameterFault[] = []
  const expiresAt = readExpiry(body['expires_at'], now)
  if (expiresAt === undefined) faults.push(expiryFault)
  const { overlap_seconds: overlap = defaultOverlap } = body
  if (!isOverlap(overlap))
    faults.push({
      parameter: 'overlap_seconds',
      detail: `An integer from 0 to ${maxOverlap}.`,
      ...{ minimum: 0, maximum: maxOverlap, unit: 'seconds' },
    })
  if (expiresAt === undefined || !isOverlap(overlap)) throw malformed(faults)
  return { overlap: overlap * 1000, expiresAt }
}

const isOverlap = (value: unknown): value is number =>
  Number.isInteger(value) && typeof value === 'number' && value >= 0 && value <= maxOverlap
