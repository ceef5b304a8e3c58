import { maxLabels, maxNote } from '@mediabucket/client/rules'
import { Fault, type ParameterFault } from './faults.ts'
import { changeLabels, type Labels, labelRule, parseLabels } from './item-labels.ts'
import { isObject } from './json.ts'
import { decodeText, essenceOf, storedNameOf } from './stored-type.ts'
import { maxDays } from './times.ts'

// The quota of a bucket, and the limits of a token.

const powers = ['', 'k', 'm', 'g', 't']

/**
 * Bytes of `500`, `10kB`, `5 MB`, `1TB` (powers of 1000) and `5MiB`, `5GiB` (powers of 1024), in any case;
 * null when malformed or beyond 2^53 − 1.
 */
export function parseSize(text: string): number | null {
  const match = /^(0|[1-9][0-9]*)(?: ?(?:([kmgt]?)b|([kmgt])ib))?$/i.exec(text)
  if (match === null) return null
  const [, amount, decimal = '', binary] = match
  const power = powers.indexOf((binary ?? decimal).toLowerCase())
  const bytes = Number(amount) * (binary === undefined ? 1000 : 1024) ** power
  return Number.isSafeInteger(bytes) ? bytes : null
}

/** A number of items, and their total bytes. */
export interface Amount {
  readonly items: number
  readonly bytes: number
}

/** The limits of a bucket; null for no limit. */
export interface Quota {
  readonly maxItems: number | null
  readonly maxBytes: number | null
}

/** `1 item`, `2 items`. */
const countText = (count: number, unit: 'item' | 'byte'): string =>
  `${count} ${unit}${count === 1 ? '' : 's'}`

/** Throws Fault `quota-exceeded`, which names the limit, unless `taken` and `more` together fit (docs/interface.md Q1). */
export function requireWithinQuota({ maxItems, maxBytes }: Quota, taken: Amount, more: Amount): void {
  if (maxItems !== null && more.items > 0 && taken.items + more.items > maxItems)
    throw quotaExceeded('max_items', maxItems, 'item')
  if (maxBytes !== null && more.bytes > 0 && taken.bytes + more.bytes > maxBytes)
    throw quotaExceeded('max_bytes', maxBytes, 'byte')
}

const quotaExceeded = (parameter: string, maximum: number, unit: 'item' | 'byte') => {
  const limit = countText(maximum, unit)
  const fault: ParameterFault = {
    parameter,
    detail: `The bucket may hold ${limit}.`,
    ...{ maximum, unit: `${unit}s` },
  }
  return new Fault('quota-exceeded', `The bucket may hold ${limit}, and this upload would exceed that.`, {
    parameters: [fault],
  })
}

/** What a token may upload (docs/interface.md T9); null for no limit. */
export interface TokenLimits {
  /** Items that are uploaded with the token, also of those that were deleted since. */
  readonly maxItems: number | null
  /** Their bytes. */
  readonly maxBytes: number | null
  /** Bytes. */
  readonly maxFileSize: number | null
  /** Types such as `image/png`, or groups of them such as `image/*`. */
  readonly types: readonly string[] | null
  /** Days after which the items expire. */
  readonly itemDays: number | null
  /** Labels of every item. */
  readonly labels?: Labels | null
}

/** The limits as the API and the catalog have them. */
export interface LimitsObject {
  readonly max_items: number | null
  readonly max_bytes: number | null
  readonly max_file_size: number | null
  readonly types: readonly string[] | null
  readonly item_days: number | null
  readonly labels: Labels | null
}

const limitNames = ['max_items', 'max_bytes', 'max_file_size', 'types', 'item_days', 'labels'] as const

/** What has been uploaded, and what unfinished uploads reserve. */
export interface LimitUse {
  readonly used: Amount
  readonly reserved: Amount
}

/** What may still be uploaded; null for no limit. */
export interface AmountLeft {
  readonly items: number | null
  readonly bytes: number | null
}

/** The most types of a token. */
export const maxTypes = 32

/** What a note of a token must be, for messages. */
export const noteRule = `A note has at most ${maxNote} characters, and no control characters but line breaks.`

export const isNote = (note: string): boolean =>
  note.length <= maxNote && note.isWellFormed() && !/\p{Cc}/u.test(note.replaceAll('\n', ''))

const word = '[a-z0-9][a-z0-9!#$&^_.+-]{0,63}'
export const typePattern = `^${word}/(?:\\*|${word})$`
const typeShape = new RegExp(typePattern)

const isCount = (value: unknown, most = Number.MAX_SAFE_INTEGER): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= most

