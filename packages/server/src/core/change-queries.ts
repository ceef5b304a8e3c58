import { type Accepts, createParameterReader, integerFrom, readCursor, readLimit } from './queries.ts'

/** The longest time for which a request waits for a change. Seconds. */
export const maxWait = 60

const waitShape = /^(?:0|[1-9][0-9]?)$/

const sinceAccepts: Accepts = { text: 'now, and not together with after', accepted: ['now'] }

/** The query of `GET /api/changes`. Throws Fault `parameter-malformed`. */
export function parseChangesQuery(values: Readonly<Record<string, unknown>>): {
  readonly limit: number
  readonly after: string | null
  readonly since: 'now' | null
  /** Milliseconds. */
  readonly wait: number
} {
  const reader = createParameterReader(values)
  const after = readCursor(reader)
  const query = {
    limit: readLimit(reader),
    after,
    since: reader.read<'now' | null>('since', null, sinceAccepts, (text) =>
      text === 'now' && after === null ? 'now' : null,
    ),
    wait: reader.read('wait', 0, integerFrom(0, maxWait, 'seconds'), (text) =>
      waitShape.test(text) && Number(text) <= maxWait ? Number(text) * 1000 : null,
    ),
  }
  reader.finish()
  return query
}
