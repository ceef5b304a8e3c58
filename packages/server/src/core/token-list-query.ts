import { createParameterReader, readCursor, readLimit } from './query-parameters.ts'

/** The query of `GET /api/tokens`. */
export interface TokenListQuery {
  /** The largest number of tokens in one response. */
  readonly limit: number
  /** A cursor as sent; null for the start of the list. */
  readonly after: string | null
}

/** Throws Fault `parameter-malformed` (docs/interface.md T4). */
export function parseTokenListQuery(values: Readonly<Record<string, unknown>>): TokenListQuery {
  const reader = createParameterReader(values)
  const query = { limit: readLimit(reader), after: readCursor(reader) }
  reader.finish()
  return query
}
