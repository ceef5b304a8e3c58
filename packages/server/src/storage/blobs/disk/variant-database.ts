import { existsSync, lstatSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import type { ItemId } from '../../../core/ids.ts'
import type { Outcome } from '../../batch-threads.ts'
import {
  applyCreationSettings,
  hasMuchFreeSpace,
  isCorrupt,
  releasePages,
  resultCode,
  waitWhileBusy,
} from '../../sqlite.ts'
import { isStored, type RequiredFile } from './stored-files.ts'

/** A name is `<id>.<key>`. */
export type VariantRequest =
  | {
      readonly kind: 'read'
      readonly name: string
      /** If this file is not stored, the output is null. */
      readonly required: RequiredFile | null
    }
  | { readonly kind: 'store'; readonly name: string; readonly bytes: Uint8Array }
  | { readonly kind: 'remove'; readonly id: ItemId }

type Reading = VariantRequest & { readonly kind: 'read' }

/** The bytes that were read, or null. */
export type VariantOutput = Uint8Array<ArrayBuffer> | null

export interface VariantDatabase {
  /** Runs the reads in one transaction and the changes in another one. Never throws. */
  apply(requests: readonly VariantRequest[]): Outcome<VariantOutput>[]
  /** As VariantRows.releaseSpace. */
  releaseSpace(): boolean
  close(): void
}

/** For commands, which neither create the database without need nor replace a damaged one: a server may be using it. */
export function openExistingVariants(directory: string): VariantDatabase {
  let rows: VariantRows | null = null
  const path = join(directory, variantDatabase)
  return createVariantDatabase(
    (needed) => {
      if (rows === null && (needed || existsSync(path))) rows = openVariantRows(directory)
      return rows
    },
    () => {
      rows?.close()
      rows = null
    },
  )
}

/**
 * For the server. Opens the database again after an operator has removed it. Removes a damaged database and creates a new
 * one; `onDamage` receives the reason.
 */
export function openServerVariants(directory: string, onDamage: (error: Error) => void): VariantDatabase {
  let rows: VariantRows | null = null
  const close = () => {
    rows?.close()
    rows = null
  }
  const open = () => {
    if (rows?.isCurrent()) return rows
    close()
    rows = openVariantRows(directory)
    return rows
  }
  const removeFiles = () => {
    const isReplaced = rows !== null && !rows.isCurrent()
    close()
    // Another worker has found the damage too.
    if (isReplaced) return
    for (const suffix of ['', '-wal', '-shm'])
      rmSync(join(directory, `${variantDatabase}${suffix}`), { force: true })
  }
  return createVariantDatabase(open, close, (error) => {
    onDamage(error)
    removeFiles()
  })
}

/**
 * `open` returns null if there is no database and none is `needed`. `onDamage` repairs the database, so that the requests
 * can be repeated.
 */
function createVariantDatabase(
  open: (needed: boolean) => VariantRows | null,
  close: () => void,
  onDamage?: (error: VariantsDamaged) => void,
): VariantDatabase {
  function attempt<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof VariantsDamaged) || onDamage === undefined) throw error
      onDamage(error)
      return work()
    }
  }

  /** One outcome for each request, in a transaction that succeeds or fails as a whole. */
  function outcomesOf(
    requests: readonly VariantRequest[],
    work: () => VariantOutput[],
  ): Outcome<VariantOutput>[] {
    try {
      return attempt(work).map((output) => ({ output }))
    } catch (error) {
      return requests.map(() => ({ error }))
    }
  }

  function readAll(requests: readonly Reading[]): VariantOutput[] {
    const rows = open(false)
    if (rows === null) return requests.map(() => null)
    const read = ({ name, required }: Reading) =>
      required === null || isStored(required) ? rows.read(name) : null
    // A transaction costs more than one read.
    return requests.length > 1 ? rows.transaction('BEGIN', () => requests.map(read)) : requests.map(read)
  }

  function changeAll(requests: readonly Exclude<VariantRequest, { kind: 'read' }>[]): VariantOutput[] {
    const rows = open(requests.some(({ kind }) => kind === 'store'))
    // Most items have no variants. Their removal must not need space on a full disk.
    const changes = requests.filter((request) => request.kind === 'store' || rows?.hasAny(request.id))
    if (rows !== null && changes.length > 0)
      rows.transaction('BEGIN IMMEDIATE', () => {
        for (const request of changes)
          if (request.kind === 'store') rows.store(request.name, request.bytes)
          else rows.remove(request.id)
      })
    return requests.map(() => null)
  }

  return {
    apply(requests) {
      const reads = requests.flatMap((request) => (request.kind === 'read' ? [request] : []))
      const changes = requests.flatMap((request) => (request.kind === 'read' ? [] : [request]))
      const read = outcomesOf(reads, () => readAll(reads)).values()
      const changed = outcomesOf(changes, () => changeAll(changes)).values()
      return requests.map(({ kind }) => {
        const { value } = kind === 'read' ? read.next() : changed.next()
        if (value === undefined) throw new RangeError('a request has no outcome')
        return value
      })
    },
    releaseSpace: () => attempt(() => open(false)?.releaseSpace() ?? false),
    close,
  }
}

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
