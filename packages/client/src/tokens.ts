import type { CallOptions } from './client-options.ts'
import { acceptJson, followCursors, sendJson } from './json.ts'
import { readNothing } from './responses.ts'
import { type SendSettings, send } from './send.ts'
import {
  arrayOf,
  type Check,
  count,
  countOrNull,
  objectOf,
  optional,
  orNull,
  parse,
  recordOf,
  text,
  textOrNull,
} from './shape.ts'
import type { Endpoints } from './urls.ts'

/** What may be uploaded with a token; null for no limit. Sizes are bytes. */
export interface TokenLimits {
  readonly max_items: number | null
  readonly max_bytes: number | null
  readonly max_file_size: number | null
  /** Types such as `image/png` or `image/*`. */
  readonly types: readonly string[] | null
  /** Days after which the items expire. */
  readonly item_days: number | null
  /** Labels of every item. */
  readonly labels: Readonly<Record<string, string>> | null
}

/** The properties of a token, as on the wire; never the token itself. */
export interface Token {
  readonly id: string
  /** Empty if it has none. */
  readonly name: string
  /** The name of its bucket; null for a token of the service. */
  readonly bucket: string | null
  /** The permitted operations, such as `media:read`. */
  readonly scopes: readonly string[]
  /** RFC 3339, UTC. */
  readonly created_at: string
  /** RFC 3339, UTC; null if it does not expire. */
  readonly expires_at: string | null
  /** A text for those who use the token. */
  readonly note: string | null
  /** Null for a token without limits, as `uploaded` and `left`. */
  readonly limits: TokenLimits | null
  /** What was uploaded with the token, and with those that it has replaced. */
  readonly uploaded: { readonly items: number; readonly bytes: number } | null
  /** What may still be uploaded; null for no limit. */
  readonly left: { readonly items: number | null; readonly bytes: number | null } | null
}

const limitsShape: Check<TokenLimits> = objectOf<TokenLimits>({
  max_items: countOrNull,
  max_bytes: countOrNull,
  max_file_size: countOrNull,
  types: orNull(arrayOf(text)),
  item_days: countOrNull,
  labels: orNull(recordOf(text)),
})

const tokenMembers = {
  id: text,
  name: text,
  bucket: textOrNull,
  scopes: arrayOf(text),
  created_at: text,
  expires_at: textOrNull,
  note: textOrNull,
  limits: orNull(limitsShape),
  uploaded: orNull(objectOf({ items: count, bytes: count })),
  left: orNull(objectOf({ items: countOrNull, bytes: countOrNull })),
}

const tokenShape: Check<Token> = objectOf<Token>(tokenMembers)

/** Fetches the properties of the client's own token. */
export const fetchToken = (
  settings: SendSettings,
  endpoints: Endpoints,
  { signal }: CallOptions,
): Promise<Token> =>
  sendJson(settings, {
    url: endpoints.token,
    signal,
    what: 'a token',
    read: (value) => parse('a token', tokenShape, value),
  })

/** The properties of a token of the bucket, as on the wire, and its last use; never the token itself. */
export interface ManagedToken extends Token {
  readonly bucket: string
  /** RFC 3339, UTC, accurate to an hour; null if the token was never used. */
  readonly last_used_at: string | null
  /** RFC 3339, UTC; null if the token is not revoked. */
  readonly revoked_at: string | null
}

/** A new token. Only its creation returns the token itself. */
export interface CreatedToken extends Token {
  readonly bucket: string
  readonly token: string
  /** With these keys, programs sign requests of the S3 protocol. Left out if they were not asked for. */
  readonly access_key_id?: string | undefined
  readonly secret_access_key?: string | undefined
}

/** The properties of a new token. */
export interface NewToken {
  /** One or more of the scopes of the client's own token. */
  readonly scopes: readonly string[]
  readonly name?: string | undefined
  /** By default the token does not expire. */
  readonly expiresAt?: Date | undefined
  /** A text for those who use the token. */
  readonly note?: string | undefined
  /** What may be uploaded with the token; by default everything that the bucket accepts. */
  readonly limits?: NewTokenLimits | undefined
  /** Whether the result has the keys for the S3 protocol. */
  readonly s3?: boolean | undefined
}

