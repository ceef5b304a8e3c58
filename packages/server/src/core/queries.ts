import {
  type ItemKind,
  isLabelKey,
  isLabelValue,
  itemKinds,
  type ListOrder,
  listOrders,
  longestName,
  longestPath,
  maxLabelValue,
  maxListLimit,
  maxSearchLength,
  maxSearchTerms,
  maxSelectedLabels,
} from '@mediabucket/client/rules'
import { Fault, type FaultMembers, type ParameterFault } from './faults.ts'
import { type Labels, parseLabels } from './item-labels.ts'
import { hasNul, parseNameSearch, parseStartName, type SearchTerms } from './names.ts'
import { maxKeyLength } from './object-key-rules.ts'
import { parseTimestamp } from './times.ts'

/** What a parameter accepts, in words and for programs. */
export interface Accepts extends FaultMembers {
  readonly text: string
}

/** A function, which is called for faults only, where it depends on the value. */
type AcceptsOf = string | Accepts | ((value: unknown) => Accepts)

function acceptsOf(accepts: AcceptsOf, value: unknown): Accepts {
  if (typeof accepts === 'string') return { text: accepts }
  return typeof accepts === 'function' ? accepts(value) : accepts
}

export const oneOf = <Name extends string>(names: readonly Name[]): Accepts => ({
  text: `one of: ${names.join(', ')}`,
  accepted: names,
})

/** Limits are inclusive. */
export const integerFrom = (minimum: number, maximum: number, unit?: FaultMembers['unit']): Accepts => ({
  text: `one integer from ${minimum} to ${maximum}`,
  ...{ minimum, maximum },
  ...(unit && { unit }),
})

/** Reads the query parameters of a request, as the router decodes them. */
export interface ParameterReader {
  /** Returns `missing` if there is no such parameter. `parse` returns null for values that are not `accepts`. */
  read<T>(parameter: string, missing: T, accepts: AcceptsOf, parse: (text: string) => T | null): T
  /** Throws Fault `parameter-malformed`, which names all parameters with other values (docs/interface.md K3). */
  finish(): void
}

export function createParameterReader(values: Readonly<Record<string, unknown>>): ParameterReader {
  const faults: ParameterFault[] = []
  return {
    read(parameter, missing, accepts, parse) {
      const value = values[parameter]
      if (value === undefined) return missing
      // A repeated parameter is a list.
      const parsed = typeof value === 'string' ? parse(value) : null
      if (parsed === null) {
        const { text, ...members } = acceptsOf(accepts, value)
        faults.push({ parameter, detail: `${parameter} accepts ${text}.`, ...members })
      }
      return parsed ?? missing
    },
    finish() {
      if (faults.length > 0)
        throw new Fault('parameter-malformed', faults.map(({ detail }) => detail).join(' '), {
          parameters: faults,
        })
    },
  }
}

export const defaultListLimit = 100

const limitShape = /^[1-9][0-9]{0,2}$/

const limitAccepts = integerFrom(1, maxListLimit)

/** Reads the largest number of entries in one response to a list. */
export const readLimit = ({ read }: ParameterReader, missing = defaultListLimit): number =>
  read('limit', missing, limitAccepts, (text) =>
    limitShape.test(text) && Number(text) <= maxListLimit ? Number(text) : null,
  )

/** Reads a cursor as sent; null for the start of the list. */
export const readCursor = ({ read }: ParameterReader): string | null =>
  read<string | null>('after', null, 'one cursor', (text) => text)

export const itemOrders = ['oldest', 'newest'] as const
/** `oldest` is the order of upload (docs/interface.md L10), `newest` its reverse. */
export type ItemOrder = (typeof itemOrders)[number]

/** What each order of a list sorts by, and its direction. */
const sortOf = {
  oldest: { order: 'oldest' },
  newest: { order: 'newest' },
  taken: { order: 'oldest', by: 'taken' },
  'taken-desc': { order: 'newest', by: 'taken' },
  name: { order: 'oldest', by: 'name' },
  'name-desc': { order: 'newest', by: 'name' },
} as const satisfies Readonly<Record<ListOrder, Pick<ItemFilter, 'order' | 'by'>>>

