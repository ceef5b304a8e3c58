/** Seconds as `0:07`, `12:30` or `1:02:03`. Half seconds are rounded up; no duration is less than a second. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds))
  const two = (number: number) => `${number}`.padStart(2, '0')
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60]
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`
}
