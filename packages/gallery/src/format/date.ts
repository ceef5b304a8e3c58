import { locale } from './locale.ts'

/** A day such as `2026-05-01`, or a month such as `2026-05`, in words; unchanged if it cannot be parsed. */
export function formatDay(day: string): string {
  const isMonth = day.length === 7
  const date = new Date(`${day}${isMonth ? '-01' : ''}T12:00:00`)
  if (Number.isNaN(date.getTime())) return day
  return date.toLocaleDateString(
    locale.current,
    isMonth ? { month: 'long', year: 'numeric' } : { dateStyle: 'full' },
  )
}

/** A time of RFC 3339 in the browser's time zone; unchanged if it cannot be parsed. */
export function formatTime(time: string): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime())
    ? time
    : date.toLocaleString(locale.current, { dateStyle: 'medium', timeStyle: 'short' })
}