/** Whether this is a list of types that `types` accepts. */
export const isTypes = (value: unknown): value is readonly string[] =>
  Array.isArray(value) &&
  value.length >= 1 &&
  value.length <= maxTypes &&
  value.every((type) => typeof type === 'string' && typeShape.test(type))

/** Other common names are replaced by the stored ones. */
export const storedTypesOf = (types: readonly string[]): readonly string[] => [
  ...new Set(types.map(storedNameOf)),
]

const isLabels = (value: unknown): value is Labels =>
  isObject(value) && parseLabels(Object.entries(value)) != null

/** What `types` accepts, for messages. */
export const typesRule = {
  detail: `An array of 1 to ${maxTypes} types in lower case, such as image/png or image/*.`,
  ...({ minimum: 1, maximum: maxTypes, unit: 'entries' } as const),
}

const countRule = { detail: 'A whole number from 1, or null.', minimum: 1 }

/** Reads limits as the API receives them. They are null if they have faults. */
export function readLimits(value: unknown): {
  readonly limits: TokenLimits | null
  readonly faults: readonly ParameterFault[]
} {
  const names: ReadonlySet<string> = new Set(limitNames)
  if (!isObject(value) || Object.values(value).every((limit) => limit === null))
    return {
      limits: null,
      faults: [
        {
          parameter: 'limits',
          detail: `An object with one or more of: ${limitNames.join(', ')}.`,
          members: limitNames,
        },
      ],
    }
  const faults: ParameterFault[] = []
  const object = value
  for (const name of Object.keys(object))
    if (!names.has(name))
      faults.push({
        parameter: `limits.${name}`,
        detail: `The limits are ${limitNames.join(', ')}.`,
        members: limitNames,
      })

  function member<T>(
    name: string,
    isValid: (value: unknown) => value is T,
    accepts: Omit<ParameterFault, 'parameter'>,
  ): T | null {
    const given = object[name] ?? null
    if (given === null || isValid(given)) return given
    faults.push({ parameter: `limits.${name}`, ...accepts })
    return null
  }

  const count = (given: unknown): given is number => isCount(given)
  const days = (given: unknown): given is number => isCount(given, maxDays)
  const types = member('types', isTypes, {
    ...typesRule,
  })
  const limits: TokenLimits = {
    maxItems: member('max_items', count, { ...countRule, unit: 'items' }),
    maxBytes: member('max_bytes', count, { ...countRule, unit: 'bytes' }),
    maxFileSize: member('max_file_size', count, { ...countRule, unit: 'bytes' }),
    types: types && storedTypesOf(types),
    itemDays: member('item_days', days, {
      detail: `A whole number from 1 to ${maxDays}, or null.`,
      ...{ minimum: 1, maximum: maxDays, unit: 'days' },
    }),
    labels: member('labels', isLabels, { detail: `An object with ${labelRule}.` }),
  }
  return { limits: faults.length > 0 ? null : limits, faults }
}

export const limitsObject = ({
  maxItems,
  maxBytes,
  maxFileSize,
  types,
  itemDays,
  labels = null,
}: TokenLimits): LimitsObject => ({
  max_items: maxItems,
  max_bytes: maxBytes,
  max_file_size: maxFileSize,
  types,
  item_days: itemDays,
  labels,
})

/** Reads limits from the catalog. */
export function parseStoredLimits(text: string): TokenLimits {
  const { limits } = readLimits(JSON.parse(text))
  if (limits === null) throw new TypeError('the catalog holds limits of a token that are not valid')
  return limits
}

export const storedLimits = (limits: TokenLimits): string => JSON.stringify(limitsObject(limits))

export const leftOf = (
  { maxItems, maxBytes }: Pick<TokenLimits, 'maxItems' | 'maxBytes'>,
  { used, reserved }: LimitUse,
): AmountLeft => ({
  items: maxItems === null ? null : Math.max(0, maxItems - used.items - reserved.items),
  bytes: maxBytes === null ? null : Math.max(0, maxBytes - used.bytes - reserved.bytes),
})

/** Throws Fault `token-limit-exceeded`, which names the limit and what is left, unless `more` fits (docs/interface.md T10). */
export function requireWithinLimits(
  { maxItems, maxBytes }: Pick<TokenLimits, 'maxItems' | 'maxBytes'>,
  left: AmountLeft,
  more: Amount,
): void {
  if (maxItems !== null && left.items !== null && more.items > left.items)
    throw limitExceeded('max_items', maxItems, 'item', left.items)
  if (maxBytes !== null && left.bytes !== null && more.bytes > left.bytes)
    throw limitExceeded('max_bytes', maxBytes, 'byte', left.bytes)
}

