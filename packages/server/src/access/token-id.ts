import type { TokenId } from '../catalog/records.ts'
import { randomBase32 } from '../core/base32.ts'

export const newTokenId = (): TokenId => `tok_${randomBase32(12)}` as TokenId

export const isTokenId = (text: string): text is TokenId => /^tok_[0-9a-z]{12}$/.test(text)
