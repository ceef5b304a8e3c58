import type { SigningKey } from './key-catalog.ts'
import { bytes, integer, type Row, text } from './rows.ts'

/** Of both engines. */
export const selectKeys = 'SELECT id, secret, created_at FROM signing_keys ORDER BY number'

export const readKey = (row: Row): SigningKey => ({
  id: text(row, 0),
  secret: bytes(row, 1),
  createdAt: integer(row, 2),
})