/** Selects items, and their order. */
export interface ItemFilter {
  readonly order: ItemOrder
  /**
   * `taken` for the time at which pictures and videos were taken, that of the upload where it is unknown, `name` for the
   * folded names; null or left out for the upload.
   */
  readonly by?: 'taken' | 'name' | null
  /** Null for all. */
  readonly kind: ItemKind | null
  /** The earliest time of the items: when they were taken if `by` is `taken`, else when they were stored. Milliseconds since 1970. */
  readonly from: number | null
  /** The items have earlier times than this one, of the same kind. */
  readonly to: number | null
  /** The terms that the names of the items have, folded; null for all items. */
  readonly name: SearchTerms | null
  /** The labels that the items have; null or left out for all items. */
  readonly labels?: Labels | null
  /** The hash of their bytes in lower-case hexadecimal digits; null or left out for all items. */
  readonly sha256?: string | null
  /** The start of their paths; null or left out for all items, with a path or without. */
  readonly path?: string | null
  /** The start of their keys (OK1); null or left out for all items, with a key or without. */
  readonly key?: string | null
  /** In a list by name, the key of the name at which it begins (nameKey); null or left out for the whole list. */
  readonly startName?: string | null
}

/** The query of `GET /api/items`. */
export interface ItemsQuery extends ItemFilter {
  /** The largest number of items in one response. */
  readonly limit: number
  /** A cursor as sent; null for the start of the list. */
  readonly after: string | null
  /** A numbered page instead of a cursor. */
  readonly page?: PageNumber
  /** Whether the response has the keys of the items. */
  readonly keys?: boolean
}

/** A page of a list of items, from 1, and its size. */
export interface PageNumber {
  readonly number: number
  readonly size: number
}

/** Items of a numbered page, if none are requested, and at most. */
export const defaultPageSize = 50
export const maxPageSize = 100

export const timeShape = 'one time of RFC 3339, such as 2026-05-01T00:00:00Z, whose + is encoded as %2B'

const orderAccepts = oneOf(listOrders)
const kindAccepts = oneOf(itemKinds)

/** The members are the limit that the text exceeds. */
const searchAccepts = (text: unknown): Accepts => ({
  text: `one text of 1 to ${maxSearchTerms} words and up to ${maxSearchLength} characters, without U+0000`,
  ...(typeof text === 'string' && text.length > maxSearchLength
    ? { maximum: maxSearchLength, unit: 'characters' }
    : { minimum: 1, maximum: maxSearchTerms, unit: 'words' }),
})

/** Checks by types that the query has every member, so that no filter is added that no parameter selects. */
const allMembers = <Query extends ItemsQuery>(
  query: Query & (keyof ItemsQuery extends keyof Query ? unknown : never),
): ItemsQuery => query

/** Parses query parameters as the router decodes them. Throws Fault `parameter-malformed` (docs/interface.md K3). */
export function parseItemsQuery(values: Readonly<Record<string, unknown>>): ItemsQuery {
  const reader = createParameterReader(values)
  const { read } = reader
  // A problem names the parameters in the order in which they are read.
  const limit = readLimit(reader)
  const order: Pick<ItemFilter, 'order' | 'by'> =
    sortOf[
      read<ListOrder>(
        'order',
        'oldest',
        orderAccepts,
        (text) => listOrders.find((order) => order === text) ?? null,
      )
    ]
  const query = allMembers({
    limit,
    ...order,
    ...readStartName(reader, values, order.by),
    kind: read<ItemKind | null>(
      'kind',
      null,
      kindAccepts,
      (text) => itemKinds.find((kind) => kind === text) ?? null,
    ),
    from: read('from', null, timeShape, parseTimestamp),
    to: read('to', null, timeShape, parseTimestamp),
    name: read('name', null, searchAccepts, parseNameSearch),
    ...readSelectedLabels(reader, values),
    ...readSelectedFiles(reader, values),
    ...readSelectedKeys(reader, values, order.by),
    ...readPageNumber(reader, values),
    after: readCursor(reader),
  })
  reader.finish()
  return query
}

