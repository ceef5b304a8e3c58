import { randomBase32 } from './ids.ts'

declare const brand: unique symbol
export type TokenId = string & { readonly [brand]: 'TokenId' }

export const newTokenId = (): TokenId => `tok_${randomBase32(12)}` as TokenId

export const newServiceTokenId = (): TokenId => `svc_${randomBase32(12)}` as TokenId

/** For the row of a user of the issuer, which is among the tokens. */
export const newUserId = (): TokenId => `usr_${randomBase32(12)}` as TokenId

/** Of a token of a bucket, of one of the service, or of a user of the issuer. */
export const isTokenId = (text: string): text is TokenId => /^(?:tok|svc|usr)_[0-9a-z]{12}$/.test(text)

export const isUserId = (id: TokenId): boolean => id.startsWith('usr_')
