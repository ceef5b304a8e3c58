import { type Query, type Work, write } from './statements.ts'
import { readMeta, writeMeta } from './upkeep.ts'

// What `mediabucket migrate` leaves where the data were: a mark in the catalog, and one in the store of the bytes.

/** The reason for which no process opens a catalog whose rows have moved. `place` is the path of the catalog, or the name of the database. */
export const movedText = (place: string, settings: string): string =>
  `The data of ${place} were moved by mediabucket migrate: use them with ${settings}, or run mediabucket migrate --reopen to use the earlier data again.`

const movedPrefix = 'moved to '

/** Replaces the identity of a store whose bytes `mediabucket migrate` has copied elsewhere, or of a shared one whose rows it has moved. */
export const movedIdentity = (settings: string): string => movedPrefix + settings

/** The settings in such an identity; null for any other. */
export const movedSettings = (identity: string | null): string | null =>
  identity?.startsWith(movedPrefix) ? identity.slice(movedPrefix.length) : null

/** In `meta` of a catalog whose rows have moved: the settings of their new place. */
export const movedKey = 'moved'

/** With SQLite, the lock of the data directory excludes other processes. */
const refusal = {
  sqlite: null,
  postgres: `CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'mediabucket migrate has moved the data' USING ERRCODE = 'read_only_sql_transaction'; END$$`,
}

const refusalBelow = (fence: number) => ({
  sqlite: null,
  postgres: `CREATE OR REPLACE TRIGGER fence BEFORE INSERT ON batches FOR EACH ROW WHEN (NEW.fence < ${fence}) EXECUTE FUNCTION refuse_change()`,
})

/**
 * Each transaction of a process adds a batch with the fence that the process has read when it opened the catalog. The trigger is created when all
 * transactions that have begun have ended.
 */
function* refuseBelow(fence: number): Work<void> {
  yield* write(refusal)
  yield* write(refusalBelow(fence))
}

/** In `meta`: how often the bytes have moved without the rows, or were used again where they had been. */
export const fenceKey = 'fence'
export const fencePattern = /^\d{1,9}$/

/** A fencing token: a process with an earlier one changes nothing any more. */
export function* readFence(): Query<number> {
  const fence = (yield* readMeta(fenceKey)) ?? ''
  // A damaged one is corrected by fsck.
  return fencePattern.test(fence) ? Number(fence) : 0
}

/** From then on, processes that have opened the catalog before change nothing any more: they would write the bytes to another store. */
export function* raiseFence(): Work<void> {
  const fence = (yield* readFence()) + 1
  yield* writeMeta(fenceKey, `${fence}`)
  yield* refuseBelow(fence)
}

/** From then on, no process but a transfer opens the catalog, and those that use it change nothing any more. */
export function* markMoved(settings: string): Work<void> {
  yield* refuseBelow((yield* readFence()) + 1)
  yield* writeMeta(movedKey, settings)
}

export function* unmarkMoved(): Work<void> {
  yield* refuseBelow(yield* readFence())
  yield* write('DELETE FROM meta WHERE key = $1', movedKey)
}
