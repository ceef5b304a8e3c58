import type { ParameterFault } from '../core/faults.ts'
import type { JsonObject } from '../core/json.ts'
import { parseTokenListQuery } from '../core/queries.ts'
import { isNote, maxNote, noteRule, readLimits } from '../core/quotas.ts'
import { parseTimestamp } from '../core/times.ts'
import {
  defaultOverlap,
  isScope,
  isTokenName,
  maxOverlap,
  maxTokenName,
  type Scope,
  scopes,
  tokenNameRule,
} from '../core/tokens.ts'
import { jsonBodyProblems, malformed } from '../http/bodies.ts'
import type { HttpContext } from '../http/context.ts'
import { createSerializer } from '../http/dispatcher.ts'
import { noStore } from '../http/headers.ts'
import { collectTexts, listReply } from '../http/list-texts.ts'
import { exampleBase, type OperationDescription } from '../http/openapi/description.ts'
import { sampleCreatedToken, sampleLimitedToken, sampleToken } from '../http/openapi/samples.ts'
import {
  CreatedToken,
  NewTokenBody,
  TokenList,
  TokenListQuery,
  TokenObject,
  TokenParams,
  TokenRotation,
} from '../http/openapi/token-schemas.ts'
import { type Exchange, type Reply, type Route, route } from '../http/route.ts'
import type { GrantedToken } from '../storage/catalog/tokens.ts'
import { describeToken, grantToken, listTokens, revokeToken, rotateToken, tokenUnknown } from './tokens.ts'

/** `/api/token` and `/api/tokens` (docs/interface.md T1 to T8). */
export function tokenRoutes({
  authorize,
  readAuthorizedJson,
  catalog,
  turns,
}: HttpContext): readonly Route[] {
  const serialize = createSerializer({ schema: TokenList.properties.data.items })

  async function describe(exchange: Exchange): Promise<Reply> {
    const described =
      (await describeToken(catalog, await authorize(exchange, null))) ??
      // The row of a new user is still being added.
      (await describeToken(catalog, await authorize(exchange, null, { isCounted: true, isSettled: true })))
    if (described === null) throw tokenUnknown()
    return { status: 200, headers: noStore, json: described }
  }

  async function list(exchange: Exchange): Promise<Reply> {
    const grant = await authorize(exchange, 'tokens:manage')
    await turns.next(grant.tokenId)
    const { data, next_cursor } = await listTokens(catalog, grant, parseTokenListQuery(exchange.query))
    const { texts, add } = collectTexts(serialize, () => turns.next(grant.tokenId))
    const added = await add(data)
    return listReply(noStore, texts, {
      next_cursor: added < data.length ? (data[added - 1]?.id ?? null) : next_cursor,
    })
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
    route('GET', '/api/token', describeTokenDescription, describe),
    route('GET', '/api/tokens', listTokensDescription, list),
    route('POST', '/api/tokens', createTokenDescription, create, { readsBody }),
    route('DELETE', '/api/tokens/:id', revokeTokenDescription, revoke),
    route('POST', '/api/tokens/:id/rotate', rotateTokenDescription, rotate, { readsBody }),
  ]
}

const newTokenMembers = ['scopes', 'name', 'expires_at', 'note', 'limits'] as const
const rotationMembers = ['expires_at', 'overlap_seconds'] as const

/** Reads the body of a request that creates a token (docs/interface.md T6). Throws Fault `json-malformed`. */
function readNewToken(
  body: JsonObject,
  now: number,
): Pick<GrantedToken, 'name' | 'scopes' | 'expiresAt' | 'note' | 'limits'> {
  const faults: ParameterFault[] = []
  const names = readScopes(body['scopes'])
  if (names === null)
    faults.push({
      parameter: 'scopes',
      detail: `An array of 1 or more of: ${scopes.join(', ')}.`,
      accepted: scopes,
    })
  const { name = '' } = body
  if (!isName(name))
    faults.push({ parameter: 'name', detail: tokenNameRule, maximum: maxTokenName, unit: 'characters' })
  const expiresAt = readExpiry(body['expires_at'] ?? null, now)
  if (expiresAt === undefined) faults.push(expiryFault)
  const note = body['note'] ?? null
  const isValidNote = note === null || (typeof note === 'string' && isNote(note))
  if (!isValidNote) faults.push({ parameter: 'note', detail: noteRule, maximum: maxNote, unit: 'characters' })
  const given = body['limits'] ?? null
  const read = given === null ? null : readLimits(given)
  const limits = read?.limits ?? null
  faults.push(...(read?.faults ?? []))
  if (limits !== null && names?.includes('tokens:manage')) faults.push(limitedManagerFault)
  if (names === null || !isName(name) || expiresAt === undefined || !isValidNote || faults.length > 0)
    throw malformed(faults)
  return { name, scopes: names, expiresAt, note, limits }
}

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

/** Such a token could create one without limits. */
const limitedManagerFault: ParameterFault = {
  parameter: 'limits',
  detail: 'A token with limits cannot have the scope tokens:manage.',
}

/** Null if the value is not a list of scopes. */
function readScopes(value: unknown): readonly Scope[] | null {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isScopeName)) return null
  return scopes.filter((scope) => value.includes(scope))
}

