import { strings } from '../strings.ts'
import { locale } from './locale.ts'

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
