const shape =
  /^(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d+))?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/**
 * Parses a time of RFC 3339; null if it is malformed. Returns milliseconds since 1970. A fraction of a millisecond is rounded up, so
 * that a comparison with whole milliseconds is exact.
 */
export function parseTimestamp(text: string): number | null {
  const [, date = '', time, fraction = '', offset = ''] = shape.exec(text) ?? []
  const midnight = Date.parse(`${date}T00:00:00Z`)
  // Date.parse accepts February 30.
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date)) return null
  const milliseconds = Number(fraction.slice(0, 3).padEnd(3, '0'))
  const roundedUp = /[1-9]/.test(fraction.slice(3)) ? 1 : 0
  return Date.parse(`${date}T${time}${offset.toUpperCase()}`) + milliseconds + roundedUp
}

const units: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
])

/** Milliseconds of `500ms`, `30s`, `15m`, `12h`, `30d`, `2w`; null when malformed or beyond 2^53 − 1. */
export function parseDuration(text: string): number | null {
  const [, amount, unit] = /^([1-9][0-9]*)(ms|[smhdw])$/.exec(text) ?? []
  const milliseconds = Number(amount) * (units.get(unit ?? '') ?? Number.NaN)
  return Number.isSafeInteger(milliseconds) ? milliseconds : null
}

/** At most `requests` in `window` milliseconds, which are whole seconds. */
export interface RequestRate {
  readonly requests: number
  readonly window: number
}

const longestWindow = 86_400_000

/** The rate of a text such as `600/1m`; null for `off` and `0`; undefined for anything else. */
export function parseRequestRate(text: string): RequestRate | null | undefined {
  if (text === 'off' || text === '0') return null
  const [, amount, duration = ''] = /^([1-9]\d{0,8})\/(\w+)$/.exec(text) ?? []
  const window = parseDuration(duration)
  if (amount === undefined || window === null || window > longestWindow || window % 1000 !== 0)
    return undefined
  return { requests: Number(amount), window }
}

/** A time after `earliest`; undefined for any other text. Milliseconds since 1970. */
export function parseExpiry(text: string, earliest: number): number | undefined {
  const time = parseTimestamp(text)
  return time !== null && time > earliest && time <= lastTime ? time : undefined
}

/** The last time that RFC 3339 can express in UTC. Milliseconds since 1970. */
export const lastTime = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** The most days after which items expire or leave the trash: a century. */
export const maxDays = 36_500

const millisecondsOfDay = 86_400_000

/** The day of a time, in days since 1970 (UTC). */
export const dayOf = (time: number): number => Math.floor(time / millisecondsOfDay)

/** The first millisecond of a day. */
export const startOfDay = (day: number): number => day * millisecondsOfDay

/** The date of a day, such as `2026-11-29`. */
export const formatDay = (day: number): string => new Date(startOfDay(day)).toISOString().slice(0, 10)

/** The day of such a date, from 1970 to 9999; null if it is malformed. */
export function parseDay(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return null
  const time = parseTimestamp(`${text}T00:00:00Z`)
  return time === null || time < 0 ? null : dayOf(time)
}

const texts = (count: number, text: (number: number) => string) =>
  Array.from({ length: count }, (_, number) => text(number))
const digits = (number: number, count: number) => `${number}`.padStart(count, '0')
const minuteTexts = texts(
  1_440,
  (minute) => `${digits(Math.floor(minute / 60), 2)}:${digits(minute % 60, 2)}:`,
)
const secondTexts = texts(60, (second) => `${digits(second, 2)}.`)
const millisecondTexts = texts(1_000, (millisecond) => `${digits(millisecond, 3)}Z`)
/** The day of the last formatted time, in days since 1970, and its text. The items of a list are mostly of few days. */
let [lastDay, lastDate] = [Number.NaN, '']

/** A time in whole milliseconds since 1970 as RFC 3339, in UTC; as Date.toISOString, which formats the day again for each item of a list. */
export function formatTimestamp(time: number): string {
  const day = dayOf(time)
  if (day !== lastDay) {
    lastDate = new Date(startOfDay(day)).toISOString().slice(0, -'00:00:00.000Z'.length)
    lastDay = day
  }
  const ofDay = time - startOfDay(day)
  const seconds = Math.floor(ofDay / 1_000)
  return `${lastDate}${minuteTexts[Math.floor(seconds / 60)]}${secondTexts[seconds % 60]}${millisecondTexts[ofDay % 1_000]}`
}
