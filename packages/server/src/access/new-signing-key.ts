import { randomBytes } from 'node:crypto'
import type { SigningKey } from '../catalog/keys.ts'
import { randomBase32 } from '../core/base32.ts'

/** A key of 256 random bits. `now` is in milliseconds since 1970. */
export const newSigningKey = (now: number): SigningKey => ({
  id: randomBase32(12),
  secret: Uint8Array.from(randomBytes(32)),
  createdAt: now,
})
