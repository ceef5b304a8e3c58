import { createHash } from 'node:crypto'
import { type ClientBase, type CustomTypesConfig, DatabaseError, type QueryArrayResult } from 'pg'
import { Fault } from '../../../../core/faults.ts'
import type { EngineSteps, Query, Row, Sql, StatementResult, Work } from '../../statements.ts'

/** Milliseconds that the client waits for a result of a write. Above the timeouts of the server, so that those take effect first. */
const resultTimeout = 45_000

/** One connection, while one piece of work uses it. Throws ConnectionLost, and the errors of the server. */
export interface Session {
  /** Runs one statement with parameters. */
  run(statement: string, ...values: unknown[]): Promise<Row[]>
  /** Runs one statement with parameters; returns the number of rows it changed. */
  write(statement: string, ...values: unknown[]): Promise<number>
  /** Runs statements without parameters, in one message. Returns the name of the last command as the server reports it. */
  execute(statements: string): Promise<string>
  /** Sends COMMIT. Returns as execute. Throws CommitUnconfirmed. */
  commit(): Promise<string>
}

/** Whether statements are prepared under names; shared by all connections to a database. */
export interface Preparation {
  named: boolean
}

const names = new Map<string, string>()

/** The same name in every process, so that a name never stands for two statements behind a connection pooler. */
function nameOf(statement: string): string {
  let name = names.get(statement)
  if (name === undefined) {
    name = createHash('sha256').update(statement).digest('hex').slice(0, 32)
    names.set(statement, name)
  }
  return name
}

/** `destroy` closes the connection of the client at once. */
export function openSession(
  client: ClientBase,
  preparation: Preparation,
  destroy: () => void,
  timeout = resultTimeout,
): Session {
  const limit = { timeout, destroy }
  const send = (statement: string, values: unknown[]) => {
    const query = {
      text: statement,
      values,
      types,
      rowMode: 'array' as const,
      ...(preparation.named && { name: nameOf(statement) }),
    }
    return reporting<QueryArrayResult<unknown[]>>(limit, (done) => client.query(query, done))
  }
  async function execute(statements: string): Promise<string> {
    const result = await reporting<unknown>(limit, (done) => client.query(statements, done))
    const last: unknown = Array.isArray(result) ? result.at(-1) : result
    return isResult(last) ? last.command : ''
  }
  return {
    async run(statement, ...values) {
      return (await send(statement, values)).rows
    },
    async write(statement, ...values) {
      return (await send(statement, values)).rowCount ?? 0
    },
    execute,
    async commit() {
      const warnings: string[] = []
      const onNotice = ({ code, message }: Notice) => {
        if (code === warningState) warnings.push(message ?? '')
      }
      client.on('notice', onNotice)
      try {
        const command = await execute('COMMIT')
        if (warnings.length > 0) throw new CommitUnconfirmed(warnings.join('; '))
        return command
      } finally {
        client.removeListener('notice', onNotice)
      }
    },
  }
}

interface Notice {
  readonly code: string | undefined
  readonly message: string | undefined
}

/** The SQLSTATE of the warning with which COMMIT succeeds without its synchronous standby. Its text depends on the language of the server. */
const warningState = '01000'

/**
 * Runs a query of the driver, for `timeout` milliseconds at most, or for any time if it is 0. After this time the connection is destroyed: the driver
 * ends a pipelined one only when it has responded to all queries. The driver reports lost connections as plain errors; a
 * RangeError is of a value that was received. With promises or timeouts of the driver, the rows of a query survive several collections of young
 * objects, each of which then takes milliseconds.
 */
async function reporting<T>(
  { timeout, destroy }: { readonly timeout: number; readonly destroy: () => void },
  start: (done: (error: Error | null, result: T) => void) => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const expire = () => {
    reject(new Error('the database did not respond in time'))
    destroy()
  }
  const timer = timeout === 0 ? undefined : setTimeout(expire, timeout)
  try {
    start((error, result) => (error ? reject(error) : resolve(result)))
    return await promise
  } catch (error) {
    // The driver's trace has none of the callers.
    if (error instanceof Error) Error.captureStackTrace(error)
    if (sqlState(error) !== null || error instanceof RangeError) throw error
    throw new ConnectionLost(error instanceof Error ? error.message : String(error), { cause: error })
  } finally {
    clearTimeout(timer)
  }
}

const isResult = (value: unknown): value is { command: string } =>
  typeof value === 'object' && value !== null && 'command' in value && typeof value.command === 'string'

const noResult: StatementResult = { rows: [], changedRows: 0 }

/** Runs one statement with parameters. */
export type Run = (statement: string, ...values: unknown[]) => Promise<readonly Row[]>

/** Runs a coroutine that reads. Each of its statements has a snapshot of its own, unless there is a transaction. */
export async function runQuery<T>(run: Run, query: Query<T>): Promise<T> {
  let step = query.next()
  while (!step.done) {
    const text = textOf(step.value.sql)
    const rows = text === null ? [] : await run(text, ...step.value.values)
    step = query.next({ rows, changedRows: 0 })
  }
  return step.value
}

