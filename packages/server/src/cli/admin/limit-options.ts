import { UsageError } from '@mediabucket/cli/command'
import { type Labels, labelRule, parseLabels } from '../../core/item-labels.ts'
import {
  isNote,
  limitsObject,
  maxTypes,
  noteRule,
  parseSize,
  readLimits,
  type TokenLimits,
} from '../../core/quotas.ts'
import { maxDays } from '../../core/times.ts'

/** The options of commands that create tokens with limits, for node:util's parseArgs. */
export const limitOptions = {
  'max-items': { type: 'string' },
  'max-bytes': { type: 'string' },
  'max-file-size': { type: 'string' },
  type: { type: 'string', multiple: true },
  'item-days': { type: 'string' },
  label: { type: 'string', multiple: true },
  note: { type: 'string' },
} as const

export const limitOptionsHelp = `\
  --max-items N       At most N files can be uploaded, also if they are deleted later.
  --max-bytes SIZE    At most SIZE bytes can be uploaded, such as 500MB or 10GB.
  --max-file-size SIZE  A file can have at most SIZE bytes.
  --type TYPES        The types of files, separated by commas: image/*, application/pdf.
  --item-days N       The files expire after N days.
  --label KEY=VALUE   A label of every file; can be repeated.
  --note TEXT         A text for those who use the token, shown by the page of an upload link.`

type LimitValues = Readonly<
  Partial<Record<Exclude<keyof typeof limitOptions, 'type' | 'label'>, string>> & {
    type?: readonly string[]
    label?: readonly string[]
  }
>

/** The limits of the options; null if there are none. Throws UsageError. */
export function limitsOf(values: LimitValues): TokenLimits | null {
  const limits: TokenLimits = {
    maxItems: countOf(values, 'max-items'),
    maxBytes: sizeOf(values, 'max-bytes'),
    maxFileSize: sizeOf(values, 'max-file-size'),
    types: typesOf(values.type),
    itemDays: countOf(values, 'item-days', maxDays),
    labels: labelsOf(values.label),
  }
  return Object.values(limits).every((limit) => limit === null) ? null : limits
}

/** The note of the options; null if there is none. Throws UsageError. */
export function noteOf({ note }: LimitValues): string | null {
  if (note !== undefined && !isNote(note)) throw new UsageError(noteRule)
  return note ?? null
}

function countOf(
  values: LimitValues,
  name: 'max-items' | 'item-days',
  most = Number.MAX_SAFE_INTEGER,
): number | null {
  const text = values[name]
  if (text === undefined) return null
  const count = /^[1-9]\d*$/.test(text) ? Number(text) : Number.NaN
  if (count <= most) return count
  throw new UsageError(
    `--${name} takes a whole number from 1${name === 'item-days' ? ` to ${most}` : ''}, not "${text}"`,
  )
}

function sizeOf(values: LimitValues, name: 'max-bytes' | 'max-file-size'): number | null {
  const text = values[name]
  if (text === undefined) return null
  const size = parseSize(text)
  if (size !== null && size > 0) return size
  throw new UsageError(`--${name} takes a size such as 500MB or 10GB, not "${text}"`)
}

function typesOf(lists: readonly string[] | undefined): readonly string[] | null {
  if (lists === undefined) return null
  const types = lists.flatMap((list) => list.split(',').map((type) => type.trim().toLowerCase()))
  const { limits } = readLimits({ types })
  if (limits !== null) return limits.types
  throw new UsageError(
    `--type takes 1 to ${maxTypes} types such as image/png or image/*, not "${lists.join(',')}"`,
  )
}

function labelsOf(texts: readonly string[] | undefined): Labels | null {
  if (texts === undefined) return null
  const pairs = texts.map((text) => {
    const [key = '', ...rest] = text.split('=')
    return [key, rest.length === 0 ? null : rest.join('=')] as const
  })
  const labels = parseLabels(pairs)
  if (labels == null) throw new UsageError(`--label takes KEY=VALUE, and there may be ${labelRule}`)
  return labels
}

/** The limits in words, for messages; empty for none. */
export const limitTexts = (limits: TokenLimits): string[] =>
  Object.entries(limitsObject(limits)).flatMap(([name, limit]) =>
    limit === null ? [] : [`${name}: ${limitText(limit)}`],
  )

const limitText = (limit: number | readonly string[] | Labels): string => {
  if (typeof limit === 'number') return `${limit}`
  const texts = Array.isArray(limit) ? limit : Object.entries(limit).map(([key, value]) => `${key}=${value}`)
  return texts.join(', ')
}
