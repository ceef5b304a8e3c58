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
  | { readonly kind: 'remove-one'; readonly name: string }
  /** Up to `limit` names after this one. */
  | { readonly kind: 'list'; readonly after: string; readonly limit: number }

type Reading = VariantRequest & { readonly kind: 'read' | 'list' }
const isReading = (request: VariantRequest): request is Reading =>
  request.kind === 'read' || request.kind === 'list'

/** The bytes or the names that were read, or null. */
export type VariantOutput = Uint8Array<ArrayBuffer> | readonly string[] | null

/** Runs requests on `variants.db`. */
export abstract class VariantDatabase {
  /** Null if there is no database and none is `needed`. */
  protected abstract open(needed: boolean): VariantRows | null
  /** Repairs the database, so that the requests can be repeated. Otherwise throws the error. */
  protected abstract repair(error: VariantsDamaged): void
  abstract close(): void

  /** Runs the reads in one transaction and the changes in another one. Never throws. */
  apply(requests: readonly VariantRequest[]): Outcome<VariantOutput>[] {
    const reads = requests.filter(isReading)
    const changes = requests.flatMap((request) => (isReading(request) ? [] : [request]))
    const read = this.#outcomesOf(reads, () => this.#readAll(reads)).values()
    const changed = this.#outcomesOf(changes, () => this.#changeAll(changes)).values()
    return requests.map((request) => {
      const { value } = isReading(request) ? read.next() : changed.next()
      if (value === undefined) throw new RangeError('a request has no outcome')
      return value
    })
  }

  /** As VariantRows.releaseSpace. */
  releaseSpace(): boolean {
    return this.#attempt(() => this.open(false)?.releaseSpace() ?? false)
  }

  #attempt<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof VariantsDamaged)) throw error
      this.repair(error)
      return work()
    }
  }

  /** One outcome for each request, in a transaction that succeeds or fails as a whole. */
  #outcomesOf(requests: readonly VariantRequest[], work: () => VariantOutput[]): Outcome<VariantOutput>[] {
    try {
      return this.#attempt(work).map((output) => ({ output }))
    } catch (error) {
      return requests.map(() => ({ error }))
    }
  }

  #readAll(requests: readonly Reading[]): VariantOutput[] {
    const rows = this.open(false)
    if (rows === null) return requests.map(() => null)
    // A transaction costs more than one read.
    return requests.length > 1
      ? rows.transaction('BEGIN', () => requests.map((request) => readIfRequired(rows, request)))
      : requests.map((request) => readIfRequired(rows, request))
  }

  #changeAll(requests: readonly Exclude<VariantRequest, Reading>[]): VariantOutput[] {
    const rows = this.open(requests.some(({ kind }) => kind === 'store'))
    // Most items have no variants. Their removal must not need space on a full disk.
    const changes = requests.filter((request) => request.kind !== 'remove' || rows?.hasAny(request.id))
    if (rows !== null && changes.length > 0)
      rows.transaction('BEGIN IMMEDIATE', () => {
        for (const request of changes)
          if (request.kind === 'store') rows.store(request.name, request.bytes)
          else if (request.kind === 'remove') rows.remove(request.id)
          else rows.removeOne(request.name)
      })
    return requests.map(() => null)
  }
}

function readIfRequired(rows: VariantRows, request: Reading): VariantOutput {
  if (request.kind === 'list') return rows.list(request.after, request.limit).map(({ name }) => name)
  const { name, required } = request
  return required === null || isStored(required) ? rows.read(name) : null
}

/** For commands, which neither create the database without need nor replace a damaged one: a server may be using it. */
export class ExistingVariants extends VariantDatabase {
  readonly #directory: string
  #rows: VariantRows | null = null

  constructor(directory: string) {
    super()
    this.#directory = directory
  }

  close(): void {
    this.#rows?.close()
    this.#rows = null
  }

  protected open(needed: boolean): VariantRows | null {
    if (this.#rows === null && (needed || existsSync(join(this.#directory, variantDatabase))))
      this.#rows = openVariantRows(this.#directory)
    return this.#rows
  }

  protected repair(error: VariantsDamaged): void {
    throw error
  }
}

/** For the server. Opens the database again after an operator has removed it. Removes a damaged database and creates a new one. */
export class ServerVariants extends VariantDatabase {
  readonly #directory: string
  readonly #onDamage: (error: Error) => void
  #rows: VariantRows | null = null

  /** `onDamage` receives the reason. */
  constructor(directory: string, onDamage: (error: Error) => void) {
    super()
    this.#directory = directory
    this.#onDamage = onDamage
  }

  close(): void {
    this.#rows?.close()
    this.#rows = null
  }

