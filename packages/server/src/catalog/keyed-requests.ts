import { Fault } from '../core/fault.ts'
import type { NewMedia } from './records.ts'

/** Throws Fault `idempotency-key-reused` unless both requests with one key have the same content. */
export function requireSameFingerprint(first: Uint8Array, later: Uint8Array): void {
  if (!Buffer.from(first).equals(later))
    throw new Fault('idempotency-key-reused', 'This Idempotency-Key was used for other files; use a new one.')
}

/** The items of a request as JSON, with hashes in hexadecimal digits. */
export const serializeItems = (items: readonly NewMedia[]): string =>
  JSON.stringify(
    items.map((item) => ({ ...item, sha256: item.sha256 && Buffer.from(item.sha256).toString('hex') })),
  )
