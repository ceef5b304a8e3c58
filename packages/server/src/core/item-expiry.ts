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

/**
 * Identifies a state of the lists of a bucket: its revision, and how many of its items have expired since and are not removed yet. They
 * expire in the order of their times, so their number identifies them.
 */
export const listState = ({
  revision,
  expired,
}: {
  readonly revision: number
  readonly expired: number
}): string => (expired === 0 ? `${revision}` : `${revision}-${expired}`)

/** The last time that RFC 3339 can express. */
const latest = Date.UTC(9999, 11, 31)