/** Reads `page` and `per_page`; one of them is enough. They replace `limit` and `after`, which are refused beside them. */
function readPageNumber(
  { read }: ParameterReader,
  values: Readonly<Record<string, unknown>>,
): { readonly page?: PageNumber } {
  if (values['page'] === undefined && values['per_page'] === undefined) return {}
  for (const other of ['limit', 'after'])
    if (values[other] !== undefined) read(other, null, 'no value together with page or per_page', () => null)
  const number = read('page', 1, integerFrom(1, Number.MAX_SAFE_INTEGER), (text) =>
    /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : null,
  )
  const size = read('per_page', defaultPageSize, integerFrom(1, maxPageSize), (text) =>
    limitShape.test(text) && Number(text) <= maxPageSize ? Number(text) : null,
  )
  return { page: { number, size } }
}

/** Values of each key in a response of `GET /api/labels`. */
export const defaultLabelLimit = 20

/** The query of `GET /api/labels`. Throws Fault `parameter-malformed` (docs/interface.md K15). */
export function parseLabelsQuery(values: Readonly<Record<string, unknown>>): {
  /** Null for all. */
  readonly key: string | null
  /** The largest number of values of a key. */
  readonly limit: number
} {
  const reader = createParameterReader(values)
  const query = {
    key: reader.read<string | null>('key', null, 'one key of a label', (text) =>
      isLabelKey(text) ? text : null,
    ),
    limit: readLimit(reader, defaultLabelLimit),
  }
  reader.finish()
  return query
}

/** The prefix of the parameters that select labels. */
export const labelPrefix = 'label.'

/** What the parameter of a label must be, for messages. */
const labelParameterRule = `write label.KEY=VALUE to select items by a label, with a key of 1 to 40 of the characters a to z in lower case, 0 to 9, _, . and -, and a value of up to ${maxLabelValue} characters`

/** Reads `label.KEY=VALUE`. Unlike other unknown parameters, all that begin with `label` in any case are refused: they would select all items. */
function readSelectedLabels(
  { read }: ParameterReader,
  values: Readonly<Record<string, unknown>>,
): { readonly labels?: Labels } {
  const accepts = `one value, at most ${maxSelectedLabels} labels in a request, each with another key: ${labelParameterRule}`
  const names: string[] = []
  for (const name of Object.keys(values))
    if (name.startsWith(labelPrefix)) names.push(name)
    else if (/^label/i.test(name))
      read(name.slice(0, 100), null, `nothing: ${labelParameterRule}`, () => null)
  const pairs = names.map((name): readonly [string, string] => {
    const key = name.slice(labelPrefix.length)
    const value = read(name.slice(0, 100), '', accepts, (text) =>
      isLabelKey(key) && isLabelValue(text) && names.length <= maxSelectedLabels ? text : null,
    )
    return [key, value]
  })
  const labels = parseLabels(pairs)
  return labels ? { labels } : {}
}

const hashShape = /^[0-9a-f]{64}$/i

/** Reads the key of the name at which a list by name begins (docs/interface.md K20). */
function readStartName(
  { read }: ParameterReader,
  values: Readonly<Record<string, unknown>>,
  by: ItemFilter['by'],
): Pick<ItemFilter, 'startName'> {
  if (!('start_name' in values)) return {}
  const startName = read<string | null>(
    'start_name',
    null,
    {
      text: `one filename of up to ${longestName} bytes without U+0000, with order=name or order=name-desc`,
      ...{ maximum: longestName, unit: 'bytes' },
    },
    (text) => (by === 'name' ? parseStartName(text) : null),
  )
  return { startName }
}

const isStart = (text: string, mostBytes: number): boolean =>
  Buffer.byteLength(text) <= mostBytes && text.isWellFormed() && !hasNul(text)

