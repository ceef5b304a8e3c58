import { type Work, write } from './statements.ts'
import { writeMeta } from './upkeep.ts'

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
    AS $$BEGIN RAISE EXCEPTION 'mediabucket migrate has moved the rows' USING ERRCODE = 'read_only_sql_transaction'; END$$`,
}

/** Each change that a response confirms changes one of these tables, among others. Of a link, it is the event. */
const refusals = [
  ...['buckets', 'tokens', 'signing_keys', 'webhooks', 'uploads', 'object_keys', 'object_uploads'],
  'audit_events',
].map((table) => ({
  set: {
    sqlite: null,
    postgres: `CREATE TRIGGER moved BEFORE INSERT OR UPDATE OR DELETE ON ${table} EXECUTE FUNCTION refuse_change()`,
  },
  remove: { sqlite: null, postgres: `DROP TRIGGER IF EXISTS moved ON ${table}` },
}))

/**
 * From then on, no process but a transfer opens the catalog, and those that use it change nothing any more. A trigger is created when the transactions
 * that change its table have ended.
 */
export function* markMoved(settings: string): Work<void> {
  yield* unmarkMoved()
  yield* write(refusal)
  for (const { set } of refusals) yield* write(set)
  yield* writeMeta(movedKey, settings)
}

export function* unmarkMoved(): Work<void> {
  for (const { remove } of refusals) yield* write(remove)
  yield* write('DELETE FROM meta WHERE key = $1', movedKey)
}
