import { UsageError } from '../command.ts'

/** Seconds of each unit. */
const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }

/** Seconds of a duration such as `12h`; null if the text is none. */
function secondsOf(text: string): number | null {
  const [, amount, unit = ''] = /^([1-9]\d{0,8})([smhdw])$/.exec(text) ?? []
  const seconds = Number(amount) * (units[unit] ?? Number.NaN)
  return Number.isSafeInteger(seconds) ? seconds : null
}

/** Seconds. Throws UsageError. */
export function readDuration(option: string, text: string): number {
  const seconds = secondsOf(text)
  if (seconds !== null) return seconds
  throw new UsageError(`${option} takes a duration such as 30m, 12h or 7d, not "${text}"`)
}

/** Seconds as a duration, in the largest unit of which they are a multiple. */
export function formatDuration(seconds: number): string {
  const [unit, size] = Object.entries(units).findLast(([, size]) => seconds % size === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}

/** RFC 3339 has no later times. */
const latest = Date.UTC(10_000)

/** When something expires: in milliseconds since 1970, or after a duration in milliseconds. */
export type ExpiryOption = { readonly at: number } | { readonly after: number }

/** A duration, or a time with a time zone. Throws UsageError. */
export function readExpiry(option: string, text: string): ExpiryOption {
  const seconds = secondsOf(text)
  if (seconds !== null && Date.now() + seconds * 1_000 < latest) return { after: seconds * 1_000 }
  const at = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN
  if (at > Date.now() && at < latest) return { at }
  throw new UsageError(
    Number.isNaN(at)
      ? `${option} takes a duration such as 12h or 7d, or a time such as 2030-01-31T08:00:00Z, not "${text}"`
      : `${option} takes a time in the future, not "${text}"`,
  )
}