/** The limits of a new token, one or more. Sizes are bytes. */
export interface NewTokenLimits {
  readonly maxItems?: number | undefined
  readonly maxBytes?: number | undefined
  readonly maxFileSize?: number | undefined
  /** Types such as `image/png` or `image/*`. */
  readonly types?: readonly string[] | undefined
  /** Days after which the items expire. */
  readonly itemDays?: number | undefined
  /** Labels of every item; they replace sent ones with the same keys. */
  readonly labels?: Readonly<Record<string, string>> | undefined
}

const limitsBody = ({ maxItems, maxBytes, maxFileSize, types, itemDays, labels }: NewTokenLimits) => ({
  max_items: maxItems,
  max_bytes: maxBytes,
  max_file_size: maxFileSize,
  types,
  item_days: itemDays,
  labels,
})

/** The JSON of a new token. */
export const newTokenBody = ({ scopes, name, expiresAt, note, limits, s3 }: NewToken) => ({
  ...{ scopes, name, expires_at: expiresAt?.toISOString(), note, s3 },
  limits: limits && limitsBody(limits),
})

/** How a token is replaced. */
export interface Rotation extends CallOptions {
  /** Seconds for which the replaced token remains valid, up to 30 days. Default: one day. */
  readonly overlapSeconds?: number | undefined
  /** When the new token expires; null for never. */
  readonly expiresAt: Date | null
}

/** Manages the tokens of the bucket. The client's token needs the scope `tokens:manage`. */
export interface TokenManager {
  /** Iterates over all tokens of the bucket, oldest first, including expired and revoked ones. */
  list(options?: CallOptions): AsyncGenerator<ManagedToken, void, undefined>

  /** Creates a token. It is not retried, because a retry could create a second one. */
  create(token: NewToken, options?: CallOptions): Promise<CreatedToken>

  /** Creates the successor of a token, with the same name, note, scopes and limits. Like `create`, it is not retried. */
  rotate(id: string, options: Rotation): Promise<CreatedToken>

  /** Revokes a token. Rejects with an `AnswerError` of status 404 if the bucket has no such token. */
  revoke(id: string, options?: CallOptions): Promise<void>
}

const managedShape: Check<ManagedToken> = objectOf<ManagedToken>({
  ...tokenMembers,
  bucket: text,
  last_used_at: textOrNull,
  revoked_at: textOrNull,
})
export const createdTokenShape: Check<CreatedToken> = objectOf<CreatedToken>({
  ...tokenMembers,
  bucket: text,
  token: text,
  access_key_id: optional(text),
  secret_access_key: optional(text),
})

export function createTokenManager(settings: SendSettings, { tokens }: Endpoints): TokenManager {
  const urlOf = (id: string) => `${tokens}/${encodeURIComponent(id)}`

  const post = (url: string, body: object, { signal }: CallOptions): Promise<CreatedToken> =>
    sendJson(settings, {
      method: 'POST',
      url,
      json: body,
      repeatable: false,
      signal,
      what: 'a new token',
      read: (value) => parse('a new token', createdTokenShape, value),
    })

  return Object.freeze({
    list: ({ signal }: CallOptions = {}) =>
      followCursors(settings, {
        url: `${tokens}?limit=500`,
        what: 'a list of tokens',
        item: managedShape,
        signal,
      }),

    async create(token: NewToken, options: CallOptions = {}) {
      return await post(tokens, newTokenBody(token), options)
    },

    async rotate(id: string, { overlapSeconds, expiresAt, ...options }: Rotation) {
      const body = {
        overlap_seconds: overlapSeconds,
        expires_at: expiresAt === null ? null : expiresAt.toISOString(),
      }
      return await post(`${urlOf(id)}/rotate`, body, options)
    },

    async revoke(id: string, { signal }: CallOptions = {}) {
      await send(settings, {
        method: 'DELETE',
        url: urlOf(id),
        headers: acceptJson,
        repeatable: true,
        signal,
        read: readNothing,
      })
    },
  })
}
