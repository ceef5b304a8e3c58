import { lstatSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import type { ItemId } from '../../core/media-id.ts'
import { applyCreationSettings } from '../../sqlite/creation-settings.ts'
import { hasMuchFreeSpace, releasePages } from '../../sqlite/free-pages.ts'
import { isCorrupt, resultCode } from '../../sqlite/result-codes.ts'
import { waitWhileBusy } from '../../sqlite/wait-while-busy.ts'

/** The database of small variants, in the data directory. */
export const variantDatabase = 'variants.db'

/** `variants.db` is damaged, for example by a power failure: it is written without syncs. */
export class VariantsDamaged extends Error {
  override readonly name = 'VariantsDamaged'
}

/** The rows of `variants.db`: each is a variant, under the name `<id>.<key>`. All functions throw VariantsDamaged. */
export interface VariantRows {
  /** Null if the variant is not stored. */
  read(name: string): Uint8Array<ArrayBuffer> | null
  store(name: string, bytes: Uint8Array): void
  /** Removes all variants of the item. */
  remove(id: ItemId): void
  removeOne(name: string): void
  /** Whether the item has variants. */
  hasAny(id: ItemId): boolean
  /** Up to `limit` names after this one, with the sizes of the variants in bytes. */
  list(after: string, limit: number): { readonly name: string; readonly size: number }[]
  /** Runs the work in one transaction. `begin` is `BEGIN IMMEDIATE` if it writes. */
  transaction<T>(begin: 'BEGIN' | 'BEGIN IMMEDIATE', work: () => T): T
  /** Returns some free pages to the file system if there are many; false if there are few. */
  releaseSpace(): boolean
  /** False if the file was removed or replaced since it was opened. */
  isCurrent(): boolean
  close(): void
}

/** Milliseconds that a write waits while another process, such as a command, is writing. */
const busyTimeout = 5_000

/**
 * Opens `variants.db`, and creates it if it is missing. It is never synced, because variants can be rendered again. A crash
 * of the process leaves it intact. A power failure may damage any page: SQLite or the checksum of the row detects that when
 * the page is read. Throws VariantsDamaged.
 */
export function openVariantRows(directory: string): VariantRows {
  const path = join(directory, variantDatabase)
  // SQLite would create the target, or change it.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) throw new VariantsDamaged('it is a link')
  const db = new DatabaseSync(path, { returnArrays: true, timeout: busyTimeout })
  try {
    return guarded(() => prepare(db, path))
  } catch (error) {
    db.close()
    throw resultCode(error) === sqliteError
      ? new VariantsDamaged('it has other tables', { cause: error })
      : error
  }
}

/** SQLite's code for SQL that does not fit the tables. */
const sqliteError = 1

function prepare(db: DatabaseSync, path: string): VariantRows {
  applyCreationSettings(db)
  // The switch to WAL ignores the busy timeout and fails while another process is switching.
  waitWhileBusy(() => db.exec('PRAGMA journal_mode = WAL'))
  db.exec(`
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -8192;
    PRAGMA journal_size_limit = 16777216;
    CREATE TABLE IF NOT EXISTS variants (
      name TEXT NOT NULL UNIQUE,
      checksum INTEGER NOT NULL,
      bytes BLOB NOT NULL
    ) STRICT;
  `)
  const find = db.prepare('SELECT checksum, bytes FROM variants WHERE name = ?')
  const replace = db.prepare('INSERT OR REPLACE INTO variants (name, checksum, bytes) VALUES (?, ?, ?)')
  // The character after `.` is `/`, so this range contains all names that begin with the id and a dot.
  const deleteAll = db.prepare("DELETE FROM variants WHERE name > ?1 || '.' AND name < ?1 || '/'")
  const deleteOne = db.prepare('DELETE FROM variants WHERE name = ?')
  const findAny = db.prepare("SELECT 1 FROM variants WHERE name > ?1 || '.' AND name < ?1 || '/' LIMIT 1")
  const names = db.prepare('SELECT name, length(bytes) FROM variants WHERE name > ? ORDER BY name LIMIT ?')
  const inode = statSync(path).ino

  return {
    read: (name) => guarded(() => readRow(find, name)),
    store: (name, bytes) => guarded(() => void replace.run(name, checksumOf(name, bytes), bytes)),
    remove: (id) => guarded(() => void deleteAll.run(id)),
    removeOne: (name) => guarded(() => void deleteOne.run(name)),
    hasAny: (id) => guarded(() => findAny.get(id) !== undefined),
    list: (after, limit) =>
      guarded(() =>
        names.all(after, limit).map((row: unknown) => {
          const [name, size]: readonly unknown[] = Array.isArray(row) ? row : []
          if (typeof name !== 'string' || typeof size !== 'number')
            throw new VariantsDamaged('a row is wrong')
          return { name, size }
        }),
      ),
    transaction: (begin, work) =>
      guarded(() => {
        db.exec(begin)
        try {
          const result = work()
          db.exec('COMMIT')
          return result
        } catch (error) {
          if (db.isTransaction) db.exec('ROLLBACK')
          throw error
        }
      }),
    releaseSpace: () =>
      guarded(() => {
        if (!hasMuchFreeSpace(db)) return false
        releasePages(db)
        return true
      }),
    isCurrent: () => statSync(path, { throwIfNoEntry: false })?.ino === inode,
    close: () => db.close(),
  }
}

function readRow(find: StatementSync, name: string): Uint8Array<ArrayBuffer> | null {
  const row: unknown = find.get(name)
  if (row === undefined) return null
  const [checksum, bytes]: readonly unknown[] = Array.isArray(row) ? row : []
  if (!isBytes(bytes) || checksum !== checksumOf(name, bytes))
    throw new VariantsDamaged(`the bytes of ${name} do not have their checksum`)
  return bytes
}

const isBytes = (value: unknown): value is Uint8Array<ArrayBuffer> =>
  value instanceof Uint8Array && value.buffer instanceof ArrayBuffer

/** Includes the name, because a damaged page may connect a row with the bytes of another one. */
const checksumOf = (name: string, bytes: Uint8Array): number => crc32(bytes, crc32(name))

function guarded<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw isCorrupt(error) ? new VariantsDamaged('it is not a complete database', { cause: error }) : error
  }
}