const isScopeName = (value: unknown): value is Scope => typeof value === 'string' && isScope(value)
const isName = (value: unknown): value is string => typeof value === 'string' && isTokenName(value)
const isOverlap = (value: unknown): value is number =>
  Number.isInteger(value) && typeof value === 'number' && value >= 0 && value <= maxOverlap

/** The last time that RFC 3339 can express in UTC. Milliseconds since 1970. */
const lastTime = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Milliseconds since 1970; null for no expiry, undefined if the value is neither a future time nor null. */
function readExpiry(value: unknown, now: number): number | null | undefined {
  if (value === null) return null
  const time = typeof value === 'string' ? parseTimestamp(value) : null
  return time !== null && time > now && time <= lastTime ? time : undefined
}

const expiryFault: ParameterFault = {
  parameter: 'expires_at',
  detail: 'A time of RFC 3339 in the future, such as 2030-05-01T00:00:00Z, or null.',
}

const describeTokenDescription: OperationDescription = {
  operationId: 'describeToken',
  tag: 'Tokens',
  summary: 'Get the token’s properties',
  description:
    'Returns the bucket, the scopes, the expiry and the limits of the request’s token, and what is left of them, never the token or its hash.',
  rules: 'T1 to T3, T9',
  needs: 'any token',
  responses: {
    200: {
      description: 'The token.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: TokenObject,
          examples: {
            'read-only': sampleToken,
            'with limits': sampleLimitedToken,
          },
        },
      },
    },
  },
  problems: [],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/token`,
}

const listTokensDescription: OperationDescription = {
  operationId: 'listTokens',
  tag: 'Tokens',
  summary: 'List the tokens of the bucket',
  description: 'Returns the properties of the bucket’s tokens, also of expired and revoked ones.',
  rules: 'T4',
  needs: 'tokens:manage',
  query: TokenListQuery,
  responses: {
    200: {
      description: 'The tokens.',
      headers: ['Cache-Control'],
      content: {
        'application/json': {
          schema: TokenList,
          examples: {
            'one token': {
              data: [{ ...sampleToken, last_used_at: '2026-11-20T08:00:00.000Z', revoked_at: null }],
              next_cursor: null,
            },
          },
        },
      },
    },
  },
  problems: ['parameter-malformed', 'cursor-malformed'],
  curl: `curl -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/tokens`,
}

const createTokenDescription: OperationDescription = {
  operationId: 'createToken',
  tag: 'Tokens',
  summary: 'Create a token',
  description:
    'Creates a token of the same bucket. Its scopes are among those of the request’s token. Only this response has the token itself. A token with limits uploads only what they permit.',
  rules: 'T6, T9',
  needs: 'tokens:manage',
  body: {
    description: 'The properties of the token.',
    content: {
      'application/json': {
        schema: NewTokenBody,
        examples: {
          'read-only, until 2030': {
            name: 'backup',
            scopes: ['media:read'],
            expires_at: '2030-01-01T00:00:00Z',
          },
          'for 20 pictures': {
            name: sampleLimitedToken.name,
            scopes: ['media:write'],
            note: sampleLimitedToken.note,
            limits: { max_items: 20, max_bytes: 500_000_000, types: ['image/*'], item_days: 90 },
          },
        },
      },
    },
  },
  responses: {
    201: {
      description: 'Created.',
      headers: ['Cache-Control'],
      content: {
        'application/json': { schema: CreatedToken, examples: { 'read-only': sampleCreatedToken } },
      },
    },
  },
  problems: [...jsonBodyProblems, 'storage-full'],
  curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"name": "backup", "scopes": ["media:read"]}' ${exampleBase}/api/tokens`,
}

const revokeTokenDescription: OperationDescription = {
  operationId: 'revokeToken',
  tag: 'Tokens',
  summary: 'Revoke a token',
  description:
    'Every later request with the token gets a 401 problem. A token can revoke itself. Repeated requests get the same response.',
  rules: 'T7',
  needs: 'tokens:manage',
  path: TokenParams,
  responses: { 204: { description: 'Revoked.' } },
  problems: ['managed-token-unknown', 'storage-full'],
  curl: `curl -X DELETE -H "Authorization: Bearer $TOKEN" ${exampleBase}/api/tokens/${sampleCreatedToken.id}`,
}

const rotateTokenDescription: OperationDescription = {
  operationId: 'rotateToken',
  tag: 'Tokens',
  summary: 'Replace a token',
  description: `Creates a token with the name and the scopes of this one, which remains valid for the overlap: time to give the new
token to its users. A token can replace itself. The token of the request must have all scopes of the replaced one.`,
  rules: 'T8',
  needs: 'tokens:manage',
  path: TokenParams,
  body: {
    description: 'How the token is replaced.',
    content: {
      'application/json': {
        schema: TokenRotation,
        examples: { 'an overlap of one hour': { overlap_seconds: 3600, expires_at: '2030-01-01T00:00:00Z' } },
      },
    },
  },
  responses: {
    201: {
      description: 'The new token.',
      headers: ['Cache-Control'],
      content: {
        'application/json': { schema: CreatedToken, examples: { 'read-only': sampleCreatedToken } },
      },
    },
  },
  problems: [...jsonBodyProblems, 'managed-token-unknown', 'managed-token-inactive', 'storage-full'],
  curl: `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
  -d '{"expires_at": null}' ${exampleBase}/api/tokens/${sampleCreatedToken.id}/rotate`,
}