/** Runs a coroutine in a transaction. Only those of changes need `engine`. */
export async function runWork<T>(session: Session, work: Work<T>, engine?: EngineSteps): Promise<T> {
  let step = work.next()
  while (!step.done) {
    const { value } = step
    let result = noResult
    if (typeof value === 'function') {
      if (engine === undefined) throw new TypeError('a step of a write has no engine')
      await value(engine)
    } else {
      const { sql, values, isWrite } = value
      const text = textOf(sql)
      if (text !== null && isWrite) result = { rows: [], changedRows: await session.write(text, ...values) }
      else if (text !== null) result = { rows: await session.run(text, ...values), changedRows: 0 }
    }
    step = work.next(result)
  }
  return step.value
}

const textOf = (sql: Sql): string | null => (typeof sql === 'string' ? sql : sql.postgres)

const parsers: Readonly<Record<number, (value: string) => unknown>> = {
  16: (value) => value === 't',
  // int8, int2, int4
  20: parseInteger,
  21: Number,
  23: Number,
  17: parseBytes,
}

/** The only place that parses values of results. Types that the catalog does not use stay text. */
const types: CustomTypesConfig = {
  getTypeParser: (oid: number) => parsers[oid] ?? asText,
}

const asText = (value: string): string => value

function parseInteger(value: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new RangeError(`the catalog holds ${value}, which is too large`)
  return number
}

/** `\x` and hexadecimal digits, which become bytes in a buffer of their own. */
function parseBytes(value: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(value.length / 2 - 1)
  Buffer.from(bytes.buffer).write(value.slice(2), 'hex')
  return bytes
}

const typeOfBytes = 17

/**
 * A parameter of the type bytea[], in the binary format, which is half as long as the text format. The format is that of
 * array_recv: dimensions, whether there are nulls, element type, length, lower bound; then the length and the bytes of each element.
 */
export function bytesArray(elements: readonly (Uint8Array | null)[]): Buffer {
  const header = 5 * 4
  const size = elements.reduce((sum, element) => sum + 4 + (element?.byteLength ?? 0), header)
  const buffer = Buffer.allocUnsafe(size)
  const integers = [1, elements.includes(null) ? 1 : 0, typeOfBytes, elements.length, 1]
  let offset = 0
  for (const integer of integers) offset = buffer.writeInt32BE(integer, offset)
  for (const element of elements) {
    offset = buffer.writeInt32BE(element?.byteLength ?? -1, offset)
    if (element === null) continue
    buffer.set(element, offset)
    offset += element.byteLength
  }
  return buffer
}

/** The connection failed, or did not respond in time. What was sent on it may have been executed. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
}

/**
 * The server has committed, but no longer waits for a synchronous standby: `statement_timeout` has ended, or an administrator has cancelled the
 * wait. A failover could lose the commit.
 */
class CommitUnconfirmed extends Error {
  override readonly name = 'CommitUnconfirmed'
}

/** The SQLSTATE of an error that PostgreSQL or a connection pooler reported; null for any other error. */
export const sqlState = (error: unknown): string | null =>
  error instanceof DatabaseError ? (error.code ?? null) : null

/**
 * 25006: a primary that became a replica still returns rows, but refuses writes. 25P03, 25P04: the server closed the connection,
 * because its transaction was idle or took too long.
 */
const isDeadState = (state: string | null) => state !== null && /^(08|57P|25006|25P0[34])/.test(state)

/** The connection cannot be used any more. */
export const isDead = (error: unknown): boolean =>
  error instanceof ConnectionLost || isDeadState(sqlState(error))

/** Also for the Fault of such an error. */
export const isUnreachable = (error: unknown): boolean => isDead(error instanceof Fault ? error.cause : error)

/** A connection pooler gave the transaction a server connection that lacks the prepared statement, or has it already. */
export const isUnprepared = (error: unknown): boolean => /^(26000|42P05)$/.test(sqlState(error) ?? '')

/** The transaction conflicted with another one. It can succeed if it is repeated. */
export const isConflict = (error: unknown): boolean => /^(40001|40P01)$/.test(sqlState(error) ?? '')

/** The code is not `catalog-unavailable`, because the operations remove the bytes of an upload that failed with that code. */
export const unknownOutcome = (cause: unknown): Fault =>
  new Fault('overloaded', 'The database did not confirm this write: it may or may not be stored.', { cause })

/** Maps an error after which nothing was changed, and CommitUnconfirmed, to a Fault; returns an unexpected error unchanged. */
export function asFault(error: unknown): unknown {
  if (error instanceof CommitUnconfirmed) return unknownOutcome(error)
  const state = sqlState(error) ?? ''
  if (state === '53100')
    return new Fault('storage-full', 'The database has no space left on its disk.', { cause: error })
  if (/^53/.test(state))
    return new Fault('overloaded', 'The database has no memory or connection left.', { cause: error })
  if (isDead(error))
    return new Fault('catalog-unavailable', 'The database cannot be reached; try again.', { cause: error })
  // lock_not_available. Others hold the locks, so nothing has failed and the fault has no cause.
  if (isConflict(error) || state === '55P03')
    return new Fault('catalog-busy', 'The catalog is busy with other work; try again.')
  // query_canceled
  if (state === '57014')
    return new Fault('catalog-busy', 'The database did not respond in time; try again.', { cause: error })
  return error
}
