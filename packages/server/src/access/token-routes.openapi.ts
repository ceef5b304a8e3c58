import { jsonBodyProblems } from '../http/bodies.ts'
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

export const describeToken: OperationDescription = {
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

export const listTokens: OperationDescription = {
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

export const createToken: OperationDescription = {
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

export const revokeToken: OperationDescription = {
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

export const rotateToken: OperationDescription = {
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
