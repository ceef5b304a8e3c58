import type { Quota } from '../core/quota.ts'
import { parseSize } from '../core/size.ts'
import { formatSize } from './client/terminal-text.ts'
import { UsageError } from './command.ts'
import { formatCount } from './table.ts'

export const quotaOptions = { 'max-items': { type: 'string' }, 'max-bytes': { type: 'string' } } as const

export const quotaHelp = `  --max-items N     The maximum number of items, or none for no limit.
  --max-bytes SIZE  The maximum size, such as 500MB, 10GB or 2GiB, or none for no limit.`

/** The limits that were given, and no others. Throws UsageError. */
export function readQuota(values: {
  readonly 'max-items'?: string | undefined
  readonly 'max-bytes'?: string | undefined
}): Partial<Quota> {
  const maxItems = limit('--max-items', values['max-items'], wholeNumber)
  const maxBytes = limit('--max-bytes', values['max-bytes'], parseSize)
  return {
    ...(maxItems === undefined ? {} : { maxItems }),
    ...(maxBytes === undefined ? {} : { maxBytes }),
  }
}

/** For people: `at most 5 items, any number of bytes`. */
export function formatQuota({ maxItems, maxBytes }: Partial<Quota>): string {
  const items =
    maxItems === null
      ? 'any number of items'
      : maxItems !== undefined && `at most ${formatCount(maxItems, 'item')}`
  const bytes =
    maxBytes === null ? 'any number of bytes' : maxBytes !== undefined && `at most ${formatSize(maxBytes)}`
  return [items, bytes].filter((text) => text !== false).join(', ')
}

const wholeNumber = (text: string): number | null => {
  const value = /^(0|[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : null
}

/** Undefined where the option was not given, null for no limit. */
function limit(
  option: string,
  text: string | undefined,
  read: (text: string) => number | null,
): number | null | undefined {
  if (text === undefined) return undefined
  if (text === 'none') return null
  const value = read(text)
  if (value === null) throw new UsageError(`${option} does not take "${text}"; see its --help`)
  return value
}
