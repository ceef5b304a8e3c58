import { createParameterReader, readCursor, readLimit } from './query-parameters.ts'

/** The query of `GET /api/trash`. Throws Fault `parameter-malformed` (docs/interface.md Z2). */
export function parseTrashQuery(values: Readonly<Record<string, unknown>>): {
  readonly limit: number
  readonly after: string | null
} {
  const reader = createParameterReader(values)
  const query = { limit: readLimit(reader), after: readCursor(reader) }
  reader.finish()
  return query
}
