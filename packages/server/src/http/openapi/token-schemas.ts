import { Type } from 'typebox'
import { type Scope, scopes } from '../../core/scopes.ts'
import { closedObject, nullable, time } from './schema-shapes.ts'

// The schemas of responses with tokens.

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
