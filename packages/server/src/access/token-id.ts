import type { TokenId } from '../catalog/records.ts'
import { randomBase32 } from '../core/base32.ts'

export const newTokenId = (): TokenId => `tok_${randomBase32(12)}` as TokenId

/** For the row of a user of the issuer, which is among the tokens. */
export const newUserId = (): TokenId => `usr_${randomBase32(12)}` as TokenId

export const isTokenId = (text: string): text is TokenId => /^(?:tok|usr)_[0-9a-z]{12}$/.test(text)

export const isUserId = (id: TokenId): boolean => id.startsWith('usr_')
