import { locale } from './locale.ts'

/** A day such as `2026-05-01` in words; unchanged if it cannot be parsed. */
export function formatDay(day: string): string {
  const date = new Date(`${day}T12:00:00`)
  return Number.isNaN(date.getTime()) ? day : date.toLocaleDateString(locale.current, { dateStyle: 'full' })
}

/** A time of RFC 3339 in the browser's time zone; unchanged if it cannot be parsed. */
export function formatTime(time: string): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime())
    ? time
    : date.toLocaleString(locale.current, { dateStyle: 'medium', timeStyle: 'short' })
}
