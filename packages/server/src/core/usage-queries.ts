import { createParameterReader, integerFrom, type ParameterReader, readCursor } from './queries.ts'
import { formatDay, parseDay } from './times.ts'

/** Days for which usage is kept, today included. */
export const keptDays = 400

/** Days of a response without `from`. */
const defaultDays = 30

/** The most buckets of one response: a read sums up to 400 days of each. */
export const maxUsageLimit = 100

/** Days since 1970 (UTC), both inclusive. */
export interface UsageQuery {
  readonly from: number
  readonly to: number
}

/** Reads a date among the days that are kept, up to `last`. */
function readDay(
  { read }: ParameterReader,
  name: string,
  missing: number,
  today: number,
  last = today,
): number {
  const first = today - keptDays + 1
  return read(name, missing, `one date from ${formatDay(first)} to ${formatDay(last)}`, (text) => {
    const day = parseDay(text)
    return day !== null && day >= first && day <= last ? day : null
  })
}

/** The query of `GET /api/buckets/{name}/usage`. Throws Fault `parameter-malformed` (docs/interface.md US10). */
export function parseUsageQuery(values: Readonly<Record<string, unknown>>, today: number): UsageQuery {
  const reader = createParameterReader(values)
  const to = readDay(reader, 'to', today, today)
  const earliest = today - keptDays + 1
  const from = readDay(reader, 'from', Math.max(to - defaultDays + 1, earliest), today, to)
  reader.finish()
  return { from, to }
}

/** The query of `GET /api/usage`. */
export interface UsageListQuery {
  /** Days since 1970 (UTC). */
  readonly day: number
  readonly limit: number
  /** A cursor as sent; null for the start of the list. */
  readonly after: string | null
}

/** Throws Fault `parameter-malformed` (docs/interface.md US11). */
export function parseUsageListQuery(
  values: Readonly<Record<string, unknown>>,
  today: number,
): UsageListQuery {
  const reader = createParameterReader(values)
  const query = {
    day: readDay(reader, 'day', today, today),
    limit: reader.read('limit', maxUsageLimit, integerFrom(1, maxUsageLimit), (text) =>
      /^[1-9]\d{0,2}$/.test(text) && Number(text) <= maxUsageLimit ? Number(text) : null,
    ),
    after: readCursor(reader),
  }
  reader.finish()
  return query
}
