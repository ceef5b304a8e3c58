import { locale } from './locale.ts'

/** A day such as `2026-05-01`, or a month such as `2026-05`, in words, as “Today” if it is; unchanged if it cannot be parsed. */
export function formatDay(day: string, now = new Date()): string {
  const isMonth = day.length === 7
  const date = new Date(`${day}${isMonth ? '-01' : ''}T12:00:00`)
  if (Number.isNaN(date.getTime())) return day
  const distance = Math.round((date.getTime() - new Date(now).setHours(12, 0, 0, 0)) / 86_400_000)
  if (!isMonth && (distance === 0 || distance === -1)) return relativeDay(distance)
  return date.toLocaleDateString(
    locale.current,
    isMonth ? { month: 'long', year: 'numeric' } : { dateStyle: 'full' },
  )
}

/** “Today” or “Yesterday” in the language of the gallery. */
function relativeDay(distance: 0 | -1): string {
  const text = new Intl.RelativeTimeFormat(locale.current, { numeric: 'auto' }).format(distance, 'day')
  return text.charAt(0).toLocaleUpperCase(locale.current) + text.slice(1)
}

/** A time of RFC 3339 in the browser's time zone; unchanged if it cannot be parsed. */
export function formatTime(time: string): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime())
    ? time
    : date.toLocaleString(locale.current, { dateStyle: 'medium', timeStyle: 'short' })
}
