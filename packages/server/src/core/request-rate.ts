import { parseDuration } from './duration.ts'

/** At most `requests` in `window` milliseconds, which are whole seconds. */
export interface RequestRate {
  readonly requests: number
  readonly window: number
}

const day = 86_400_000

/** The rate of a text such as `600/1m`; null for `off` and `0`; undefined for anything else. */
export function parseRequestRate(text: string): RequestRate | null | undefined {
  if (text === 'off' || text === '0') return null
  const [, amount, duration = ''] = /^([1-9]\d{0,8})\/(\w+)$/.exec(text) ?? []
  const window = parseDuration(duration)
  if (amount === undefined || window === null || window > day || window % 1000 !== 0) return undefined
  return { requests: Number(amount), window }
}
