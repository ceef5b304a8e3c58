import { Fault } from './fault.ts'
import { parseTimestamp } from './timestamp.ts'

const day = 86_400_000

/** When a new item expires, by the lifetime of its bucket; null for never. */
export const defaultExpiry = (itemDays: number | null, now: number): number | null =>
  itemDays === null ? null : now + itemDays * day

/** A time after `earliest`; undefined for any other text. Milliseconds since 1970. */
export function parseExpiry(text: string, earliest: number): number | undefined {
  const time = parseTimestamp(text)
  return time !== null && time > earliest && time <= latest ? time : undefined
}

/** Counts of expired items end after the next one. Reads pass by each of these items, while all other requests wait. */
export const maxExpired = 10_000

/** Throws Fault `catalog-busy` for a bucket with more expired items than reads pass by (docs/interface.md E2). */
export function requireFewExpired(expired: number): void {
  if (expired > maxExpired) throw tooManyExpired()
}

export const tooManyExpired = (): Fault =>
  new Fault('catalog-busy', 'Many items of this bucket have expired and are being removed; try again.')

/**
 * Identifies a state of the lists of a bucket: its revision, and how many of its items have expired since and are not removed yet. They
 * expire in the order of their times, so their number identifies them. Throws as requireFewExpired.
 */
export function listState({
  revision,
  expired,
}: {
  readonly revision: number
  readonly expired: number
}): string {
  requireFewExpired(expired)
  return expired === 0 ? `${revision}` : `${revision}-${expired}`
}

/** The last time that RFC 3339 can express. */
const latest = Date.UTC(9999, 11, 31)
