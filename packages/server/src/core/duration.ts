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
