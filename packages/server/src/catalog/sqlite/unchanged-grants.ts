import type { DatabaseSync } from 'node:sqlite'
import type { Grant } from '../records.ts'
import { integer } from '../rows.ts'
import { one } from './rows.ts'

/** Grants in memory. Above this number, all are read again. */
const maxGrants = 10_000

/**
 * Wraps a read of grants: a grant is read once until the database changes. SQLite increments `data_version` of this connection
 * when another one, also of another process, has committed. So a grant is never older than the last read of the version,
 * which is the first of each turn. The connection itself must not write.
 */
export function untilChanged(db: DatabaseSync, authorise: (tokenHash: Uint8Array) => Grant | null) {
  const dataVersion = db.prepare('PRAGMA data_version')
  /** By the hash of the token as Latin-1. */
  const grants = new Map<string, Grant>()
  let version: number | null = null

  function readVersion(): void {
    const before = version
    // If the read fails, no grant of an earlier version is used.
    version = null
    version = integer(one(dataVersion) ?? [], 0)
    if (version !== before || grants.size >= maxGrants) grants.clear()
  }

  return (tokenHash: Uint8Array, isFirst: boolean): Grant | null => {
    if (isFirst) readVersion()
    if (version === null) return authorise(tokenHash)
    const key = Buffer.from(tokenHash.buffer, tokenHash.byteOffset, tokenHash.byteLength).toString('latin1')
    const known = grants.get(key)
    if (known) return known
    const grant = authorise(tokenHash)
    if (grant) grants.set(key, grant)
    return grant
  }
}
