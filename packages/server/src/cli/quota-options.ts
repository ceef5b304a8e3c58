import type { BucketSettings } from '../catalog/records.ts'
import { parseSize } from '../core/size.ts'
import { formatSize } from './client/terminal-text.ts'
import { UsageError } from './command.ts'
import { formatCount } from './table.ts'

export const quotaOptions = {
  'max-items': { type: 'string' },
  'max-bytes': { type: 'string' },
  'trash-days': { type: 'string' },
} as const

export const quotaHelp = `  --max-items N     The maximum number of items, or none for no limit.
  --max-bytes SIZE  The maximum size of all items together, such as 500MB, 10GB or 2GiB, or none for no limit.
  --trash-days N    The days for which deleted items can be restored, or 0 for none. Applies to later deletes.`

/** Returns the limits whose options were given. Throws UsageError. */
export function readQuota(values: {
  readonly 'max-items'?: string | undefined
  readonly 'max-bytes'?: string | undefined
  readonly 'trash-days'?: string | undefined
}): Partial<BucketSettings> {
  const maxItems = parseLimit('--max-items', values['max-items'], parseCount, 'a whole number')
  const maxBytes = parseLimit('--max-bytes', values['max-bytes'], parseSize, 'a size such as 500MB or 10GB')
  const trashDays = values['trash-days'] === undefined ? undefined : parseDays(values['trash-days'])
  return {
    ...(trashDays === undefined ? {} : { trashDays }),
    ...(maxItems === undefined ? {} : { maxItems }),
    ...(maxBytes === undefined ? {} : { maxBytes }),
  }
}

/** Describes the limits that are defined, as in `5 items, no limit on bytes`. */
export function formatQuota({ maxItems, maxBytes, trashDays }: Partial<BucketSettings>): string {
  const texts: string[] = []
  if (maxItems !== undefined)
    texts.push(maxItems === null ? 'no limit on items' : formatCount(maxItems, 'item'))
  if (maxBytes !== undefined) texts.push(maxBytes === null ? 'no limit on bytes' : formatSize(maxBytes))
  if (trashDays !== undefined)
    texts.push(trashDays === 0 ? 'no trash' : `a trash for ${formatCount(trashDays, 'day')}`)
  return texts.join(', ')
}

const parseCount = (text: string): number | null => {
  const value = /^(0|[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : null
}

/** A century. */
const maxDays = 36_500

function parseDays(text: string): number {
  const days = parseCount(text)
  if (days === null || days > maxDays)
    throw new UsageError(`--trash-days takes a whole number from 0 to ${maxDays}, not "${text}"`)
  return days
}

/** Undefined if the option was not given, null for no limit. */
function parseLimit(
  option: string,
  text: string | undefined,
  parse: (text: string) => number | null,
  validValues: string,
): number | null | undefined {
  if (text === undefined) return undefined
  if (text === 'none') return null
  const value = parse(text)
  if (value === null) throw new UsageError(`${option} takes ${validValues} or none, not "${text}"`)
  return value
}
