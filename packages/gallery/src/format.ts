import { locale } from './strings/locale.ts'
import { strings } from './strings.ts'

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

/** What the clock of a camera showed (`taken_at`), in words; with “UTC” if the file states only that. */
export function formatClock(taken: string): string {
  const text = formatTime(taken.slice(0, 23))
  return taken.endsWith('Z') ? `${text} UTC` : text
}

export type Kind = 'picture' | 'video' | 'audio' | 'pdf' | 'text' | 'archive' | 'file'

const archives = /(?:^|[/+.-])(?:zip|gzip|x-tar|x-bzip2?|x-xz|zstd|x-7z-compressed|vnd\.rar|x-rar)/

/** The kind of a content type, which selects the icon and the viewer. */
export function kindOf(contentType: string): Kind {
  const type = contentType.toLowerCase().split(';', 1)[0]?.trim() ?? ''
  if (type.startsWith('image/')) return 'picture'
  if (type.startsWith('video/')) return 'video'
  if (type.startsWith('audio/')) return 'audio'
  if (type === 'application/pdf') return 'pdf'
  if (type.startsWith('text/') || /[/+](?:json|xml|yaml)$/.test(type)) return 'text'
  if (archives.test(type)) return 'archive'
  return 'file'
}

/** The label of a file's icon: the extension of its name, or else the subtype of its content type. */
export function shortType(filename: string | null, contentType: string): string {
  const extension = /\.([a-z0-9]{1,5})$/i.exec(filename ?? '')?.[1]
  const subtype = contentType
    .split(';', 1)[0]
    ?.split('/')[1]
    ?.replace(/^(?:x-|vnd\.)/, '')
  return (extension ?? (subtype === 'octet-stream' ? '' : (subtype ?? ''))).slice(0, 5).toUpperCase()
}

/** A size in bytes as text, in powers of 1000 like the server's settings. */
export function formatSize(bytes: number): string {
  if (bytes === 1) return strings.byte
  let step = 0
  let amount = bytes
  // 999.5 would be rounded to 1000.
  while (amount >= 999.5 && step < strings.units.length - 1) {
    amount /= 1000
    step += 1
  }
  const digits = step === 0 || amount >= 99.95 ? 0 : 1
  const rounded = Number(amount.toFixed(digits)).toLocaleString(locale.current, { useGrouping: false })
  return `${rounded} ${strings.units[step]}`
}

/** Seconds as `0:07`, `12:30` or `1:02:03`. Half seconds are rounded up; no duration is less than a second. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds))
  const two = (number: number) => `${number}`.padStart(2, '0')
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60]
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`
}
