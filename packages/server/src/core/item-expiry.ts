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

/** The last time that RFC 3339 can express. */
const latest = Date.UTC(9999, 11, 31)
