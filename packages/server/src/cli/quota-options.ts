import type { Quota } from '../core/quota.ts'
import { parseSize } from '../core/size.ts'
import { formatSize } from './client/terminal-text.ts'
import { UsageError } from './command.ts'
import { formatCount } from './table.ts'

export const quotaOptions = { 'max-items': { type: 'string' }, 'max-bytes': { type: 'string' } } as const

export const quotaHelp = `  --max-items N     The maximum number of items, or none for no limit.
  --max-bytes SIZE  The maximum size of all items together, such as 500MB, 10GB or 2GiB, or none for no limit.`

/** Returns the limits whose options were given. Throws UsageError. */
export function readQuota(values: {
  readonly 'max-items'?: string | undefined
  readonly 'max-bytes'?: string | undefined
}): Partial<Quota> {
  const maxItems = parseLimit('--max-items', values['max-items'], parseCount, 'a whole number')
  const maxBytes = parseLimit('--max-bytes', values['max-bytes'], parseSize, 'a size such as 500MB or 10GB')
  return {
    ...(maxItems === undefined ? {} : { maxItems }),
    ...(maxBytes === undefined ? {} : { maxBytes }),
  }
}

/** Describes the limits that are defined, as in `5 items, no limit on bytes`. */
export function formatQuota({ maxItems, maxBytes }: Partial<Quota>): string {
  const texts: string[] = []
  if (maxItems !== undefined)
    texts.push(maxItems === null ? 'no limit on items' : formatCount(maxItems, 'item'))
  if (maxBytes !== undefined) texts.push(maxBytes === null ? 'no limit on bytes' : formatSize(maxBytes))
  return texts.join(', ')
}

const parseCount = (text: string): number | null => {
  const value = /^(0|[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : null
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