const limitExceeded = (parameter: string, maximum: number, unit: 'item' | 'byte', left: number) => {
  const limit = countText(maximum, unit)
  const rest = `${left} ${left === 1 ? 'is' : 'are'} left`
  const fault: ParameterFault = {
    parameter,
    detail: `The token may upload ${limit}; ${rest}.`,
    ...{ maximum, unit: `${unit}s`, left },
  }
  return new Fault(
    'token-limit-exceeded',
    `This token may upload ${limit}, of which ${rest}. This upload would exceed that.`,
    { parameters: [fault] },
  )
}

/** The files that a bucket accepts; null for no limit. */
export interface FileLimits {
  /** Bytes. */
  readonly maxFileSize: number | null
  /** Types such as `image/png`, or groups of them such as `image/*`. */
  readonly types: readonly string[] | null
}

/** What an upload is limited by: its token, and its bucket. Null, or left out, for no limits. */
export interface UploadLimits {
  readonly limits: FileLimits | null
  readonly fileLimits?: FileLimits | null
}

/** The largest file that may be uploaded. Bytes. */
export const maxFileSizeOf = ({ limits, fileLimits }: UploadLimits, ofService: number): number =>
  Math.min(ofService, limits?.maxFileSize ?? ofService, fileLimits?.maxFileSize ?? ofService)

/** Throws Fault `file-too-large`, which names the limit, for a file that is too large for the token (docs/interface.md T10) or the bucket (BK13). */
export function requireFileSize({ limits, fileLimits }: UploadLimits, size: number): void {
  if (limits !== null) requireSizeWithin(limits, size, 'With this token')
  if (fileLimits) requireSizeWithin(fileLimits, size, 'In this bucket')
}

function requireSizeWithin({ maxFileSize }: FileLimits, size: number, where: string): void {
  if (maxFileSize === null || size <= maxFileSize) return
  const detail = `${where}, a file may have at most ${maxFileSize} bytes.`
  throw new Fault('file-too-large', detail, {
    parameters: [{ parameter: 'max_file_size', detail, maximum: maxFileSize, unit: 'bytes' }],
  })
}

/**
 * The labels of an item: those that were sent, and those of the token, which replace sent ones with the same keys. Throws Fault
 * `request-malformed` if there are too many.
 */
export function withFixedLabels(
  limits: Pick<TokenLimits, 'labels'> | null,
  sent: Labels | null | undefined,
): Labels | null {
  const fixed = limits?.labels ?? null
  if (fixed === null) return sent ?? null
  const labels = changeLabels(sent, fixed)
  if (Object.keys(labels ?? {}).length <= maxLabels) return labels
  const detail = `With the labels of the token, an item would have more than ${maxLabels} labels.`
  throw new Fault('request-malformed', detail, {
    parameters: [{ parameter: 'labels', detail, maximum: maxLabels, unit: 'labels' }],
  })
}

/** How the type of a file was found. */
interface FoundType {
  readonly contentType: string
  /** The type that was detected from the bytes; null if they have none. */
  readonly sniffed: string | null
  /** The first bytes of the file. */
  readonly head: Uint8Array
}

/** Whether a group such as `image/*` has this type. */
const inGroup = (type: string, group: string): boolean =>
  group.endsWith('/*') && type.startsWith(group.slice(0, -1))

/**
 * Throws Fault `type-refused`, which names the permitted types, unless one of them is that of the file. A type that was not detected from the
 * bytes must be listed by its name, because a client can declare any; bytes of `text/…` must be text.
 */
export function requireType({ limits, fileLimits }: UploadLimits, found: FoundType): void {
  if (limits !== null) requireTypeWithin(limits, found, 'With this token')
  if (fileLimits) requireTypeWithin(fileLimits, found, 'In this bucket')
}

/** Whether the type of an upload must be known. */
export const limitsTypes = ({ limits, fileLimits }: UploadLimits): boolean =>
  limits?.types != null || fileLimits?.types != null

function requireTypeWithin({ types }: FileLimits, found: FoundType, where: string): void {
  if (types === null) return
  const type = essenceOf(found.contentType)
  const isText = type.startsWith('text/')
  const isDetected = type === found.sniffed || (isText && decodeText(found.head) !== null)
  const permits = (permitted: string) =>
    permitted === type ? isDetected || !isText : isDetected && inGroup(type, permitted)
  if (types.some(permits)) return
  const detail = `${where}, a file must be one of: ${types.join(', ')}.`
  const isDeclared = !isText && types.some((permitted) => inGroup(type, permitted))
  const reason = isDeclared
    ? ` The bytes do not show the type ${type}, so it must be listed by its name.`
    : ''
  throw new Fault('type-refused', `This file is ${type}. ${detail}${reason}`, {
    parameters: [{ parameter: 'types', detail, accepted: types }],
  })
}
