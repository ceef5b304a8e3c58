import { maxLabelValue, maxNote, maxTokenName } from '@mediabucket/client/rules'
import { type Static, Type } from 'typebox'
import { maxTypes, noteRule, typePattern } from '../../core/quotas.ts'
import { maxDays } from '../../core/times.ts'
import {
  defaultOverlap,
  maxOverlap,
  type Scope,
  type ServiceScope,
  scopes,
  serviceScopes,
  tokenNameRule,
} from '../../core/token-rules.ts'
import { limit } from './parameters.ts'
import { closedObject, count, nullable, time } from './schemas.ts'

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

const limitMembers = {
  max_items: nullable(
    Type.Integer({
      minimum: 1,
      description: 'The most items that may be uploaded, also if they are deleted later.',
    }),
  ),
  max_bytes: nullable(Type.Integer({ minimum: 1, description: 'The most bytes of all items together.' })),
  max_file_size: nullable(Type.Integer({ minimum: 1, description: 'The most bytes of one file.' })),
  types: nullable(
    Type.Array(Type.String({ pattern: typePattern }), {
      minItems: 1,
      maxItems: maxTypes,
      description:
        'The permitted types, such as `image/png` or `image/*`: those that are detected from the bytes, and other types that are listed by their names, such as `image/svg+xml`.',
    }),
  ),
  item_days: nullable(
    Type.Integer({ minimum: 1, maximum: maxDays, description: 'The days after which the items expire.' }),
  ),
  labels: Type.Unsafe<Record<string, string> | null>({
    type: ['object', 'null'],
    additionalProperties: { type: 'string', maxLength: maxLabelValue },
    description: 'Labels of every item that is uploaded. They replace sent ones with the same keys.',
  }),
}

const TokenLimits = closedObject(
  'TokenLimits',
  'What may be uploaded with a token; null for a token without limits, and for no limit.',
  limitMembers,
)

const NewTokenLimits = Type.Object(
  Object.fromEntries(Object.entries(limitMembers).map(([name, schema]) => [name, Type.Optional(schema)])),
  {
    title: 'NewTokenLimits',
    description: 'The limits of a new token, one or more. Its scopes do not include `tokens:manage`.',
    additionalProperties: false,
  },
)

const UploadedAmount = closedObject(
  'UploadedAmount',
  'What was uploaded with the token; null for a token without limits.',
  {
    items: count('The number of items.'),
    bytes: count('Their bytes.'),
  },
)

const AmountLeft = closedObject(
  'AmountLeft',
  'What may still be uploaded; null for a token without limits, and for no limit.',
  {
    items: nullable(count('The number of items.')),
    bytes: nullable(count('The bytes.')),
  },
)

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
    note: Type.Optional(
      nullable(
        Type.String({ maxLength: maxNote, description: `A text for those who use the token. ${noteRule}` }),
      ),
    ),
    limits: Type.Optional(nullable(NewTokenLimits)),
    s3: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Whether the response has the keys with which programs sign requests of the S3 protocol.',
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

const names = {
  id: Type.String({ description: 'The id, also for `mediabucket token revoke`.' }),
  name: Type.String({ description: 'The name; may be empty.' }),
}

const otherMembers = {
  created_at: time('The time of creation, in UTC.'),
  expires_at: nullable(time('The time of expiry, in UTC; null where it does not expire.')),
  note: nullable(Type.String({ description: 'A text for those who use the token.' })),
  limits: nullable(TokenLimits),
  uploaded: nullable(UploadedAmount),
  left: nullable(AmountLeft),
}

const tokenMembers = {
  ...names,
  bucket: Type.String({ description: 'The name of its bucket.' }),
  scopes: Type.Array(Type.Unsafe<Scope>({ type: 'string', enum: [...scopes] }), {
    uniqueItems: true,
    description: 'Its scopes.',
  }),
  ...otherMembers,
}

export const TokenObject = closedObject('Token', 'The properties of a token, without the token itself.', {
  ...names,
  bucket: nullable(Type.String({ description: 'The name of its bucket; null for a service token.' })),
  scopes: Type.Array(Type.Unsafe<ServiceScope>({ type: 'string', enum: [...serviceScopes] }), {
    uniqueItems: true,
    description: 'Its scopes. `buckets:manage` is one of service tokens only.',
  }),
  ...otherMembers,
})

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
  access_key_id: Type.Optional(
    Type.String({ description: 'The access key for the S3 protocol: the id of the token. Only with `s3`.' }),
  ),
  secret_access_key: Type.Optional(
    Type.String({ description: 'The secret of the access key. Only with `s3`.' }),
  ),
})
