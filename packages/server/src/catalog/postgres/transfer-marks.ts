import { DatabaseError } from '../catalog-errors.ts'
import { text } from '../rows.ts'
import { movedText } from '../transfer.ts'
import type { Connections } from './connections.ts'
import type { Session } from './session.ts'

/** In `meta` from the start to the end of a transfer into the catalog: the state of the source; empty before it is known. */
export const transferKey = 'transfer'

/** In `meta` of a catalog whose rows have moved: the settings of their new place. */
export const movedKey = 'moved'

/** The value of a key of `meta`; null if there is none. */
export async function readMeta(session: Session, key: string): Promise<string | null> {
  const [row] = await session.run('SELECT value FROM meta WHERE key = $1', key)
  return row ? text(row, 0) : null
}

/** Marks the catalog, unless it has data or a mark. */
export const markTransfer = `INSERT INTO meta (key, value) SELECT '${transferKey}', '' WHERE NOT EXISTS (SELECT FROM buckets)
  ON CONFLICT DO NOTHING`

/** Throws DatabaseError while the catalog has only a part of the rows that are transferred into it. */
export async function requireNoTransfer(connections: Connections): Promise<void> {
  if ((await connections.read((session) => readMeta(session, transferKey))) === null) return
  throw new DatabaseError(
    'The database is incomplete, because its migration was interrupted. Run the same mediabucket migrate again.',
  )
}

/** Throws DatabaseError if the rows have moved. */
export async function requireNotMoved(connections: Connections, label: string): Promise<void> {
  const settings = await connections.read((session) => readMeta(session, movedKey))
  if (settings !== null) throw new DatabaseError(movedText(`the database ${label}`, settings))
}
