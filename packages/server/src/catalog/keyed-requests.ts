import { Fault } from '../core/fault.ts'
import { readNewItem } from './item-columns.ts'
import type { NewMedia } from './records.ts'
import { integerOrNull, type Row } from './rows.ts'

/** Throws Fault `idempotency-key-reused` unless both requests with one key have the same content. */
export function requireSameFingerprint(first: Uint8Array, later: Uint8Array): void {
  if (!Buffer.from(first).equals(later))
    throw new Fault('idempotency-key-reused', 'This Idempotency-Key was used for other files; use a new one.')
}

/** Reads an item of a repeated request: the columns of `readNewItem`, and its expiry in this column. */
export function readKeyedItem(row: Row, expiryColumn: number): NewMedia {
  const expiresAt = integerOrNull(row, expiryColumn)
  return { ...readNewItem(row), ...(expiresAt === null ? {} : { expiresAt }) }
}

/** The items of a request as JSON, with hashes in hexadecimal digits. */
export const serializeItems = (items: readonly NewMedia[]): string =>
  JSON.stringify(
    items.map((item) => ({ ...item, sha256: item.sha256 && Buffer.from(item.sha256).toString('hex') })),
  )
