import type { ManagedToken, Token } from '@mediabucket/client'

/** Whether requests with the token are accepted. */
export const isActive = ({ revoked_at, expires_at }: ManagedToken): boolean =>
  revoked_at === null && (expires_at === null || Date.parse(expires_at) > Date.now())

/** Whether the token is that of an upload link: it uploads within limits, and does nothing else. */
export const isLink = ({ limits, scopes }: Token): boolean =>
  limits !== null && scopes.length === 1 && scopes[0] === 'media:write'

/** A person who signed in with the issuer, among the tokens. */
export const isUser = ({ id }: Token): boolean => id.startsWith('usr_')

/** Whether it belongs to no bucket (docs/interface.md ST1), also where it is used for one. */
export const isOfService = ({ id }: Token): boolean => id.startsWith('svc_')

/** The scopes that a token needs to create upload links (docs/interface.md G37). */
export const askScopes = ['tokens:manage', 'media:write'] as const

/** Which of these scopes a token lacks. */
export const missingScopes = ({ scopes }: Token, needed: readonly string[]): readonly string[] =>
  needed.filter((scope) => !scopes.includes(scope))
