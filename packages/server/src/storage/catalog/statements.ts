import type { ItemId, UploadId } from '../../core/ids.ts'
import type { Labels } from '../../core/item-labels.ts'
import { isObject, parseJson } from '../../core/json.ts'
import type { Amount } from '../../core/quotas.ts'
import type { WebhookId } from '../../core/webhook-rules.ts'
import type { AuditEvent } from './audit/audit-events.ts'
import type { AddedItem, BucketId, ContentId, DeletedChunk, RemovedItems, TokenId } from './records.ts'

// What is read and changed rarely is written once, for both engines, as coroutines: they yield statements, which SQLite runs in a loop and
// PostgreSQL with `await`. Each statement is yielded by `all`, `first` or `write`, whose readers give the rows their types.

/** A value of a statement. SQLite receives a list as JSON. */
export type SqlValue = number | string | null | Uint8Array | readonly number[] | readonly string[]

/**
 * The text of a statement, in the SQL of PostgreSQL that `sqliteText` translates, or one text for each engine; null if an engine needs no such
 * statement. It must be one of few, because engines keep statements prepared.
 */
export type Sql = string | { readonly sqlite: string | null; readonly postgres: string | null }

export type EngineName = 'sqlite' | 'postgres'

export interface Statement {
  readonly sql: Sql
  readonly values: readonly SqlValue[]
  /** Whether the number of changed rows is wanted, and not rows. */
  readonly isWrite: boolean
}

export interface StatementResult {
  readonly rows: readonly Row[]
  readonly changedRows: number
}

/** A result of SQLite, or a promise of PostgreSQL. */
type Made<T> = T | Promise<T>

/** What writes need that each engine has written for itself, because it is hot, or because it changes rows of ranks. */
export interface EngineSteps {
  /** Stores events of the audit log. */
  record(events: readonly AuditEvent[]): Made<void>
  /** Requires that the items of a bucket, all reservations and `more` fit. Throws Fault `quota-exceeded`. */
  requireRoom(bucketId: BucketId, more: Amount): Made<void>
  /** Changes what unfinished uploads reserve. */
  reserve(bucketId: BucketId, more: Amount): Made<void>
  /** Requires that the items and the reservation fit, without other reservations. Throws Fault `quota-exceeded`. */
  requireReserved(bucketId: BucketId, reserved: Amount): Made<void>
  append(bucketId: BucketId, items: readonly AddedItem[]): Made<void>
  /** Whether deleted items of the bucket are moved to its trash. */
  hasTrash(bucketId: BucketId): Made<boolean>
  /** Removes items, or moves them to the trash of a bucket that has one. Ignores ids of other buckets. */
  removeOrTrash(bucketId: BucketId, ids: readonly ItemId[], now: number): Made<RemovedItems>
  /** Moves the items of the trash that have not expired back to the bucket. Throws Fault `quota-exceeded`. */
  restore(bucketId: BucketId, ids: readonly ItemId[], now: number): Made<Pick<RemovedItems, 'ids'>>
  /** Removes items of the trash permanently. */
  purge(bucketId: BucketId, ids: readonly ItemId[]): Made<RemovedItems>
  /** Removes items of the bucket permanently. */
  removeByIds(bucketId: BucketId, ids: readonly ItemId[]): Made<RemovedItems>
  /** Removes up to `limit` items of a bucket or a trash permanently, oldest first. */
  removeOldest(bucketId: BucketId, limit: number): Made<Omit<DeletedChunk, 'isDeleted'>>
  /** To be called when the row of the bucket was removed. */
  forgetBucket(bucketId: BucketId): void
}

/** A step of a write that is not a statement. */
export type EngineStep = (engine: EngineSteps) => void | Promise<void>

/** A coroutine that reads. */
export type Query<T> = Generator<Statement, T, StatementResult>

/** A coroutine of a transaction. */
export type Work<T> = Generator<Statement | EngineStep, T, StatementResult>

/** The rows of a statement. */
export function* all<T>(read: (row: Row) => T, sql: Sql, ...values: readonly SqlValue[]): Query<T[]> {
  const { rows } = yield { sql, values, isWrite: false }
  return rows.map(read)
}

/** The first row of a statement; null if it has none. */
export function* first<T>(read: (row: Row) => T, sql: Sql, ...values: readonly SqlValue[]): Query<T | null> {
  const { rows } = yield { sql, values, isWrite: false }
  const [row] = rows
  return row === undefined ? null : read(row)
}

/** Runs a statement. Returns how many rows it has changed. */
export function* write(sql: Sql, ...values: readonly SqlValue[]): Work<number> {
  const { changedRows } = yield { sql, values, isWrite: true }
  return changedRows
}

/** Runs a step of the engine. Returns its result. */
export function* inEngine<T>(run: (engine: EngineSteps) => Made<T>): Work<T> {
  const results: T[] = []
  yield (engine) => {
    const made = run(engine)
    return made instanceof Promise
      ? made.then((result) => void results.push(result))
      : void results.push(made)
  }
  for (const result of results) return result
  throw new TypeError('an engine has not run a step')
}

