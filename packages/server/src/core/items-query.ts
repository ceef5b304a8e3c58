import { maxSearchLength, maxSearchTerms, parseNameSearch } from './name-search.ts'
import { createParameterReader, readCursor, readLimit } from './query-parameters.ts'
import { parseTimestamp } from './timestamp.ts'

export const itemOrders = ['oldest', 'newest'] as const
/** `oldest` is the order of upload (docs/interface.md L10), `newest` its reverse. */
export type ItemOrder = (typeof itemOrders)[number]

export const itemKinds = ['image', 'video', 'audio', 'document', 'other'] as const
/** The kind of an item, which its stored type determines. */
export type ItemKind = (typeof itemKinds)[number]

/** Selects items, and their order. */
export interface ItemFilter {
  readonly order: ItemOrder
  /** Null for all. */
  readonly kind: ItemKind | null
  /** Items that were stored at this time or later; milliseconds since 1970. */
  readonly from: number | null
  /** Items that were stored before this time. */
  readonly to: number | null
  /** The terms that the names of the items have, folded; null for all items. */
  readonly name: readonly string[] | null
}

/** The query of `GET /api/items`. */
export interface ItemsQuery extends ItemFilter {
  /** The largest number of items in one response. */
  readonly limit: number
  /** A cursor as sent; null for the start of the list. */
  readonly after: string | null
}

const timeShape = 'one time of RFC 3339, such as 2026-05-01T00:00:00Z, whose + is encoded as %2B'

/** Parses query parameters as the router decodes them. Throws Fault `parameter-malformed` (docs/interface.md K3). */
export function parseItemsQuery(values: Readonly<Record<string, unknown>>): ItemsQuery {
  const reader = createParameterReader(values)
  const { read } = reader
  const query: ItemsQuery = {
    limit: readLimit(reader),
    order: read<ItemOrder>(
      'order',
      'oldest',
      `one of: ${itemOrders.join(', ')}`,
      (text) => itemOrders.find((order) => order === text) ?? null,
    ),
    kind: read<ItemKind | null>(
      'kind',
      null,
      `one of: ${itemKinds.join(', ')}`,
      (text) => itemKinds.find((kind) => kind === text) ?? null,
    ),
    from: read('from', null, timeShape, parseTimestamp),
    to: read('to', null, timeShape, parseTimestamp),
    name: read(
      'name',
      null,
      // The command line reads this from the detail of the fault (cli/client/ls.ts).
      `one text of 1 to ${maxSearchTerms} words and up to ${maxSearchLength} characters`,
      parseNameSearch,
    ),
    after: readCursor(reader),
  }
  reader.finish()
  return query
}
