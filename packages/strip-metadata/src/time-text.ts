import { UnreadableFile } from './pieces.ts'

/** When a picture or a video was taken. */
export interface TakenTime {
  /** What the clock of the camera showed, in milliseconds since 1970 as if that clock were UTC. */
  readonly time: number
  /** The minutes by which this clock was ahead of UTC; null if the file does not state them. */
  readonly offset: number | null
}

/** The text in bytes from a position on, without what follows its end. */
export const cleanText = (bytes: Buffer, start = 0): string =>
  bytes.toString('latin1', start).replace(/\0.*/s, '').trim()

/** A date of Exif, XMP or QuickTime, of which the last parts may be missing, and a time. */
const shape =
  /^(\d{4})(?:[:./-](\d\d?)(?:[:./-](\d\d?)(?:[ T]+(\d\d?):(\d\d?)(?::(\d\d?)(?:[.,](\d*))?)?)?)?)?\s*(Z|UTC|[+-]\d\d?(?::?\d\d)?)?$/i

/**
 * Reads a time; null if the text states none, or none that exists. A date alone is its first moment, as are a month and a year. Throws
 * UnreadableFile if the text has another form, and so may state a time.
 */
export function parseTimeText(text: string): TakenTime | null {
  // Clocks that are not set write zeros or spaces.
  if (!/[1-9]/.test(text)) return null
  const parts = shape.exec(text.replace(/[\s:]+$/, ''))
  if (parts === null) throw new UnreadableFile(`a time has an unknown form`)
  const [year = 0, month, date, hour = 0, minute = 0, second = 0] = parts.slice(1, 7).map(numberOf)
  const fraction = Number((parts[7] ?? '').slice(0, 3).padEnd(3, '0'))
  const zone = parts[8] ?? ''
  // Programs write 00 for a month or a day that is not known. Android writes the hour after midnight as 24, and 60 is a leap second.
  const day = Date.UTC(year, (month || 1) - 1, date || 1)
  const isDate = startsWith(day, [year, month || 1, date || 1]) && (month !== 0 || !date)
  if (!isDate || hour > 24 || minute > 59 || second > 60) return null
  const time = day + (((hour % 24) * 60 + minute) * 60 + second) * 1000 + fraction
  return { time, offset: parseOffset(zone) }
}

const numberOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text)

/** False for a day that does not exist, such as February 30, which becomes one of the next month. */
const startsWith = (time: number, [year, month, date]: readonly [number, number, number]): boolean => {
  const read = new Date(time)
  return read.getUTCFullYear() === year && read.getUTCMonth() + 1 === month && read.getUTCDate() === date
}

/** The largest offset of a time zone. Minutes. */
const maxOffset = 14 * 60

/** The minutes by which a clock is ahead of UTC; null if the text states none that a zone has. */
export function parseOffset(text: string): number | null {
  if (/^(?:Z|UTC)$/i.test(text)) return 0
  const [, sign, hours, minutes = '0'] = /^([+-])(\d\d?)(?::?([0-5]\d))?$/.exec(text) ?? []
  const offset = Number(hours) * 60 + Number(minutes)
  if (!(offset <= maxOffset)) return null
  return sign === '-' && offset > 0 ? -offset : offset
}
