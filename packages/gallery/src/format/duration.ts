import { strings } from '../strings.ts'

/** A time to wait, as roughly as it is known. */
export function formatDuration(seconds: number): string {
  const { uploads } = strings
  if (seconds < 5) return uploads.fewSeconds
  if (seconds < 55) return uploads.seconds(Math.ceil(seconds / 5) * 5)
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 60) return uploads.minutes(minutes)
  return uploads.hours(Math.floor(minutes / 60), minutes % 60)
}