/** Records an event, if the write has an actor. */
export function* record<By>(by: By | undefined, event: (by: By) => AuditEvent): Work<void> {
  if (by === undefined) return
  const recorded = event(by)
  yield (engine) => engine.record([recorded])
}

/** A text for each engine, which differ in few words. */
export const eachEngine = (text: (engine: EngineName) => string): Readonly<Record<EngineName, string>> => ({
  sqlite: text('sqlite'),
  postgres: text('postgres'),
})

/** Milliseconds since 1970, by the clock of the database. */
export const databaseTime: Readonly<Record<EngineName, string>> = {
  sqlite: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
  postgres: '(extract(epoch FROM clock_timestamp()) * 1000)::int8',
}

/**
 * The same statement for SQLite: other names of parameters, JSON for lists, and no types. A transaction that writes has locked the whole
 * database, so that no row needs a lock. A limit is an expression, because SQLite plans for the value of a parameter, and so prepares the
 * statement again each time.
 */
export const sqliteText = (text: string): string =>
  text
    .replaceAll(/= ANY \((\$\d+)(?:::\w+\[\])?\)/g, 'IN (SELECT value FROM json_each($1))')
    .replaceAll(/::\w+(?:\[\])?/g, '')
    .replaceAll(/\$(\d)/g, '?$1')
    .replaceAll(/\bLIMIT (\?\d+)/g, 'LIMIT $1 + 0')
    .replaceAll(/\s+FOR (?:UPDATE|NO KEY UPDATE|KEY SHARE)\b/g, '')

/** One row as an array, in the order of the selected columns. */
export type Row = readonly unknown[]

function wrong(row: Row, column: number, wanted: string): never {
  throw new TypeError(`the catalog holds ${typeof row[column]} in column ${column}, not ${wanted}`)
}

export function integer(row: Row, column: number): number {
  const value = row[column]
  return typeof value === 'number' ? value : wrong(row, column, 'an integer')
}

export function text(row: Row, column: number): string {
  const value = row[column]
  return typeof value === 'string' ? value : wrong(row, column, 'text')
}

// No driver returns shared memory.
const isBytes = (value: unknown): value is Uint8Array<ArrayBuffer> => value instanceof Uint8Array

export function bytes(row: Row, column: number): Uint8Array<ArrayBuffer> {
  const value = row[column]
  return isBytes(value) ? value : wrong(row, column, 'bytes')
}

export const integerOrNull = (row: Row, column: number): number | null =>
  row[column] === null ? null : integer(row, column)

export const textOrNull = (row: Row, column: number): string | null =>
  row[column] === null ? null : text(row, column)

export const bytesOrNull = (row: Row, column: number): Uint8Array | null =>
  row[column] === null ? null : bytes(row, column)

// Columns of ids contain only ids of their kind.

export const itemIdOf = (row: Row, column: number): ItemId => text(row, column) as ItemId
export const uploadIdOf = (row: Row, column: number): UploadId => text(row, column) as UploadId
export const webhookIdOf = (row: Row, column: number): WebhookId => text(row, column) as WebhookId
export const tokenIdOf = (row: Row, column: number): TokenId => text(row, column) as TokenId
export const tokenIdOrNull = (row: Row, column: number): TokenId | null =>
  row[column] === null ? null : tokenIdOf(row, column)
export const bucketIdOf = (row: Row, column: number): BucketId => integer(row, column) as BucketId
export const bucketIdOrNull = (row: Row, column: number): BucketId | null =>
  row[column] === null ? null : bucketIdOf(row, column)
export const contentIdOf = (row: Row, column: number): ContentId => integer(row, column) as ContentId

/** Texts whose labels stay in memory. Most items of a list have the labels of others, so these are parsed once. */
const maxKnownLabels = 64
// Replaced, not cleared: V8 keeps the entries of a cleared Map in memory (core/slab.ts).
let knownLabels = new Map<string, Labels>()

/** Reads a text of formatLabels. */
export function labelsOf(row: Row, column: number): Labels {
  const json = text(row, column)
  const found = knownLabels.get(json)
  if (found !== undefined) return found
  const value = parseJson(json)
  if (!isObject(value) || !isTexts(value)) throw new TypeError('the catalog holds labels that are no texts')
  if (knownLabels.size === maxKnownLabels) knownLabels = new Map()
  knownLabels.set(json, Object.freeze(value))
  return value
}

const isTexts = (value: object): value is Labels =>
  Object.values(value).every((label) => typeof label === 'string')

/** The text in which labels are stored and compared; null for none. */
export const formatLabels = (labels: Labels | null | undefined): string | null =>
  labels == null ? null : JSON.stringify(labels)

/**
 * Columns that a statement selects after `from` others, each an expression of SQL by the name of its value: for the statement, the place of each in a
 * row, and the place after the last one.
 */
export function selectColumns<Name extends string>(columns: Readonly<Record<Name, string>>, from = 0) {
  const names = Object.keys(columns)
  const places = Object.fromEntries(names.map((name, index) => [name, from + index]))
  return {
    text: Object.values(columns).join(', '),
    // It has the names of `columns`.
    at: places as Readonly<Record<Name, number>>,
    end: from + names.length,
  }
}