/** Reads `sha256` and `path`. Left out of the query where they are missing, as they are in most requests. */
function readSelectedFiles(
  { read }: ParameterReader,
  values: Readonly<Record<string, unknown>>,
): Pick<ItemFilter, 'sha256' | 'path'> {
  const sha256 = () =>
    read<string | null>('sha256', null, '64 hexadecimal digits', (text) =>
      hashShape.test(text) ? text.toLowerCase() : null,
    )
  const path = () =>
    read<string | null>(
      'path',
      null,
      {
        text: `one start of a path, of up to ${longestPath} bytes, without U+0000`,
        ...{ maximum: longestPath, unit: 'bytes' },
      },
      (text) => (isStart(text, longestPath) ? text.normalize('NFC') : null),
    )
  return {
    ...('sha256' in values ? { sha256: sha256() } : {}),
    ...('path' in values ? { path: path() } : {}),
  }
}

/** Reads `key`, and `keys`, which `key` includes. Left out of the query where they are missing (docs/interface.md K21). */
function readSelectedKeys(
  { read }: ParameterReader,
  values: Readonly<Record<string, unknown>>,
  by: ItemFilter['by'],
): Pick<ItemsQuery, 'key' | 'keys'> {
  const key = () =>
    read<string | null>(
      'key',
      null,
      {
        text: `one start of a key, of up to ${maxKeyLength} bytes, without U+0000, with order=oldest or order=newest`,
        ...{ maximum: maxKeyLength, unit: 'bytes' },
      },
      (text) => (by == null && isStart(text, maxKeyLength) ? text : null),
    )
  const hasKeys = 'keys' in values && read('keys', false, switchAccepts, parseSwitch)
  if ('key' in values) return { key: key(), keys: true }
  return hasKeys ? { keys: true } : {}
}

export const listedUrls = ['plain', 'signed'] as const
export type ListedUrls = (typeof listedUrls)[number]

const isListedUrls = (text: string): text is ListedUrls => listedUrls.some((urls) => urls === text)

/** Reads the parameter `urls` (docs/interface.md H10); null if it is missing. Throws Fault `parameter-malformed`. */
export function readListedUrls(query: Readonly<Record<string, unknown>>): ListedUrls | null {
  const parameters = createParameterReader(query)
  const urls = parameters.read<ListedUrls | null>(
    'urls',
    null,
    { text: 'plain or signed', accepted: listedUrls },
    (text) => (isListedUrls(text) ? text : null),
  )
  parameters.finish()
  return urls
}

/** The values of a parameter that switches something; the empty one is `on`. */
export const switchValues = ['', 'on', 'off'] as const
export type SwitchValue = (typeof switchValues)[number]
const switchAccepts = { text: 'on (also without a value) or off', accepted: switchValues }
const parseSwitch = (text: string): boolean | null =>
  text === '' || text === 'on' ? true : text === 'off' ? false : null

/** Whether the URLs in a response have the names of their items (docs/interface.md B13); null if it is not stated. Throws Fault `parameter-malformed`. */
export function readNames(query: Readonly<Record<string, unknown>>): boolean | null {
  const parameters = createParameterReader(query)
  const names = parameters.read<boolean | null>('names', null, switchAccepts, parseSwitch)
  parameters.finish()
  return names
}

/** Whether the URLs in a response are signed. Those of a public bucket never are. */
export const signsUrls = (
  grant: { readonly isPrivate: boolean; readonly signsPages: boolean },
  urls: ListedUrls | null,
): boolean => (urls === null ? grant.signsPages : urls === 'signed' && grant.isPrivate)

/** The query of a list without a selection. */
export interface CursorQuery {
  /** The largest number of entries in one response. */
  readonly limit: number
  /** A cursor as sent; null for the start of the list. */
  readonly after: string | null
}

/** Throws Fault `parameter-malformed` (docs/interface.md Z2, T4). */
export function parseCursorQuery(values: Readonly<Record<string, unknown>>): CursorQuery {
  const reader = createParameterReader(values)
  const query = { limit: readLimit(reader), after: readCursor(reader) }
  reader.finish()
  return query
}
