import { type Static, Type } from 'typebox'
import { type Scope, scopes } from '../../core/scopes.ts'
import { maxTokenName, tokenNameRule } from '../../core/token-name.ts'
import { defaultOverlap, maxOverlap } from '../../core/token-rotation.ts'
import { limit } from './request-schemas.ts'
import { closedObject, nullable, time } from './schema-shapes.ts'

// The schemas of requests and responses with tokens.

export const TokenListQuery = Type.Object({
  limit: limit('tokens'),
  after: Type.Optional(
    Type.String({
      examples: ['tok_4k9m2x7c1v8q'],
      description: 'The `next_cursor` of the previous response.',
    }),
  ),
})

export const TokenParams = Type.Object({
  id: Type.String({ description: 'The id of a token.', examples: ['tok_4k9m2x7c1v8q'] }),
})
export type TokenParams = Static<typeof TokenParams>

export const NewTokenBody = Type.Object(
  {
    scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: [...scopes] }), {
      minItems: 1,
      uniqueItems: true,
      description: 'Its scopes. The token of the request must have them all.',
    }),
    name: Type.Optional(
      Type.String({ maxLength: maxTokenName, default: '', description: `The name. ${tokenNameRule}` }),
    ),
    expires_at: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        format: 'date-time',
        default: null,
        description: 'The time of expiry (RFC 3339), or null for a token that does not expire.',
      }),
    ),
  },
  { title: 'NewToken', description: 'The properties of a new token.', additionalProperties: false },
)

export const TokenRotation = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: maxOverlap,
        default: defaultOverlap,
        description: 'The seconds for which the replaced token remains valid, unless it expires earlier.',
      }),
    ),
    expires_at: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      format: 'date-time',
      description: 'When the new token expires (RFC 3339), or null if it does not expire.',
    }),
  },
  { title: 'TokenRotation', description: 'How a token is replaced.', additionalProperties: false },
)

const tokenMembers = {
  id: Type.String({ description: 'The id, also for `mediabucket token revoke`.' }),
  name: Type.String({ description: 'The name; may be empty.' }),
  bucket: Type.String({ description: 'The name of its bucket.' }),
  scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: [...scopes] }), {
    uniqueItems: true,
    description: 'Its scopes.',
  }),
  created_at: time('The time of creation, in UTC.'),
  expires_at: nullable(time('The time of expiry, in UTC; null where it does not expire.')),
}

export const TokenObject = closedObject(
  'Token',
  'The properties of a token, without the token itself.',
  tokenMembers,
)

const ManagedToken = closedObject('ManagedToken', 'The properties of a token of the bucket, and its use.', {
  ...tokenMembers,
  last_used_at: nullable(
    time('The time of its last use, in UTC, with the accuracy of an hour; null where it was not used.'),
  ),
  revoked_at: nullable(time('The time of its revocation, in UTC; null where it is not revoked.')),
})

export const TokenList = closedObject('TokenList', 'Tokens of the bucket, without the tokens themselves.', {
  data: Type.Array(ManagedToken, { description: 'The tokens, oldest first.' }),
  next_cursor: nullable(
    Type.String({ description: 'The value of `after` for the next tokens; null if there are none.' }),
  ),
})

export const CreatedToken = closedObject('CreatedToken', 'A new token.', {
  ...tokenMembers,
  token: Type.String({ description: 'The token. Only this response has it.' }),
})
