import { type SearchBounds, searchNames } from '../name-search.ts'
import type { ItemPlace, ItemRows, ItemSelection } from '../records.ts'
import type { Session } from './session.ts'
import { runQuery } from './statements.ts'

/** The plan of each statement is a scan of the index in the order of the search, which ends at its limit, whatever the statistics say. */
const begin = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
  SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off`

/** Finds items by their names, as Catalog.items, in one snapshot. */
export async function searchItems(
  { run, execute }: Session,
  selection: ItemSelection,
  terms: readonly string[],
  after: ItemPlace | null,
  limit: number,
  bounds?: SearchBounds,
): Promise<ItemRows> {
  try {
    await execute(begin)
    const found = await runQuery(run, searchNames(selection, terms, after, limit, bounds))
    await execute('COMMIT')
    return found
  } catch (error) {
    // The connection is used again. If it is lost, the first error says so.
    await execute('ROLLBACK').catch(() => undefined)
    throw error
  }
}