  protected open(): VariantRows {
    if (this.#rows?.isCurrent()) return this.#rows
    this.close()
    this.#rows = openVariantRows(this.#directory)
    return this.#rows
  }

  protected repair(error: VariantsDamaged): void {
    this.#onDamage(error)
    const isReplaced = this.#rows !== null && !this.#rows.isCurrent()
    this.close()
    // Another worker has found the damage too.
    if (isReplaced) return
    for (const suffix of ['', '-wal', '-shm'])
      rmSync(join(this.#directory, `${variantDatabase}${suffix}`), { force: true })
  }
}

/** The database of small variants, in the data directory. */
export const variantDatabase = 'variants.db'

/** `variants.db` is damaged, for example by a power failure: it is written without syncs. */
export class VariantsDamaged extends Error {
  override readonly name = 'VariantsDamaged'
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
    return guarded(() => new VariantRows(db, path))
  } catch (error) {
    db.close()
    throw resultCode(error) === sqliteError
      ? new VariantsDamaged('it has other tables', { cause: error })
      : error
  }
}

/** SQLite's code for SQL that does not fit the tables. */
const sqliteError = 1

/** The rows of `variants.db`: each is a variant, under the name `<id>.<key>`. All methods throw VariantsDamaged. */
export class VariantRows {
  readonly #db: DatabaseSync
  readonly #path: string
  readonly #inode: number
  readonly #statements: ReturnType<typeof prepareStatements>

  constructor(db: DatabaseSync, path: string) {
    this.#db = db
    this.#path = path
    this.#statements = prepareStatements(db)
    this.#inode = statSync(path).ino
  }

  /** Null if the variant is not stored. */
  read(name: string): Uint8Array<ArrayBuffer> | null {
    return guarded(() => readRow(this.#statements.find, name))
  }

  store(name: string, bytes: Uint8Array): void {
    guarded(() => this.#statements.replace.run(name, checksumOf(name, bytes), bytes))
  }

  /** Removes all variants of the item. */
  remove(id: ItemId): void {
    guarded(() => this.#statements.deleteAll.run(id))
  }

  removeOne(name: string): void {
    guarded(() => this.#statements.deleteOne.run(name))
  }

  /** Whether the item has variants. */
  hasAny(id: ItemId): boolean {
    return guarded(() => this.#statements.findAny.get(id) !== undefined)
  }

  /** Up to `limit` names after this one, with the sizes of the variants in bytes. */
  list(after: string, limit: number): { readonly name: string; readonly size: number }[] {
    return guarded(() => this.#statements.names.all(after, limit).map(readNameAndSize))
  }

  /** Runs the work in one transaction. `begin` is `BEGIN IMMEDIATE` if it writes. */
  transaction<T>(begin: 'BEGIN' | 'BEGIN IMMEDIATE', work: () => T): T {
    return guarded(() => {
      this.#db.exec(begin)
      try {
        const result = work()
        this.#db.exec('COMMIT')
        return result
      } catch (error) {
        if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
        throw error
      }
    })
  }

  /** Returns some free pages to the file system if there are many; false if there are few. */
  releaseSpace(): boolean {
    return guarded(() => {
      if (!hasMuchFreeSpace(this.#db)) return false
      releasePages(this.#db)
      return true
    })
  }

  /** False if the file was removed or replaced since it was opened. */
  isCurrent(): boolean {
    return statSync(this.#path, { throwIfNoEntry: false })?.ino === this.#inode
  }

  close(): void {
    this.#db.close()
  }
}

/** Creates the table if it is missing. */
function prepareStatements(db: DatabaseSync) {
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
  // The character after `.` is `/`, so the ranges contain all names that begin with the id and a dot.
  return {
    find: db.prepare('SELECT checksum, bytes FROM variants WHERE name = ?'),
    replace: db.prepare('INSERT OR REPLACE INTO variants (name, checksum, bytes) VALUES (?, ?, ?)'),
    deleteAll: db.prepare("DELETE FROM variants WHERE name > ?1 || '.' AND name < ?1 || '/'"),
    deleteOne: db.prepare('DELETE FROM variants WHERE name = ?'),
    findAny: db.prepare("SELECT 1 FROM variants WHERE name > ?1 || '.' AND name < ?1 || '/' LIMIT 1"),
    names: db.prepare('SELECT name, length(bytes) FROM variants WHERE name > ? ORDER BY name LIMIT ?'),
  }
}

function readNameAndSize(row: unknown): { name: string; size: number } {
  const [name, size]: readonly unknown[] = Array.isArray(row) ? row : []
  if (typeof name !== 'string' || typeof size !== 'number') throw new VariantsDamaged('a row is wrong')
  return { name, size }
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
